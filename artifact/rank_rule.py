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

_NEWER = "repeats_"
"""The first cards don't have fields whose names begin so."""

_ROUNDING = 1e-9


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
        repeats_above: a layer with more slots than this gives some to a scorer's second network,
            `RetentionScorer.repeats`. None: twice `ranked_slots`.
        repeats_scored_share: share of such a layer's slots that are filled by rank, beside pairs
            above the keep threshold. None: half of `ranked_slots`.
        repeats_newest_share: share of such a layer's slots that hold the newest pairs. None: half
            of `ranked_slots`. The second network ranks the pairs that are left.
        repeats_recency: in place of `recency` among the pairs that the second network ranks.

    Raises:
        EdgeInfiniteError: a number is out of range, or only some of `repeats_above`,
            `repeats_scored_share` and `repeats_newest_share` are None.
    """

    pooled_share: float = 0.8
    neighbours: int = 8
    neighbours_share: float = 0.5
    recency: float = 2.5e-4
    newest_share: float = 0.5
    ranked_slots: int = 512
    repeats_above: int | None = None
    repeats_scored_share: float | None = None
    repeats_newest_share: float | None = None
    repeats_recency: float = 5e-5

    def __post_init__(self) -> None:
        for name in (
            "pooled_share",
            "neighbours_share",
            "newest_share",
            "repeats_scored_share",
            "repeats_newest_share",
        ):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be from 0 to 1")
        for name in ("neighbours", "ranked_slots", "repeats_above"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be 0 or more")
        for name in ("recency", "repeats_recency"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise EdgeInfiniteError(f"rank rule: {name} is {value}; it must be above 0")
        self._check_shares()

    def _check_shares(self) -> None:
        """Refuses shares of which some lack, or that are more than all slots."""
        given = {
            name: getattr(self, name)
            for name in ("repeats_above", "repeats_scored_share", "repeats_newest_share")
        }
        lacking = [name for name, value in given.items() if value is None]
        if lacking and len(lacking) < len(given):
            raise EdgeInfiniteError(
                f"rank rule: {', '.join(lacking)} must be given too, or none of {', '.join(given)}"
            )
        shares = (self.repeats_scored_share or 0) + (self.repeats_newest_share or 0)
        if shares > 1 + _ROUNDING:
            raise EdgeInfiniteError(
                f"rank rule: repeats_scored_share and repeats_newest_share sum to {shares}; they "
                "must leave the second network its share, so at most 1"
            )

    def newest_slots(self, slots: int) -> int:
        """How many of a layer's slots hold what is newest, whatever its rank."""
        return min(int(self.newest_share * slots), max(0, slots - self.ranked_slots))

    def needs_repeats(self, slots: int) -> bool:
        """Whether a layer with so many slots gives some to a scorer's second network."""
        above = 2 * self.ranked_slots if self.repeats_above is None else self.repeats_above
        return slots > above

    def beside_repeats(self, slots: int) -> tuple[int, int]:
        """Slots filled by rank, at least one, and slots of the newest pairs.

        The second network ranks the pairs for the others, where `needs_repeats` is true.
        """
        if self.repeats_scored_share is None or self.repeats_newest_share is None:
            half = max(1, self.ranked_slots // 2)
            return half, half
        scored, newest = self.repeats_scored_share * slots, self.repeats_newest_share * slots
        return max(1, int(scored)), int(newest)

    def to_json(self) -> str:
        """One line for a card.

        Fields that are newer than the first cards are left out where they have their defaults, so
        that a rule's text, and with it the fingerprint of saved states, stays what it was.
        """
        told = asdict(self)
        for field in fields(self):
            if field.name.startswith(_NEWER) and told[field.name] == field.default:
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
            lacking = {name for name in names - set(known) if not name.startswith(_NEWER)}
            if lacking or set(known) - names:
                raise EdgeInfiniteError(f"rank rule {text} isn't one that this version knows")
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise EdgeInfiniteError(f"rank rule {text} can't be read: {error}") from error
