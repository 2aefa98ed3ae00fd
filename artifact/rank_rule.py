"""How scores become ranks: which pairs stay in the recall slots under `carry`.

The rule belongs to the scorer that was trained for it: it stands on the scorer's card and in the
manifest, and fingerprints of saved states cover it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import msgspec

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class RankRule:
    """How pairs are ranked for the recall slots; experiments/recall.md has the measurements.

    Args:
        pooled_share: how much of a pair's score is the pooled score of all retrieval heads; the
            rest is the head's own.
        neighbours: pairs on either side that count towards a pair's rank: words and sentences stay
            together.
        neighbours_share: how much of the rank is the best score among the neighbours; the rest is
            the pair's own.
        recency: added to the rank for each slot nearer to the present; scores are of the order of
            1. It decides in streaming heads, and between two pairs of one token.
        newest_share: the layer's slots beyond `ranked_slots`, at most this share of all its slots,
            hold the newest pairs: few pairs are asked for much later, and ordinary text needs near
            ones.
        ranked_slots: number of a layer's slots that are filled by rank, if it has that many.
            Further slots hold pairs above the scorer's keep threshold, else the newest pairs.
            In a cache of more than twice as many slots a scorer's second network ranks the pairs
            that are left: half of `ranked_slots` are filled by score then, as many hold the newest
            pairs.

    Raises:
        EdgeInfiniteError: a number is out of range.
    """

    pooled_share: float = 0.8
    neighbours: int = 8
    neighbours_share: float = 0.5
    recency: float = 2.5e-4
    newest_share: float = 0.5
    ranked_slots: int = 512

    def __post_init__(self) -> None:
        for name in ("pooled_share", "neighbours_share", "newest_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise EdgeInfiniteError(
                    f"rank rule: {name} is {getattr(self, name)}; it must be from 0 to 1"
                )
        for name in ("neighbours", "ranked_slots"):
            if getattr(self, name) < 0:
                raise EdgeInfiniteError(
                    f"rank rule: {name} is {getattr(self, name)}; it must be 0 or more"
                )
        if not (math.isfinite(self.recency) and self.recency > 0):
            raise EdgeInfiniteError(f"rank rule: recency is {self.recency}; it must be above 0")

    def newest_slots(self, slots: int) -> int:
        """How many of a layer's slots hold what is newest, whatever its rank."""
        return min(int(self.newest_share * slots), max(0, slots - self.ranked_slots))

    def to_json(self) -> str:
        """One line for a card."""
        return msgspec.json.encode(asdict(self), order="sorted").decode()

    @classmethod
    def from_json(cls, text: str) -> RankRule:
        """The inverse of `to_json`.

        Raises:
            EdgeInfiniteError: a field is missing, unknown or out of range.
        """
        try:
            known: dict[str, Any] = msgspec.json.decode(text, type=dict)
            if set(known) != {field.name for field in fields(cls)}:
                raise EdgeInfiniteError(f"rank rule {text} isn't one that this version knows")
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise EdgeInfiniteError(f"rank rule {text} can't be read: {error}") from error
