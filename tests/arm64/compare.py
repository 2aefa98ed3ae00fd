"""Compares what two CPUs computed, see `read_text.py`.

python tests/arm64/compare.py ONE.npz OTHER.npz --text TOKENS.npy
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from edgeinfinite.export.parity.state_errors import relative_error
from edgeinfinite.runtime_py.logprobs import log_probabilities


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


def main() -> None:
    """Prints the differences as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--text", type=Path, required=True)
    arguments = parser.parse_args()
    with np.load(arguments.one) as one, np.load(arguments.other) as other:
        found = differences(one, other, np.load(arguments.text))
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
