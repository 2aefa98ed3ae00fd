"""Table and plot of `exact_and_fixed.py`'s rows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMES = {
    "fixed": "fixed state, recall slots, int4",
    "streaming": "StreamingLLM, as many slots, int4",
    "mom": "exact: --engine mom, float32",
    "llama.cpp": "llama.cpp, q8_0 cache, Q4_1",
    "beyond": "exact beyond 8k",
    "part": "exact beyond 8k, prefill from 3 of 30 layers",
    "filled": "exact beyond 8k, decode alone",
}
SPEED_ALONE = ("beyond", "part", "filled")
"""Systems whose loss and recall say nothing."""

_PREFILL_OF_PART = 29 / 2
"""Layers that attend in full, of thirty and of three: in the last one only a token does."""

_COLUMNS = (
    "prompt",
    "system",
    "peak MB",
    "cache or state MB",
    "prefill CPU s",
    "decode CPU ms a token",
    "loss",
    "facts told",
    "nats",
)
_PANELS = {
    "peak_rss_bytes": ("peak of memory (MB)", 1e-6),
    "state_bytes": ("cache or state (MB)", 1e-6),
    "prefill_cpu_s": ("prefill (s of processor time)", 1.0),
    "decode_cpu_ms": ("decode (ms of processor time a token)", 1.0),
    "nats_per_token": ("loss (nats a token)", 1.0),
    "nats_per_answer_token": ("recall: nats an answer's token", 1.0),
}
"""Label and scale of a row's figures."""


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown; medians of times and memory, means of losses, sums of facts over equal texts."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    cases = {(row["system"], row["prompt_tokens"]) for row in rows}
    for system, length in sorted(cases, key=lambda case: (case[1], [*NAMES].index(case[0]))):
        same = [r for r in rows if (r["system"], r["prompt_tokens"]) == (system, length)]
        errors = [row["error"] for row in same if row.get("error")]
        cells = [f"{length:,}", NAMES[system], *(errors[:1] or _cells(same))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    def middle(name: str, scale: float, digits: int) -> str:
        values = [row[name] for row in rows if name in row]
        return f"{scale * statistics.median(values):,.{digits}f}" if values else "–"

    times = _PREFILL_OF_PART if rows[0]["system"] == "part" else 1.0
    cells = [
        middle("peak_rss_bytes", 1e-6, 0),
        middle("state_bytes", 1e-6, 1),
        middle("prefill_cpu_s", times, 1),
        middle("decode_cpu_ms", 1.0, 0),
    ]
    if rows[0]["system"] in SPEED_ALONE:
        return [*cells, "–", "–", "–"]
    exact, facts = (sum(row[name] for row in rows) for name in ("exact", "facts"))
    losses = ("nats_per_token", "nats_per_answer_token")
    loss, nats = (statistics.mean(row[name] for row in rows) for name in losses)
    return [*cells, f"{loss:.3f}", f"{exact} of {facts}", f"{nats:.2f}"]


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Memory, cache, prefill, decode, loss and recall by length."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from edgeinfinite.files import save_figure

    good = [row for row in rows if not row.get("error")]
    ticks = sorted({row["prompt_tokens"] for row in good})
    figure, panels = pyplot.subplots(2, 3, figsize=(14, 8), layout="constrained")
    for panel, (name, (label, scale)) in zip(panels.flat, _PANELS.items(), strict=True):
        for index, (system, title) in enumerate(NAMES.items()):
            if not any(row["system"] == system for row in good):
                continue
            points: dict[int, list[float]] = {}
            for row in good:
                if row["system"] == system and name in row:
                    points.setdefault(row["prompt_tokens"], []).append(row[name])
            times = _PREFILL_OF_PART if (system, name) == ("part", "prefill_cpu_s") else 1
            values = [times * scale * statistics.mean(points[at]) for at in sorted(points)]
            style = {"linestyle": ":"} if system in SPEED_ALONE else {}
            color = f"C{2 if system in SPEED_ALONE else index}"  # as `mom`
            marker = "x" if system == "part" else "o"
            panel.plot(sorted(points), values, marker=marker, color=color, label=title, **style)
        panel.set(xscale="log", xlabel="prompt (tokens)", ylabel=label)
        panel.set_yscale("linear" if name.startswith("nats") else "log")
        panel.set_xticks(ticks, [f"{tick // 1024}k" for tick in ticks])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    save_figure(figure, path)
    pyplot.close(figure)
