"""The output of `bench`: a table with ratios to the best peer, and a plot of two panels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeinfinite.files import save_figure
from edgeinfinite.runtime_py.benchmark.case import Row
from edgeinfinite.runtime_py.benchmark.systems import PEERS

_HEADER = (
    "system",
    "settings",
    "prompt",
    "TTFT s",
    "prefill t/s",
    "decode t/s",
    "token ms",
    "slowest ms",
    "peak MB",
    "state MB",
    "file MB",
    "nats / token",
    "TTFT / best peer",
    "decode / best peer",
    "decode: share of bandwidth",
    "prefill: share of matrix rate",
)


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown, with each figure's ratio to the best peer at the same length."""
    lines = ["| " + " | ".join(_HEADER) + " |", "|" + " --- |" * len(_HEADER)]
    for row in rows:
        cells = [_label(row), row.settings, f"{row.prompt_tokens:,}"]
        cells += [row.error] if row.error else _cells(row, rows)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(row: Row, rows: Sequence[Row]) -> list[str]:
    peers = [
        r
        for r in rows
        if r.system in PEERS and r.prompt_tokens == row.prompt_tokens and not r.error
    ]
    first = min((r.ttft_s for r in peers if r.ttft_s), default=None)
    fastest = max((r.decode_tokens_per_s for r in peers if r.decode_tokens_per_s), default=None)
    return [
        _number(row.ttft_s, 2),
        _number(row.prefill_tokens_per_s, 0),
        _number(row.decode_tokens_per_s, 1),
        _number(row.median_token_s, 1, 1e3),
        _number(row.slowest_token_s, 1, 1e3),
        _number(row.peak_rss_bytes, 0, 1e-6),
        _number(row.state_bytes, 1, 1e-6),
        _number(row.file_bytes, 1, 1e-6),
        _number(row.nats_per_token, 3),
        _ratio(row.ttft_s, first),
        _ratio(row.decode_tokens_per_s, fastest),
        _percent(row.bandwidth_share),
        _percent(row.multiply_share),
    ]


def _label(row: Row) -> str:
    return f"{row.system} {row.quantization}".strip()


def _number(value: float | None, digits: int, factor: float = 1.0) -> str:
    return "–" if value is None else f"{value * factor:,.{digits}f}"


def _ratio(value: float | None, other: float | None) -> str:
    return f"{value / other:.2f}" if value and other else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Time to first token and peak memory against context length, both axes logarithmic.

    Args:
        rows: the rows of one run.
        path: a .png, .svg or .pdf file.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for name in dict.fromkeys((row.system, row.settings) for row in rows):
        line = sorted(
            (r for r in rows if (r.system, r.settings) == name and not r.error),
            key=lambda r: r.prompt_tokens,
        )
        if not line:
            continue
        ours = name[0].startswith("edgeinfinite")
        style: dict[str, Any] = {"marker": "o", "label": f"{_label(line[0])} ({name[1]})"}
        style |= {"linewidth": 2.5} if ours else {"linewidth": 1.2, "linestyle": "--"}
        lengths = [r.prompt_tokens for r in line]
        panels[0].plot(lengths, [r.ttft_s for r in line], **style)
        panels[1].plot(lengths, [(r.peak_rss_bytes or 0) / 1e6 for r in line], **style)
    for panel, label in zip(panels, ("time to first token (s)", "peak memory (MB)"), strict=True):
        panel.set(xscale="log", yscale="log", xlabel="prompt (tokens)", ylabel=label)
        ticks = sorted({row.prompt_tokens for row in rows})
        panel.set_xticks(ticks, [_thousands(t) for t in ticks])
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    save_figure(figure, path)
    pyplot.close(figure)


def _thousands(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens)
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else f"{tokens / 1000:g}k"
