"""Reads a text of any length and measures and probes the state on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from edgeinfinite.artifact.tensors import CACHES, SCORES, SUMS, Role
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.soak.drift import SummingEngine, sums_at
from edgeinfinite.evaluation.soak.options import SoakOptions
from edgeinfinite.evaluation.soak.probes import fork_harms_nothing, restored, split_divergence
from edgeinfinite.evaluation.soak.stream import TextStream, pieces
from edgeinfinite.process_memory import resident_bytes
from edgeinfinite.runtime_py.engines.base import Engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.session.session import Session

ROWS = "soak"
"""In the session file's metadata: options and rows, so that both are always of one moment."""

_KINDS: tuple[Role, ...] = (*CACHES, SCORES, *SUMS)


@dataclass(frozen=True)
class SoakRow:
    """One stretch.

    Attributes:
        tokens_read: at its end.
        compressions: since the text began.
        tokens_per_s: of reading, without the probes.
        rss_bytes: resident memory at its end; None where the system doesn't say.
        rms: root mean square of what is in use of the state, by the tensors' role.
        largest: largest absolute value, by role.
        fork_ok: whether the state stayed bit for bit while a fork read on.
        split_kl: nats by which the next token's prediction differs when the same tokens are fed in
            pieces.
        drift: of the memory's float32 sums from float64, relative; None without a memory, and once
            a run goes on that had lost its own sums.
    """

    tokens_read: int
    compressions: int
    tokens_per_s: float
    rss_bytes: int | None
    rms: dict[str, float]
    largest: dict[str, float]
    fork_ok: bool
    split_kl: float
    drift: float | None


class Soak:
    """A run, from its beginning or from where a killed one was.

    Args:
        engine: of the artifact.
        stream: the text.
        options: see there.
        path: session file, written after every stretch.

    Raises:
        EdgeInfiniteError: the file is of another artifact or of other options.
    """

    def __init__(
        self, engine: Engine, stream: TextStream, options: SoakOptions, path: Path
    ) -> None:
        self._stream, self._options, self._path = stream, options, path
        self._sums_path = path.with_name(f"{path.name}.sums.npz")
        self.rows: list[SoakRow] = []
        self._sums = SummingEngine(engine) if engine.reads_memory else None
        own = cast("Engine", self._sums or engine)
        if not path.exists():
            self._session = Session(own)
            return
        self._session, extra = load_session(own, path)
        self.rows = _rows_of(path, extra, options)
        if self._session.taken_over:  # as a chat may be; a measurement is of one artifact
            raise EdgeInfiniteError(
                f"{path} is of a soak of another artifact; give that one, or another --session"
            )
        if self._sums:
            self._sums.sums = sums_at(self._sums_path, self.tokens_read)

    @property
    def tokens_read(self) -> int:
        """Tokens of the text so far."""
        return self._session.tokens_read

    @property
    def done(self) -> bool:
        """Whether every stretch was read."""
        return len(self.rows) == self._options.stretches

    def read_stretch(self, progress: Callable[[int], None]) -> SoakRow:
        """Reads on, probes, saves and goes on with what was loaded.

        Args:
            progress: called with the number of tokens newly read.

        Raises:
            EdgeInfiniteError: logits or state hold NaN or infinity, or the file doesn't restore the
                state.
        """
        stretch, before = len(self.rows), self._session.tokens_read
        random = self._stream.random(stretch)
        tokens = self._stream.tokens(stretch, self._options.end_of(stretch) - before)
        parts = pieces(tokens, random)
        probed = int(random.integers(len(parts)))
        seconds, fork_ok, divergence = 0.0, True, 0.0
        for number, piece in enumerate(parts):
            if number == probed:
                fork_ok, divergence = self._probe(random)
            start = time.perf_counter()
            logits = self._session.append(piece)
            seconds += time.perf_counter() - start
            if not np.isfinite(logits).all():
                raise EdgeInfiniteError(f"NaN logits after {self.tokens_read:,} tokens")
            progress(len(piece))
        row = self._row(len(tokens) / seconds, fork_ok, divergence)
        self.rows.append(row)
        if self._sums:
            self._sums.save(self._sums_path, self.tokens_read)
        content = {"options": _told(self._options), "rows": [asdict(row) for row in self.rows]}
        self._session = restored(self._session, self._path, {ROWS: json.dumps(content)})
        return row

    def _probe(self, random: np.random.Generator) -> tuple[bool, float]:
        """A fork reads on, and the same tokens whole and in pieces, over a few compressions."""
        geometry = self._session.engine.geometry
        most = 3 * geometry.segment_length + geometry.window_length
        tokens = self._stream.tokens(self._options.stretches + len(self.rows), most)
        tokens = tokens[: int(random.integers(2, most + 1))]
        with self._sums.paused() if self._sums else nullcontext():
            fork_ok = fork_harms_nothing(self._session, tokens)
            return fork_ok, split_divergence(self._session, tokens, pieces(tokens, random))

    def _row(self, speed: float, fork_ok: bool, divergence: float) -> SoakRow:
        state = self._session.state
        squares, counts, largest = dict[str, float](), dict[str, int](), dict[str, float]()
        for spec in state.specs:
            kind, values = spec.role, state.in_use(spec)
            if kind not in _KINDS or not values.size:
                continue
            exact = values.astype(np.float64)
            if not np.isfinite(exact).all():
                raise EdgeInfiniteError(f"{spec.name} holds NaN after {self.tokens_read:,} tokens")
            squares[kind] = squares.get(kind, 0.0) + float(np.square(exact).sum())
            counts[kind] = counts.get(kind, 0) + exact.size
            largest[kind] = max(largest.get(kind, 0.0), float(np.abs(exact).max()))
        return SoakRow(
            tokens_read=self.tokens_read,
            compressions=self._session.compressions,
            tokens_per_s=round(speed, 1),
            rss_bytes=resident_bytes(),
            rms={kind: (squares[kind] / counts[kind]) ** 0.5 for kind in squares},
            largest=largest,
            fork_ok=fork_ok,
            split_kl=divergence,
            drift=self._sums.drift(state) if self._sums else None,
        )


def _rows_of(path: Path, extra: dict[str, str], options: SoakOptions) -> list[SoakRow]:
    try:
        content = json.loads(extra[ROWS])
        rows = [SoakRow(**row) for row in content["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise EdgeInfiniteError(f"{path} is no soak's file; give another --session") from error
    if content["options"] != _told(options):
        raise EdgeInfiniteError(
            f"{path} is of a soak with other options; repeat those, or give another --session"
        )
    return rows


def _told(options: SoakOptions) -> dict[str, Any]:
    """Options as JSON gives them back."""
    return {name: str(value) if value else value for name, value in asdict(options).items()}
