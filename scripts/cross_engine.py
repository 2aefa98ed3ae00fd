"""A text that changes engines at random points, beside one that stays: how far apart they end.

    python scripts/cross_engine.py ARTIFACT ARTIFACT... [--checkpoint MODEL] --data TEXT --json F

The artifacts are of one model and geometry: any back end, quantization and type of cache. At random
points of the text every engine's session is taken over by every other one, which goes on, answers
greedily, and hands it back. `--checkpoint` adds the checkpoint itself in PyTorch (float32).
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from edgeinfinite.artifact.manifest import GATE_FILE, SCORER_FILE, read_manifest
from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

HANDED_BACK = 64
"""Tokens that the first engine reads after it gets the text back."""


@dataclass(frozen=True)
class Row:
    """One change of engines at one point of the text.

    Args:
        policy: of the geometry.
        reader, taker: names of the engine that read the text and of the one that took it over.
        point: tokens read by then.
        state: largest difference between the state taken over and the one that the taker computes
            itself, over the largest magnitude of the same tensor.
        logits: the same of the logits after the tokens that follow.
        tokens_equal: share of the greedy tokens that are those of the taker's own state.
        nats, nats_taker, nats_reader: mean loss of the tokens that follow: of the taker with the
            reader's state, of the taker with its own, of the reader with its own.
        back: as `logits`, between the reader that got its text back and the reader that never gave
            it away.
    """

    policy: str
    reader: str
    taker: str
    point: int
    state: float
    logits: float
    tokens_equal: float
    nats: float
    nats_taker: float
    nats_reader: float
    back: float


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference over the largest magnitude, at least 1."""
    if not one.size:
        return 0.0
    wide, wide_other = one.astype(np.float64), other.astype(np.float64)
    return float(np.abs(wide - wide_other).max() / max(1.0, np.abs(wide).max()))


def state_distance(one: Session, other: Session) -> float:
    """The largest `distance` of a tensor; both have read the same tokens with equal engines."""
    pairs = [(one.state.in_use(spec), other.state.in_use(spec)) for spec in one.state.specs]
    return max(distance(*pair) for pair in pairs)


@dataclass(frozen=True)
class Continued:
    """What came of a text: loss of its next tokens, last logits, and greedy tokens after them."""

    nats: float
    logits: np.ndarray
    answer: list[int]


def go_on(session: Session, tokens: Sequence[int], answer: int) -> Continued:
    """Reads `tokens` one by one, then answers greedily.

    Args:
        session: after one token at least.
        tokens: the first one's loss isn't counted.
        answer: number of greedy tokens.
    """
    losses, logits = [], session.append(tokens[:1])
    for token in tokens[1:]:
        losses.append(_loss(logits, token))
        logits = session.append([token])
    found, last = [], logits
    for _ in range(answer):
        found.append(int(last.argmax()))
        last = session.append(found[-1:])
    return Continued(float(np.mean(losses)), logits, found)


def _loss(logits: np.ndarray, token: int) -> float:
    wide = logits.astype(np.float64)
    top = wide.max()
    return float(np.log(np.exp(wide - top).sum()) + top - wide[token])


class Exchange:
    """Sessions of one text, by engine and point.

    Args:
        engines: by name.
        text: token ids.
        points: where the text changes engines, ascending.
        more, answer: tokens that follow, and greedy tokens after these.
        folder: for session files.
    """

    def __init__(
        self,
        engines: dict[str, Engine],
        text: Sequence[int],
        points: Sequence[int],
        more: int,
        answer: int,
        folder: Path,
    ) -> None:
        self._engines, self._text, self._points = engines, text, points
        self._more, self._answer, self._folder = more, answer, folder
        self._stayed: dict[tuple[str, int], Continued] = {}

    def rows(self) -> list[Row]:
        """Every change between two engines at every point."""
        for name, engine in self._engines.items():
            self._read(name, engine)
        changes = list(itertools.product(self._points, itertools.permutations(self._engines, 2)))
        return [self._row(*names, point) for point, names in tqdm(changes, unit="changes")]

    def _file(self, name: str, point: int) -> Path:
        return self._folder / f"{name}-{point}.session"

    def _read(self, name: str, engine: Engine) -> None:
        session, start = Session(engine), 0
        for point in tqdm(self._points, unit="points", desc=name):
            session.append(self._text[start:point])
            save_session(session, self._file(name, point))
            start = point
            self._stayed[name, point] = go_on(session.fork(), self._next(point), self._answer)

    def _next(self, point: int) -> Sequence[int]:
        return self._text[point : point + self._more]

    def _row(self, reader: str, taker: str, point: int) -> Row:
        engine = self._engines[taker]
        taken, _ = load_session(engine, self._file(reader, point))
        own, _ = load_session(engine, self._file(taker, point))
        apart = state_distance(own, taken)
        found = go_on(taken, self._next(point), self._answer)
        stayed, read = self._stayed[taker, point], self._stayed[reader, point]
        equal = np.mean(np.array(found.answer) == np.array(stayed.answer))
        return Row(
            policy=engine.geometry.policy,
            reader=reader,
            taker=taker,
            point=point,
            state=apart,
            logits=distance(stayed.logits, found.logits),
            tokens_equal=float(equal),
            nats=found.nats,
            nats_taker=stayed.nats,
            nats_reader=read.nats,
            back=self._back(reader, taker, point),
        )

    def _back(self, reader: str, taker: str, point: int) -> float:
        """The taker reads what follows and hands the text back; beside a reader that kept it."""
        path, following = self._folder / "moved.session", self._next(point)
        away, _ = load_session(self._engines[taker], self._file(reader, point))
        away.append(following)
        save_session(away, path)
        back, _ = load_session(self._engines[reader], path)
        stayed, _ = load_session(self._engines[reader], self._file(reader, point))
        stayed.append(following)
        last = self._text[point + self._more : point + self._more + HANDED_BACK]
        return distance(stayed.append(last), back.append(last))


def _in_torch(checkpoint: str, artifact: Path) -> Engine:
    from edgeinfinite.models.attach import attach
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
    from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine

    manifest = read_manifest(artifact)
    gate = str(artifact / GATE_FILE) if manifest.gate else NO_GATE
    scorer = str(artifact / SCORER_FILE) if manifest.scorer else None
    config = EdgeInfiniteConfig(manifest.geometry, gate, scorer=scorer)
    return TorchEngine(attach(load_backbone(checkpoint).model, config))


def summary(rows: Sequence[Row]) -> list[str]:
    """A line for each pair of engines."""
    lines = []
    for pair in dict.fromkeys((row.reader, row.taker) for row in rows):
        found = [row for row in rows if (row.reader, row.taker) == pair]
        nats, own, read = (
            np.mean([getattr(row, name) for row in found])
            for name in ("nats", "nats_taker", "nats_reader")
        )
        worst = {name: max(getattr(row, name) for row in found) for name in _WORST}
        far = ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
        equal = np.mean([row.tokens_equal for row in found])
        lines.append(
            f"{pair[0]} -> {pair[1]}: {far} apart at most; greedy tokens {equal:.0%} equal; "
            f"{nats:.3f} nats, {own:.3f} if {pair[1]} had read it, {read:.3f} if {pair[0]} went on"
        )
    return lines


_WORST = ("state", "logits", "back")


def main() -> None:
    """Prints a line for each pair of engines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("artifacts", type=Path, nargs="+")
    parser.add_argument("--checkpoint", help="adds PyTorch: the model that was exported")
    parser.add_argument("--data", type=Path, required=True, help="a text")
    parser.add_argument("--tokens", type=int, default=6000)
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--more", type=int, default=200, help="tokens that follow each point")
    parser.add_argument("--answer", type=int, default=32, help="greedy tokens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    engines: dict[str, Engine] = {
        folder.name: load_engine(folder, threads=arguments.threads)
        for folder in arguments.artifacts
    }
    if arguments.checkpoint:
        engines["torch"] = _in_torch(arguments.checkpoint, arguments.artifacts[0])
    tokenizer = load_tokenizer(arguments.artifacts[0])
    text = tokenizer.encode_text(arguments.data.read_text(encoding="utf-8"))
    last = arguments.tokens - arguments.more - HANDED_BACK
    random = np.random.default_rng(arguments.seed)
    points = sorted(random.integers(1, last, arguments.points).tolist())
    with tempfile.TemporaryDirectory() as folder:
        rows = Exchange(
            engines,
            text[: arguments.tokens],
            points,
            arguments.more,
            arguments.answer,
            Path(folder),
        ).rows()
    write_rows(arguments.json, "cross_engine", [dataclasses.asdict(row) for row in rows])
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
