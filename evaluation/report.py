"""Reports of `evaluate`: Markdown tables, loss by position, heat maps of length and depth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from edgeinfinite.evaluation.results import Row
from edgeinfinite.files import save_figure


def passkey_table(rows: Sequence[Row]) -> str:
    """Nats per answer token and exact answers, by method, length and kind.

    If questions were asked in turn, by their place instead of their kind.
    """
    by = "place" if all("place" in row for row in rows) else "kind"
    kinds = list(dict.fromkeys(row[by] for row in rows))
    header = ["method", "prompt", "state MB", "facts", "exact", "nats", *map(str, kinds)]
    lines = []
    for method, length in _ordered((row["method"], row["prompt_tokens"]) for row in rows):
        cell = [r for r in rows if (r["method"], r["prompt_tokens"]) == (method, length)]
        of_kind = [[r for r in cell if r[by] == kind] for kind in kinds]
        lines.append(
            [
                method,
                f"{length:,}",
                f"{cell[0]['state_bytes'] / 1e6:.1f}",
                str(len(cell)),
                f"{fmean(r['correct'] for r in cell):.0%}",
                f"{_nats(cell):.2f}",
                *(f"{_nats(part):.2f}" if part else "–" for part in of_kind),
            ]
        )
    return markdown(header, lines)


def perplexity_table(rows: Sequence[Row]) -> str:
    """Nats per token, one line per method, one column per bin."""
    starts = sorted({row["bin_start"] for row in rows})
    header = ["method", "state MB", "documents", *(f"{start:,}–" for start in starts)]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        bins = [[r for r in own if r["bin_start"] == start] for start in starts]
        lines.append(
            [
                method,
                f"{own[0]['state_bytes'] / 1e6:.1f}",
                str(len({row["document"] for row in own})),
                *(f"{mean_loss(part):.3f}" if part else "–" for part in bins),
            ]
        )
    return markdown(header, lines)


def plot_passkey(rows: Sequence[Row], path: Path) -> None:
    """A heat map of length and depth for each method, nats per answer token.

    Args:
        rows: of one run.
        path: a .png, .svg or .pdf file.
    """
    plots = pyplot()
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lengths = sorted({row["prompt_tokens"] for row in rows})
    steps = 5
    figure, panels = plots.subplots(
        1,
        len(methods),
        figsize=(1.5 + 3.2 * len(methods), 3.6),
        layout="constrained",
        squeeze=False,
    )
    highest = max(row["nats_per_digit_token"] for row in rows)
    for panel, method in zip(panels[0], methods, strict=True):
        grid = [
            [
                _nats(
                    [
                        row
                        for row in rows
                        if row["method"] == method
                        and row["prompt_tokens"] == length
                        and min(int(row["depth"] * steps), steps - 1) == step
                    ]
                )
                for length in lengths
            ]
            for step in range(steps)
        ]
        image = panel.imshow(grid, vmin=0, vmax=highest, cmap="RdYlGn_r", aspect="auto")
        for step, line in enumerate(grid):
            for column, value in enumerate(line):
                if value == value:  # nan beyond full attention's positions
                    panel.text(column, step, f"{value:.1f}", ha="center", va="center", fontsize=8)
        panel.set(title=method, xlabel="prompt (tokens)")
        panel.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths])
        panel.set_yticks(range(steps), [f"{step / steps:.0%}–" for step in range(steps)])
    panels[0][0].set_ylabel("depth of the fact")
    figure.colorbar(image, ax=panels[0].tolist(), label="nats per answer token")
    save_figure(figure, path)
    plots.close(figure)


def plot_perplexity(rows: Sequence[Row], path: Path) -> None:
    """Loss by position, a line for each method.

    Args:
        rows: of one run.
        path: a .png, .svg or .pdf file.
    """
    plots = pyplot()
    figure, panel = plots.subplots(figsize=(7, 4.5), layout="constrained")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        starts = sorted({row["bin_start"] for row in own})
        bins = [[r for r in own if r["bin_start"] == start] for start in starts]
        middles = [(part[0]["bin_start"] + part[0]["bin_end"]) / 2 for part in bins]
        label = f"{method} ({own[0]['state_bytes'] / 1e6:.0f} MB)"
        panel.plot(middles, [mean_loss(part) for part in bins], marker="o", label=label)
    panel.set(xlabel="position (tokens)", ylabel="nats per token")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    save_figure(figure, path)
    plots.close(figure)


def pyplot() -> Any:
    """Matplotlib with a backend that draws into files."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def _nats(rows: Sequence[Row]) -> float:
    return fmean(row["nats_per_digit_token"] for row in rows) if rows else float("nan")


def mean_loss(rows: Sequence[Row]) -> float:
    """Nats per token over all tokens of the rows of `evaluate perplexity`."""
    tokens = sum(row["tokens"] for row in rows)
    return sum(row["nats_per_token"] * row["tokens"] for row in rows) / tokens


def _ordered(keys: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(dict.fromkeys(keys), key=lambda key: key[1])  # stable: methods keep their order


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))
