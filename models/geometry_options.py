"""Geometry options of the user, and the defaults of each policy.

No torch here: the command line reads this before loading torch.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, fields
from typing import Any

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

TRAINED_SLOTS = "trained"
"""The option value that divides the recall slots among the layers by the scorer's card:
`CARRY_SLOTS` on average, or another average as in `trained:1920`."""

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

    Raises:
        EdgeInfiniteError: a value is wrong whatever the other values are.
    """

    policy: str | None = None
    segment_length: int | None = None
    sink_length: int | None = None
    window_length: int | None = None
    recall_slots: int | tuple[int, ...] | str | None = None

    @classmethod
    def of(cls, geometry: Geometry) -> GeometryOptions:
        """The options that come to a geometry; sliding windows are the backbone's."""
        return cls(**{option.name: getattr(geometry, option.name) for option in fields(cls)})

    def __post_init__(self) -> None:
        plain = {name: value for name, value in self._given().items() if name != "recall_slots"}
        Geometry(**plain)
        if isinstance(self.recall_slots, str):
            self._trained_average()
        if self.policy == "reencode" and self.recall_slots:
            raise EdgeInfiniteError("policy reencode has no recall slots; use --policy carry")

    @property
    def trained_slots(self) -> bool:
        """Whether the scorer's card divides the recall slots among the layers."""
        return isinstance(self.recall_slots, str)

    def _trained_average(self) -> int | None:
        name, _, average = str(self.recall_slots).partition(":")
        if name != TRAINED_SLOTS or (average and not average.isdecimal()):
            raise EdgeInfiniteError(
                f"recall slots are {self.recall_slots!r}; give a number, one a layer, "
                f"{TRAINED_SLOTS}, or {TRAINED_SLOTS}:1920 for so many on average"
            )
        return int(average) if average else None

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
        asked = self._given()
        if self.trained_slots:
            del asked["recall_slots"]
            if (average := self._trained_average()) is not None:
                asked["recall_slots"] = average
        asked["policy"] = self.policy_for(scorer=scorer, gate=gate)
        if asked["policy"] != "carry":
            return Geometry(**asked)
        lengths, slots = dict(CARRY_LENGTHS), CARRY_SLOTS[cache_type]
        if "recall_slots" not in asked:
            room = sys.maxsize  # the default's slots stay within the positions
            if positions is not None:
                room = max(0, positions - sum((lengths | asked)[name] for name in lengths))
            if scorer or self.trained_slots:
                segment = asked.get("segment_length", lengths["segment_length"])
                asked["recall_slots"] = (
                    max(1, min(round(slots / segment), room // segment)) * segment
                )
            else:
                lengths["window_length"] += min(slots, room)
        return Geometry(**lengths | asked)

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}
