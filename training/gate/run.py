"""The files of a training run: its checkpoint, a row per step, a plot of the rows."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import replacing, save_figure, write_atomically

_SMOOTHED = 20


class Checkpoint:
    """The state of a run after its last finished sample, in a file beside the output.

    Args:
        output: the gate's file.
        identity: `GateOptions.identity` of the run.
    """

    def __init__(self, output: Path, identity: str) -> None:
        self._path = output.with_name(output.name + ".checkpoint")
        self._identity = identity

    def load(self) -> dict[str, Any] | None:
        """The state that `save` last wrote; None at the start of a run.

        Raises:
            EdgeInfiniteError: the file belongs to a run with other options, or can't be read.
        """
        if not self._path.exists():
            return None
        try:
            found = torch.load(self._path, weights_only=True)
            identity, state = found["identity"], found["state"]
        except (OSError, EOFError, RuntimeError, KeyError, TypeError, pickle.PickleError) as error:
            raise EdgeInfiniteError(
                f"{self._path} can't be read; delete it to begin anew"
            ) from error
        if identity != self._identity:
            raise EdgeInfiniteError(
                f"{self._path} belongs to a run with other options that was cut off; give these, "
                "delete it, or choose another --output"
            )
        return dict(state)

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the checkpoint, whole or not at all.

        Raises:
            EdgeInfiniteError: it can't be written, such as on a full disk.
        """
        try:
            with replacing(self._path) as unfinished:
                torch.save({"identity": self._identity, "state": state}, unfinished)
        except RuntimeError as error:  # torch's name for a write that fails
            raise EdgeInfiniteError(
                f"{self._path} can't be written: {error}; make room and give the same command again"
            ) from error

    def remove(self) -> None:
        """The run is done."""
        self._path.unlink(missing_ok=True)


class Metrics:
    """The rows of a run, one JSON object per line.

    Args:
        path: the file.
        steps: when a run resumes, rows up to this step are kept.
    """

    def __init__(self, path: Path, steps: int) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if steps and path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            self.rows = [row for row in rows if row["step"] <= steps]
        write_atomically(path, "".join(json.dumps(row) + "\n" for row in self.rows))

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Appends rows."""
        new = list(rows)
        self.rows += new
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)

    def plot(self, path: Path) -> None:
        """Plots the loss by tokens, with its running mean, and how far the gates are open."""
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot

        tokens = [row["tokens"] for row in self.rows]
        losses = [row["loss"] for row in self.rows]
        window = [losses[max(0, i - _SMOOTHED) : i + 1] for i in range(len(losses))]
        figure, (upper, lower) = pyplot.subplots(
            2, 1, figsize=(7, 5), sharex=True, layout="constrained", height_ratios=(2, 1)
        )
        upper.plot(tokens, losses, alpha=0.25, linewidth=0.8)
        upper.plot(tokens, [sum(part) / len(part) for part in window], color="C0")
        upper.set(ylabel="loss (nats per token)")
        lower.plot(tokens, [row["opening"] for row in self.rows], color="C1")
        lower.set(xlabel="tokens predicted", ylabel="mean sig(g)")
        save_figure(figure, path)
        pyplot.close(figure)
