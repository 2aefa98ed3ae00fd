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

_NEWER = ("repeats_recency",)
"""Fields that the first cards don't have."""


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
            Further slots hold pairs above the scorer's keep threshold, else the newest pairs. A
            layer with more than twice as many slots fills half of this number by rank and as many
            with the newest pairs; a scorer's second network, `RetentionScorer.repeats`, ranks the
            pairs that are left.
        repeats_recency: in place of `recency` among the pairs that the second network ranks.

    Raises:
        EdgeInfiniteError: a number is out of range.
    """

    pooled_share: float = 0.8
    neighbours: int = 8
    neighbours_share: float = 0.5
    recency: float = 2.5e-4
    newest_share: float = 0.5
    ranked_slots: int = 512
    repeats_recency: float = 5e-5

    def __post_init__(self) -> None:
        for name in ("pooled_share", "neighbours_share", "newest_share"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be from 0 to 1")
        for name in ("neighbours", "ranked_slots"):
            value = getattr(self, name)
            if value < 0:
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be 0 or more")
        for name in ("recency", "repeats_recency"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be above 0")

    def newest_slots(self, slots: int) -> int:
        """How many of a layer's slots hold what is newest, whatever its rank."""
        return min(int(self.newest_share * slots), max(0, slots - self.ranked_slots))

    def needs_repeats(self, slots: int) -> bool:
        """Whether a layer with so many slots gives some to a scorer's second network."""
        return slots > 2 * self.ranked_slots

    def beside_repeats(self) -> int:
        """Slots filled by rank, at least one, beside those for which the second network ranks.

        As many hold the newest pairs.
        """
        return max(1, self.ranked_slots // 2)

    def to_json(self) -> str:
        """One line for a card.

        Fields that are newer than the first cards are left out where they have their defaults, so
        that a rule's text, and with it the fingerprint of saved states, stays what it was.
        """
        told = asdict(self)
        for field in fields(self):
            if field.name in _NEWER and told[field.name] == field.default:
                del told[field.name]
        return msgspec.json.encode(told, order="sorted").decode()

    @classmethod
    def from_json(cls, text: str) -> RankRule:
        """The inverse of `to_json`.

        Raises:
            EdgeInfiniteError: a field is missing, unknown or out of range.
        """
        try:
            known: dict[str, Any] = msgspec.json.decode(text, type=dict)
            names = {field.name for field in fields(cls)}
            lacking = names - set(known) - set(_NEWER)
            if lacking or set(known) - names:
                raise EdgeInfiniteError(f"rank rule {text} isn't one that this version knows")
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise EdgeInfiniteError(f"rank rule {text} can't be read: {error}") from error
