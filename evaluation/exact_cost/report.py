"""The output of `bench --methods`: tables in Markdown, and a plot of memory and time by length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeinfinite.evaluation.exact_cost.case import BudgetRow, MemoryRow
from edgeinfinite.runtime_py.benchmark.panels import Line, plot_panels

_HEADER = (
    "method",
    "prompt",
    "activations and cache MB",
    "/ standard",
    "peak MB",
    "disk MB",
    "TTFT s",
    "CPU s",
    "/ last-token-head",
    "decode t/s",
    "nats / token",
    "logits differ by",
)


def table(rows: Sequence[MemoryRow]) -> str:
    """The rows in Markdown; ratios are to other methods at the same length."""
    lines = ["| " + " | ".join(_HEADER) + " |", "|" + " --- |" * len(_HEADER)]
    for row in rows:
        cells = [row.method, f"{row.prompt_tokens:,}"]
        cells += [row.error] if row.error else _cells(row, rows)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(row: MemoryRow, rows: Sequence[MemoryRow]) -> list[str]:
    def other(method: str, figure: str) -> float | None:
        same = (r for r in rows if (r.method, r.prompt_tokens) == (method, row.prompt_tokens))
        return next((getattr(r, figure) for r in same), None)

    return [
        _number(row.activation_bytes, 1, 1e-6),
        _ratio(row.activation_bytes, other("standard", "activation_bytes")),
        _number(row.peak_bytes, 0, 1e-6),
        _number(row.disk_bytes, 0, 1e-6),
        _number(row.ttft_s, 2),
        _number(row.prefill_cpu_s, 2),
        _ratio(row.prefill_cpu_s, other("last-token-head", "prefill_cpu_s")),
        _number(row.decode_tokens_per_s, 1),
        _number(row.nats_per_token, 3),
        "–" if row.logit_difference is None else f"{row.logit_difference:.1g}",
    ]


def budget_table(rows: Sequence[BudgetRow]) -> str:
    """The longest contexts in Markdown."""
    lengths = {row.method: row.prompt_tokens for row in rows}
    header = (
        "method",
        "budget MB",
        "longest context",
        "/ standard",
        "/ chunked-prefill",
        "takes MB",
    )
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for row in rows:
        least = ", the time limit" if row.limited_by == "time" else ""
        cells = [
            row.method,
            _number(row.budget_bytes, 0, 1e-6),
            f"{row.prompt_tokens:,}{least}",
            _ratio(row.prompt_tokens, lengths.get("standard")),
            _ratio(row.prompt_tokens, lengths.get("chunked-prefill")),
            _number(row.activation_bytes, 1, 1e-6),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float | None, digits: int, factor: float = 1.0) -> str:
    return "–" if value is None else f"{value * factor:,.{digits}f}"


def _ratio(value: float | None, other: float | None) -> str:
    return f"{value / other:.2f}" if value and other else "–"


def plot(rows: Sequence[MemoryRow], path: Path) -> None:
    """Memory beside the weights, and time of the prefill, by length.

    Args:
        rows: of one run.
        path: a .png, .svg or .pdf file.
    """
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method and not row.error]
        own.sort(key=lambda row: row.prompt_tokens)
        memory = [row.activation_bytes and row.activation_bytes / 1e6 for row in own]
        times = [row.prefill_cpu_s for row in own]
        lengths = [row.prompt_tokens for row in own]
        lines.append(Line(method, lengths, (memory, times), ours=method == "mom"))
    titles = ("Activations and cache in memory (MB)", "Processor time of the prefill (s)")
    plot_panels(titles, lines, path)
