"""`evaluate summary`: row files of several runs side by side, quality against bytes of state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.table import babilong_tables
from edgeinfinite.evaluation.longbench.table import longbench_tables
from edgeinfinite.evaluation.report import markdown, mean_loss, pyplot
from edgeinfinite.evaluation.results import Row
from edgeinfinite.files import save_figure

PASSKEY, PERPLEXITY = "evaluate passkey", "evaluate perplexity"
QUESTION_TABLES = {"evaluate longbench": longbench_tables, "evaluate babilong": babilong_tables}
_MEGABYTE = 1e6


def read_runs(paths: Sequence[Path]) -> dict[str, list[Row]]:
    """The rows of several files, by command; rows that two files share count once.

    Raises:
        EdgeInfiniteError: a file isn't one of `evaluate`.
    """
    runs: dict[str, list[Row]] = {}
    for path in paths:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            command, rows = found["command"], list(found["rows"])
        except (ValueError, KeyError, TypeError) as error:
            raise EdgeInfiniteError(f"{path} isn't a file of rows, as --json writes it") from error
        if command not in (PASSKEY, PERPLEXITY, *QUESTION_TABLES):
            raise EdgeInfiniteError(f"{path} holds rows of {command!r}, not of an evaluation")
        known = runs.setdefault(command, [])
        known += [row for row in rows if row not in known]
    return runs


def summary_tables(runs: dict[str, list[Row]]) -> str:
    """One table a command: nats by method, bytes of state, and prompt length (or whole text).

    Rows of LongBench and BABILong get the tables of their commands, as from a single run.
    """
    tables = []
    for command, rows in runs.items():
        if command in QUESTION_TABLES:
            tables.append(f"{command}\n\n{QUESTION_TABLES[command](rows)}")
            continue
        columns = _columns(command, rows)
        header = ["method", "state MB", *columns]
        lines = []
        for method, size in _subjects(rows):
            cells = [_quality(command, rows, method, size, column) for column in columns.values()]
            line = [method, f"{size / _MEGABYTE:.1f}" if size else "grows"]
            lines.append(line + ["–" if cell is None else f"{cell:.3f}" for cell in cells])
        tables.append(f"{command}\n\n{markdown(header, lines)}")
    return "\n\n".join(tables)


def plot_summary(runs: dict[str, list[Row]], path: Path) -> None:
    """Nats against bytes of state, a panel for each command; full attention as a dotted line.

    Args:
        runs: see `read_runs`.
        path: a .png, .svg or .pdf file.

    Raises:
        EdgeInfiniteError: there is nothing to draw, or only rows of LongBench and BABILong.
    """
    runs = {command: rows for command, rows in runs.items() if command not in QUESTION_TABLES}
    if not runs:
        raise EdgeInfiniteError("rows of LongBench and BABILong have tables only; leave --plot out")
    plots = pyplot()
    figure, panels = plots.subplots(
        1, len(runs), figsize=(6.4 * len(runs), 4.4), layout="constrained", squeeze=False
    )
    for panel, (command, rows) in zip(panels[0], runs.items(), strict=True):
        for index, (name, length) in enumerate(_columns(command, rows).items()):
            marks = iter("os^vDPX*")
            for method in dict.fromkeys(row["method"] for row in rows):
                points = [
                    (size / _MEGABYTE, quality)
                    for of, size in _subjects(rows)
                    if of == method
                    and (quality := _quality(command, rows, method, size, length)) is not None
                ]
                label = f"{method}, {name}"
                if method == "full":
                    for _, quality in points:
                        panel.axhline(quality, color=f"C{index}", ls=":", label=label)
                elif points:
                    panel.plot(*zip(*points, strict=True), f"C{index}{next(marks)}-", label=label)
        recall = command == PASSKEY
        panel.set(xlabel="bytes of state (MB)", title="planted facts" if recall else "loss")
        panel.set_ylabel(f"nats per {'answer ' if recall else ''}token")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    save_figure(figure, path)
    plots.close(figure)


def _subjects(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Methods and bytes of state; full attention's grow with the text and count as 0."""
    found = {(r["method"], 0 if r["method"] == "full" else r["state_bytes"]) for r in rows}
    return sorted(found, key=lambda subject: (subject[1], subject[0]))


def _columns(command: str, rows: Sequence[Row]) -> dict[str, int | None]:
    """By title: prompt lengths, or for perplexity the whole text."""
    if command == PERPLEXITY:
        return {"nats per token": None}
    return {f"{length:,}": length for length in sorted({row["prompt_tokens"] for row in rows})}


def _quality(
    command: str, rows: Sequence[Row], method: str, size: int, length: int | None
) -> float | None:
    own = [row for row in rows if row["method"] == method]
    own = [row for row in own if method == "full" or row["state_bytes"] == size]
    if command == PERPLEXITY:
        return mean_loss(own) if own else None
    own = [row for row in own if row["prompt_tokens"] == length]
    return fmean(row["nats_per_digit_token"] for row in own) if own else None
