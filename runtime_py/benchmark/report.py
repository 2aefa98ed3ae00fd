"""The output of `bench`: the five figures that decide, the other ones, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from edgeinfinite.runtime_py.benchmark.case import Row
from edgeinfinite.runtime_py.benchmark.panels import Line, plot_panels
from edgeinfinite.runtime_py.benchmark.systems import PEERS

_FIGURES = (
    "first token, s",
    "decode, tokens/s",
    "peak memory, MB",
    "state, MB",
    "loss, nats",
)
_DETAILS = (
    "prefill, tokens/s",
    "token, ms",
    "slowest token, ms",
    "file, MB",
    "first token / best peer's",
    "decode / best peer's",
    "decode, of memory's bandwidth",
    "prefill, of float32's products",
)


def table(rows: Sequence[Row]) -> str:
    """The five figures that decide, in Markdown, a line for each row."""
    return _markdown(_FIGURES, rows, _figures)


def details(rows: Sequence[Row]) -> str:
    """The other figures, with the ratios to the best peer at the same length.

    The last two columns are shares of what this machine reads and multiplies in float32; products
    of integers can be over 100 %.
    """
    return _markdown(_DETAILS, rows, lambda row: _detail(row, rows))


def _markdown(
    header: Sequence[str], rows: Sequence[Row], cells: Callable[[Row], Sequence[str]]
) -> str:
    names = ("system", "settings", "prompt", *header)
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        line = [_label(row), row.settings, f"{row.prompt_tokens:,}"]
        line += [row.error] if row.error else cells(row)
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def _figures(row: Row) -> list[str]:
    return [
        _number(row.ttft_s, 2),
        _number(row.decode_tokens_per_s, 1),
        _number(row.peak_rss_bytes, 0, 1e-6),
        _number(row.state_bytes, 1, 1e-6),
        _number(row.nats_per_token, 3),
    ]


def _detail(row: Row, rows: Sequence[Row]) -> list[str]:
    peers = [
        r
        for r in rows
        if r.system in PEERS and r.prompt_tokens == row.prompt_tokens and not r.error
    ]
    first = min((r.ttft_s for r in peers if r.ttft_s), default=None)
    fastest = max((r.decode_tokens_per_s for r in peers if r.decode_tokens_per_s), default=None)
    return [
        _number(row.prefill_tokens_per_s, 0),
        _number(row.median_token_s, 1, 1e3),
        _number(row.slowest_token_s, 1, 1e3),
        _number(row.file_bytes, 1, 1e-6),
        _ratio(row.ttft_s, first),
        _ratio(row.decode_tokens_per_s, fastest),
        _percent(row.bandwidth_share),
        _percent(row.multiply_share),
    ]


def _label(row: Row) -> str:
    return row.system if row.quantization in ("", "none") else f"{row.system} {row.quantization}"


def _number(value: float | None, digits: int, factor: float = 1.0) -> str:
    return "–" if value is None else f"{value * factor:,.{digits}f}"


def _ratio(value: float | None, other: float | None) -> str:
    return f"{value / other:.2f}" if value and other else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Time to first token and peak memory against the prompt's length.

    Args:
        rows: the rows of one run.
        path: a .png, .svg or .pdf file.
    """
    lines = []
    for system, settings in dict.fromkeys((row.system, row.settings) for row in rows):
        own = sorted(
            (r for r in rows if (r.system, r.settings) == (system, settings) and not r.error),
            key=lambda r: r.prompt_tokens,
        )
        times = [r.ttft_s for r in own]
        peaks = [r.peak_rss_bytes and r.peak_rss_bytes / 1e6 for r in own]
        label = f"{_label(own[0])} ({settings})" if own else ""
        lengths = [r.prompt_tokens for r in own]
        ours = system.startswith("edgeinfinite")
        lines.append(Line(label, lengths, (times, peaks), ours=ours))
    plot_panels(("Time to first token (s)", "Peak memory (MB)"), lines, path)
