"""Geometry options of the user, and the defaults of each policy.

No torch here: the command line reads this before loading torch.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.recall_slots import RecallSlots

_LENGTHS = ("policy", "segment_length", "sink_length", "window_length")

CARRY_LENGTHS = {"segment_length": 128, "sink_length": 64, "window_length": 448}
"""Under `carry` short segments cost only time, and lose less. A shorter window leaves more recall
slots, and loses more per token (experiments/recall.md)."""

CARRY_SLOTS = {"float32": 512, "float16": 512, "int8": 1536}
"""Average recall slots under `carry` with a known scorer, by the cache's dtype. Those of bytes are
what the state of 512 in float16 has room for, scores included (docs/results/recall.md). Without a
scorer the window is longer by as many, so that the state takes the same bytes."""


@dataclass(frozen=True)
class GeometryOptions:
    """Geometry options of the user; None takes the policy's default, or the model's policy.

    Args:
        policy: None takes `carry`; the paper's `reencode` if a gate is asked for without a scorer.
        segment_length, sink_length, window_length: None takes the paper's lengths for `reencode`,
            and `CARRY_LENGTHS` for `carry`, the window longer by `CARRY_SLOTS` without a scorer.
        recall_slots: as in `Geometry`, or `trained`, or `trained:1920` for 1920 on average and more
            in retrieval layers; None takes `trained` under `carry` if a scorer is known, else 0.
        state_mb: largest size of the state in MB, which chooses the segment length (`reencode`) or
            the recall slots (`carry`), and shorter segments for a small state of a hybrid model;
            None keeps the lengths as given.

    Raises:
        EdgeInfiniteError: a value is wrong whatever the other values are.
    """

    policy: str | None = None
    segment_length: int | None = None
    sink_length: int | None = None
    window_length: int | None = None
    recall_slots: int | tuple[int, ...] | str | None = None
    state_mb: float | None = None

    @classmethod
    def of(cls, geometry: Geometry) -> GeometryOptions:
        """The options that come to a geometry; sliding windows are the backbone's."""
        lengths = {name: getattr(geometry, name) for name in _LENGTHS}
        return cls(**lengths, recall_slots=geometry.recall_slots)

    def __post_init__(self) -> None:
        Geometry(**self._lengths())
        if self.state_mb is not None and not 0 < self.state_mb < math.inf:
            raise EdgeInfiniteError(f"--state-mb is {self.state_mb}; give megabytes, such as 40")
        slots = self.slots
        if self.policy == "reencode" and (slots.by_card or slots.number):
            raise EdgeInfiniteError("policy reencode has no recall slots; use --policy carry")

    @cached_property
    def slots(self) -> RecallSlots:
        """What `recall_slots` means."""
        return RecallSlots.of(self.recall_slots)

    @property
    def may_recall(self) -> bool:
        """Whether there will be recall slots if there is a scorer to fill them."""
        return self.policy != "reencode" and not self.slots.none

    def policy_for(self, *, scorer: bool, gate: bool = False) -> str:
        """The policy that was given, or the one that `resolve` takes."""
        return self.policy or ("reencode" if gate and not scorer else "carry")

    def resolve(
        self,
        *,
        scorer: bool,
        gate: bool = False,
        cache_type: str = "int8",
        positions: int | None = None,
    ) -> Geometry:
        """The geometry; slots that a card will divide are still the average in every layer.

        Args:
            scorer: whether a scorer is known for the model.
            gate: whether a gate is asked for.
            cache_type: dtype of the caches, which decides how many slots are the default.
            positions: the backbone's trained positions; the default's slots stay within them. None
                doesn't limit them.

        Raises:
            EdgeInfiniteError: the values don't go together.
        """
        asked = self._lengths()
        if self.slots.number is not None:
            asked["recall_slots"] = self.slots.number
        asked["policy"] = self.policy_for(scorer=scorer, gate=gate)
        if asked["policy"] != "carry":
            return Geometry(**asked)
        lengths, slots = dict(CARRY_LENGTHS), CARRY_SLOTS[cache_type]
        if "recall_slots" not in asked:
            room = sys.maxsize  # the default's slots stay within the positions
            if positions is not None:
                room = max(0, positions - sum((lengths | asked)[name] for name in lengths))
            if scorer or self.slots.by_card:
                segment = asked.get("segment_length", lengths["segment_length"])
                asked["recall_slots"] = (
                    max(1, min(round(slots / segment), room // segment)) * segment
                )
            else:
                lengths["window_length"] += min(slots, room)
        return Geometry(**lengths | asked)

    def _lengths(self) -> dict[str, Any]:
        """Policy and lengths that were given."""
        asked = {name: getattr(self, name) for name in _LENGTHS}
        return {name: value for name, value in asked.items() if value is not None}
