"""The geometry of the fixed-size KV cache (docs/architecture.md). No torch: the runtime reads it.

Letters used in shapes all over the project:
    B batch (1), L layers, H query heads, K KV heads, T new tokens, C cache capacity,
    D head dimension, V vocabulary, S sinks, G recall slots, N segment, W window
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError

POLICIES = ("reencode", "carry")


@dataclass(frozen=True)
class Geometry:
    """What the cache holds: `[S sinks | G recall slots | residual of at most N + W tokens]`.

    Args:
        segment_length: N, tokens that one compression takes from the residual.
        sink_length: S, first tokens of the text, attended by every segment, never compressed.
        window_length: W, newest tokens that a compression leaves in the cache, at least 1.
        policy: what stays in the cache at a compression; `reencode` is the paper's Algorithm 1,
            `carry` moves the window along and keeps recall slots (docs/architecture.md).
        recall_slots: G, pairs that the retention scorer keeps in every layer, or one number for
            each layer; multiples of N, 0 under `reencode`.

    Raises:
        EdgeInfiniteError: a length is out of range or the policy is unknown.
    """

    segment_length: int = 2048
    sink_length: int = 300
    window_length: int = 200
    policy: str = "reencode"
    recall_slots: int | tuple[int, ...] = 0

    def __post_init__(self) -> None:
        for name, lowest in {"segment_length": 1, "sink_length": 0, "window_length": 1}.items():
            _check_number(name, getattr(self, name), lowest)
        given = _as_tuple(self.recall_slots)
        for slots in given:
            _check_number("recall_slots", slots, 0)
        if not given:
            raise EdgeInfiniteError("recall slots are an empty list; give one number a layer")
        # One form for one meaning: budgets that are all equal are a single number.
        object.__setattr__(self, "recall_slots", given if len(set(given)) > 1 else given[0])
        if self.policy not in POLICIES:
            raise EdgeInfiniteError(
                f"unknown policy {self.policy!r}; choose one of {', '.join(POLICIES)}"
            )
        if self.policy == "reencode" and self.most_slots:
            raise EdgeInfiniteError("policy reencode has no recall slots; use --policy carry")
        for slots in _as_tuple(self.recall_slots):
            if slots % self.segment_length:
                # Otherwise the last slots could only be filled by dropping something too early.
                nearest = max(1, round(slots / self.segment_length)) * self.segment_length
                raise EdgeInfiniteError(
                    f"{slots} recall slots aren't a multiple of the segment length "
                    f"{self.segment_length}; choose {nearest}"
                )

    @property
    def most_slots(self) -> int:
        """G of the layer that has most."""
        return max(_as_tuple(self.recall_slots))

    @property
    def longest_layer(self) -> int:
        """A layer with the most slots; no layer ever has more slots in use."""
        return _as_tuple(self.recall_slots).index(self.most_slots)

    @property
    def average_slots(self) -> int:
        """G of an average layer, rounded: the same bytes of state if every layer had it."""
        given = _as_tuple(self.recall_slots)
        return round(sum(given) / len(given))

    def slots_of(self, layer: int) -> int:
        """G of a layer."""
        return _as_tuple(self.recall_slots)[layer if self.varies else 0]

    @property
    def varies(self) -> bool:
        """Whether the layers have different numbers of recall slots."""
        return isinstance(self.recall_slots, tuple)

    @property
    def capacity(self) -> int:
        """C = S + G + N + W, slots of the largest layer's cache, and positions in use."""
        return self.sink_length + self.most_slots + self.segment_length + self.window_length

    def capacities(self, layers: int) -> list[int]:
        """C of every layer.

        Raises:
            EdgeInfiniteError: the recall slots are for another number of layers.
        """
        given = _as_tuple(self.recall_slots)
        if self.varies and len(given) != layers:
            raise EdgeInfiniteError(
                f"recall slots are given for {len(given)} layers, the model has {layers}"
            )
        fixed = self.capacity - self.most_slots
        return [fixed + self.slots_of(layer) for layer in range(layers)]

    def to_dict(self) -> dict[str, Any]:
        """The geometry as it stands in the manifest and in session files: what JSON gives back."""
        fields = asdict(self)
        if self.varies:
            fields["recall_slots"] = list(_as_tuple(self.recall_slots))
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Geometry:
        """The inverse of `to_dict`.

        Raises:
            EdgeInfiniteError: a field is missing, unknown, or out of range.
        """
        try:
            slots = fields.get("recall_slots", 0)
            return cls(
                **fields | {"recall_slots": tuple(slots) if isinstance(slots, list) else slots}
            )
        except TypeError as error:
            raise EdgeInfiniteError(f"geometry {fields!r} can't be read: {error}") from error


def _as_tuple(slots: int | tuple[int, ...]) -> tuple[int, ...]:
    return tuple(slots) if isinstance(slots, list | tuple) else (slots,)


def _check_number(name: str, value: object, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise EdgeInfiniteError(
            f"{name.replace('_', ' ')} is {value!r}; give a whole number of at least {lowest}"
        )
