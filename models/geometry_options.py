"""What a user may ask of the geometry, and the defaults of each policy.

No torch: the command line reads it before any is loaded.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

TRAINED_SLOTS = "trained"
"""Asks for recall slots divided among the layers as a scorer's card recommends: `CARRY_SLOTS` on
average, or another average as `trained:1920`."""

CARRY_LENGTHS = {"segment_length": 128, "sink_length": 64, "window_length": 448}
"""Under `carry` short segments cost nothing but time, and lose less. A shorter window leaves
more slots to recall, and loses more per token (experiments/recall.md)."""

CARRY_SLOTS = 512
"""Recall slots under `carry` where a scorer is known; experiments/recall.md has it measured."""


@dataclass(frozen=True)
class GeometryOptions:
    """What a user asks of the geometry; None leaves it to the policy, or the policy to the model.

    Args:
        policy: None is `carry` where a scorer is known for the model, else the paper's `reencode`.
        segment_length, sink_length, window_length: None is the policy's own length: the paper's
            for `reencode`, `CARRY_LENGTHS` for `carry`.
        recall_slots: as in `Geometry`, or `trained` or `trained:1920`, 1920 on average, more in
            layers that recall; None is `CARRY_SLOTS` on average under `carry` where a scorer is
            known, else 0.

    Raises:
        EdgeInfiniteError: a value is wrong whatever the others are.
    """

    policy: str | None = None
    segment_length: int | None = None
    sink_length: int | None = None
    window_length: int | None = None
    recall_slots: int | tuple[int, ...] | str | None = None

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

    def resolve(self, *, scorer: bool) -> Geometry:
        """The geometry meant; where a card divides the slots, every layer has the average here.

        Args:
            scorer: whether one is known for the model.

        Raises:
            EdgeInfiniteError: the values don't go together.
        """
        asked = self._given()
        if self.trained_slots:
            del asked["recall_slots"]
            if (average := self._trained_average()) is not None:
                asked["recall_slots"] = average
        if asked.setdefault("policy", "carry" if scorer else "reencode") == "reencode":
            return Geometry(**asked)
        asked = CARRY_LENGTHS | asked
        if (scorer or self.trained_slots) and "recall_slots" not in asked:
            segment = asked["segment_length"]
            asked["recall_slots"] = max(1, round(CARRY_SLOTS / segment)) * segment
        return Geometry(**asked)

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}
