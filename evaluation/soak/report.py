"""What a soak found, in lines and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.evaluation.soak.run import SoakRow
from edgeinfinite.files import save_figure

MOST_DIVERGENCE = 0.05
"""Nats: artifacts that round activations to 8 bits, and near ties between ranks, differ by 0.01."""

MOST_DRIFT = 1e-4
"""Relative: a thousand times float32's precision."""

MOST_GROWTH = 32_000_000
"""Bytes that the last stretch may end with above the most of the first fifth."""


def failures(rows: Sequence[SoakRow]) -> list[str]:
    """A line for everything that must not happen and did."""
    found = []
    for row in rows:
        at = f"after {row.tokens_read:,} tokens"
        if not row.fork_ok:
            found.append(f"{at} a fork changed the session that it came from")
        if row.split_kl > MOST_DIVERGENCE:
            found.append(f"{at} cutting a text moved the prediction by {row.split_kl:.3g} nats")
        if (row.drift or 0.0) > MOST_DRIFT:
            found.append(f"{at} the memory's sums are {row.drift:.2g} off")
    # Runtimes allocate for every length of a piece that they see for the first time.
    settled = max(row.rss_bytes or 0 for row in rows[: max(1, len(rows) // 5)])
    last = rows[-1].rss_bytes or 0
    if last - settled > MOST_GROWTH:
        found.append(f"memory grew from {settled / 1e6:,.0f} to {last / 1e6:,.0f} MB")
    return found


def summary(rows: Sequence[SoakRow], geometry: Geometry) -> list[str]:
    """What was measured.

    Args:
        rows: at least one.
        geometry: of the artifact.
    """
    first, last = rows[0], rows[-1]
    speeds = sorted(row.tokens_per_s for row in rows)
    lines = [
        f"{last.tokens_read:,} tokens, {last.compressions:,} compressions under "
        f"{geometry.policy}, {speeds[len(speeds) // 2]:,.0f} tokens/s in the median"
    ]
    if first.rss_bytes is not None and last.rss_bytes is not None:
        most = max(row.rss_bytes or 0 for row in rows)
        lines.append(
            f"memory {first.rss_bytes / 1e6:,.0f} MB after {first.tokens_read:,} tokens, "
            f"{last.rss_bytes / 1e6:,.0f} at the end, {most / 1e6:,.0f} at most"
        )
    lines.append(
        f"{len(rows)} times saved and restored bit for bit, {sum(r.fork_ok for r in rows)} forks "
        f"that changed nothing, cut texts moved predictions by at most "
        f"{max(row.split_kl for row in rows):.2g} nats"
    )
    for kind, size in last.rms.items():
        lines.append(f"{kind}: rms {first.rms.get(kind, 0.0):.3g} -> {size:.3g}")
    if last.drift is not None:
        lines.append(f"the memory's float32 sums are {last.drift:.2g} off those in float64")
    return lines


def plot(rows: Sequence[SoakRow], path: Path) -> None:
    """Memory, speed and the state's size against tokens read.

    Args:
        rows: at least one.
        path: a .png, .svg or .pdf file.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    tokens = [row.tokens_read for row in rows]
    panels[0].plot(tokens, [(row.rss_bytes or 0) / 1e6 for row in rows])
    panels[0].set(ylabel="resident memory (MB)")
    panels[1].plot(tokens, [row.tokens_per_s for row in rows])
    panels[1].set(ylabel="tokens per second")
    sizes = {kind: [row.rms.get(kind, 0.0) for row in rows] for kind in rows[-1].rms}
    for kind, values in sizes.items():
        panels[2].plot(tokens, values, label=kind.replace("_", " "))
    panels[2].set(ylabel="root mean square of the state")
    drawn = [value for values in sizes.values() for value in values if value > 0]
    if drawn and max(drawn) > 100 * min(drawn):  # sums of a memory beside keys: no common scale
        panels[2].set_yscale("log")
    figure.legend(loc="outside lower right", ncols=len(sizes), fontsize=8)
    for panel in panels:
        panel.set(xlabel="tokens read")
        panel.locator_params(axis="x", nbins=3)
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.grid(alpha=0.3)
        if panel.get_yscale() == "linear":
            panel.set_ylim(bottom=0)
    save_figure(figure, path)
    pyplot.close(figure)
