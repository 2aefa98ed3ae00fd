"""Layers with sliding windows, as the backbone has them: what they make of a geometry."""

from __future__ import annotations

from dataclasses import replace

from msgspec import UNSET

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import Architecture


def with_windows(geometry: Geometry, facts: Architecture) -> Geometry:
    """The geometry with the backbone's sliding windows in it.

    Layers with a sliding window hold that window and nothing else, so sinks, recall slots and W are
    those of the other layers. If there are no other layers, the longest window is W, and sinks are
    of no use: this is what the backbone itself computes.

    Under `reencode` the windows stay out: every layer has the same slots, and its own mask.

    Args:
        geometry: as it was chosen; windows in it are replaced.
        facts: of the backbone.

    Raises:
        EdgeInfiniteError: recall slots are asked for, but no layer can look back to them.
    """
    windows = facts.sliding_windows
    if geometry.policy != "carry" or not any(windows):
        return replace(geometry, sliding_windows=UNSET)
    if not all(windows):
        return replace(geometry, sliding_windows=windows)
    longest = max(windows)
    if geometry.most_slots:
        raise EdgeInfiniteError(
            f"in {facts.name} every layer sees its newest {longest} tokens only, so recall slots "
            "are of no use; leave them out"
        )
    return replace(
        geometry,
        sink_length=0,
        window_length=max(1, longest - 1),
        sliding_windows=tuple(0 if window == longest else window for window in windows),
    )
