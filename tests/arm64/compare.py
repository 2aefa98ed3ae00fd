"""Compares what two CPUs computed, see `read_text.py` and `scripts/arm64.sh`.

    python tests/arm64/compare.py NAME=RECORD ... [--json FILE]

NAME is an artifact's in `scripts/arm64.sh`. RECORD holds `record.npz`, `arm64.npz` and
`tokens.npy`. The exit status is 1 beyond a limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from edgeinfinite.export.parity.state_errors import relative_error
from edgeinfinite.runtime_py.answer.logprobs import log_probabilities

LIMITS: dict[str, float] = {
    "logits": 0.25,
    "nats": 0.01,
    "loss": 0.1,
    "k_cache": 0.05,
    "v_cache": 0.1,
    "scores": 1e-4,
    "memory": 1e-4,
    "memory_norm": 1e-4,
    "length": 0,
    "has_memory": 0,
}
"""About twice what SmolLM2's artifacts for ONNX Runtime showed, which chose them; what float32
computes is held to float32."""

EXECUTORCH_LIMITS = LIMITS | {
    "logits": 0.7,
    "nats": 0.05,
    "k_cache": 0.1,
    "v_cache": 0.25,
}
"""The same of ExecuTorch's, which round activations on one scale a token."""


@dataclass(frozen=True)
class Differences:
    """Of another CPU to the first.

    Args:
        logits: the largest relative error ‖a - b‖ / ‖b‖ of a call that both computed from equal
            numbers, or after at most `STEPS` tokens.
        state: the same by role of the state's tensors, the largest of a tensor.
        nats: mean KL divergence of the next token, nats, in those calls.
        loss: nats a token that the text costs more, read as a whole by each.
        whole_logits: as `logits`, after each has read the whole text by itself.
        greedy: greedy tokens that agree before the first that doesn't.
    """

    logits: float
    state: dict[str, float]
    nats: float
    loss: float
    whole_logits: float
    greedy: int


def differences(
    one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], tokens: np.ndarray
) -> Differences:
    """Compares two records of the same tokens.

    Args:
        one, other: as `read_text.py` writes them.
        tokens: `[T]`, what was read.

    Raises:
        ValueError: the records hold different tensors.
    """
    if set(one) != set(other):
        raise ValueError(f"only one record has {', '.join(sorted(set(one) ^ set(other)))}")
    state: dict[str, float] = defaultdict(float)
    logits, nats = [], []
    for name in one:
        if ".state." in name:
            role = name.split(".")[2]
            state[role] = max(state[role], _error(other[name], one[name]))
        elif name[0].isdigit():
            rows = list(zip(other[name], one[name], strict=True))
            logits += [_error(a, b) for a, b in rows]
            nats += [divergence(b, a) for a, b in rows]
    asked = tokens[-len(one["whole.logits"]) :]
    losses = [_loss(record["whole.logits"], asked) for record in (one, other)]
    pairs = zip(other["whole.logits"], one["whole.logits"], strict=True)
    return Differences(
        logits=max(logits),
        state=dict(state),
        nats=float(np.mean(nats)),
        loss=losses[1] - losses[0],
        whole_logits=max(_error(a, b) for a, b in pairs),
        greedy=int((one["greedy"] == other["greedy"]).cumprod().sum()),
    )


def _error(value: np.ndarray, wanted: np.ndarray) -> float:
    """‖value - wanted‖ / ‖wanted‖; infinite for other shapes or anything that isn't a number."""
    error = relative_error(value, wanted) if value.shape == wanted.shape else np.inf
    return float(error) if np.isfinite(error) else float("inf")


def divergence(wanted: np.ndarray, value: np.ndarray) -> float:
    """KL divergence of two rows of logits `[V]`, nats."""
    p, q = log_probabilities(wanted), log_probabilities(value)
    return float((np.exp(p) * (p - q)).sum())


def _loss(logits: np.ndarray, tokens: np.ndarray) -> float:
    return float(-log_probabilities(logits)[np.arange(len(tokens)), tokens].mean())


def beyond_limits(found: Differences, limits: Mapping[str, float] = LIMITS) -> list[str]:
    """What differs by more than other kernels explain, as sentences.

    Two CPUs round 8-bit activations differently, so logits of quantized products do differ.
    """
    largest = {"logits": found.logits, "nats": found.nats, "loss": abs(found.loss)} | found.state
    return [
        f"{name} differ by {value:.2g}, at most {limits[name]:.2g} is expected"
        for name, value in largest.items()
        if not value <= limits[name]
    ]


def row_of(folder: Path) -> Differences:
    """The differences of a folder's two records."""
    with np.load(folder / "record.npz") as one, np.load(folder / "arm64.npz") as other:
        return differences(one, other, np.load(folder / "tokens.npy"))


def main(given: Sequence[str] | None = None) -> None:
    """Prints the differences; the exit status is 1 beyond a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="+", metavar="NAME=RECORD")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    rows, problems = {}, []
    for record in arguments.records:
        name, folder = record.split("=", 1)
        found = row_of(Path(folder))
        rows[name] = asdict(found)
        limits = EXECUTORCH_LIMITS if name.startswith("executorch-") else LIMITS
        problems += [f"{name}: {problem}" for problem in beyond_limits(found, limits)]
        print(
            f"{name}: logits {found.logits:.1%}, KL {found.nats:.4f} nats, loss {found.loss:+.4f}, "
            f"greedy tokens alike {found.greedy}, state "
            + ", ".join(f"{role} {value:.1e}" for role, value in found.state.items())
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
