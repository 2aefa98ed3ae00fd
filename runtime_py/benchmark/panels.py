"""Pictures by prompt length: a panel for each message, axes from zero, the legend below all lines.

On an axis from zero a constant is level and twice as much is twice as high, which logarithmic axes
and cut ones don't show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgeinfinite.files import save_figure

_ROW_OF_LEGEND = 0.22
"""Inches."""


@dataclass(frozen=True)
class Line:
    """One system's figures.

    Args:
        label: what the legend says.
        lengths: prompt lengths in tokens, ascending.
        values: for each panel a figure for each length; None where it wasn't measured.
        ours: drawn thicker than what it is compared with.
    """

    label: str
    lengths: Sequence[int]
    values: Sequence[Sequence[float | None]]
    ours: bool = field(default=False, kw_only=True)


def plot_panels(titles: Sequence[str], lines: Sequence[Line], path: Path) -> None:
    """Draws a panel for each title, of each line what it has for that panel.

    Args:
        titles: what a panel shows, with its unit.
        lines: one for each system; those without lengths are left out.
        path: a .png, .svg or .pdf file.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = [line for line in lines if line.lengths]
    height = 4.2 + _ROW_OF_LEGEND * ((len(drawn) + 1) // 2)
    figure, panels = pyplot.subplots(
        1, len(titles), figsize=(5.5 * len(titles), height), layout="constrained", squeeze=False
    )
    for index, (panel, title) in enumerate(zip(panels[0], titles, strict=True)):
        for line in drawn:
            style: dict[str, Any] = {"marker": "o", "label": line.label}
            style |= {"linewidth": 2.5} if line.ours else {"linewidth": 1.2, "linestyle": "--"}
            values = [float("nan") if v is None else v for v in line.values[index]]
            panel.plot(line.lengths, values, **style)
        panel.set(title=title, xlabel="prompt (tokens)")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0, top=1.03 * panel.get_ylim()[1])
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(_figure)
        panel.grid(alpha=0.3)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    save_figure(figure, path)
    pyplot.close(figure)


def _figure(value: float, _position: int) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"
