"""The geometry of the KV cache (docs/develop/architecture.md). No torch: the runtime reads it.

Letters used in shapes all over the project:
    B batch (1), L layers, H query heads, K KV heads, T new tokens, C cache capacity,
    D head dimension, V vocabulary, S sinks, G recall slots, N segment, W window
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from msgspec import UNSET, UnsetType

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
            `carry` moves the window along and keeps recall slots (docs/develop/architecture.md).
        recall_slots: G, pairs that the retention scorer keeps in every layer, or one number for
            each layer; multiples of N, 0 under `reencode`.
        sliding_windows: of every layer, the newest tokens that a token sees in it, itself
            included; 0: it attends to everything. A layer with such a window holds it and nothing
            else: no sinks, no recall slots. Left out where all layers attend to everything. It is
            the backbone's, not the user's: `models.sliding` fills it in.

    Raises:
        EdgeInfiniteError: a length is out of range or the policy is unknown.
    """

    segment_length: int = 2048
    sink_length: int = 300
    window_length: int = 200
    policy: str = "reencode"
    recall_slots: int | tuple[int, ...] = 0
    sliding_windows: tuple[int, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.sliding_windows, UnsetType):
            self._check_windows(self.sliding_windows)
        for name, lowest in {"segment_length": 1, "sink_length": 0, "window_length": 1}.items():
            _check_number(name, getattr(self, name), lowest)
        given = _as_tuple(self.recall_slots)
        for slots in given:
            _check_number("recall_slots", slots, 0)
        if not given:
            raise EdgeInfiniteError("recall slots are an empty list; give one number a layer")
        object.__setattr__(self, "recall_slots", self._in_one_form(given))
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

    def _check_windows(self, windows: tuple[int, ...]) -> None:
        for window in windows:
            _check_number("sliding window", window, 0)
        if any(windows) and self.policy != "carry":
            raise EdgeInfiniteError(
                f"policy {self.policy} doesn't know layers with sliding windows; use --policy carry"
            )
        if not any(windows):
            object.__setattr__(self, "sliding_windows", UNSET)
        elif all(windows):
            raise EdgeInfiniteError("every layer has a sliding window; one must see everything")

    def _in_one_form(self, slots: tuple[int, ...]) -> int | tuple[int, ...]:
        """One form for one meaning: budgets that are all equal are a single number."""
        if len(slots) > 1 and not isinstance(self.sliding_windows, UnsetType):
            if len(slots) != len(self.sliding_windows):
                raise _for_other_layers(len(slots), len(self.sliding_windows))
            slots = tuple(0 if self.slides(layer) else g for layer, g in enumerate(slots))
        budgets = {g for layer, g in enumerate(slots) if not self.slides(layer) or len(slots) == 1}
        return slots if len(budgets) > 1 else budgets.pop()

    @property
    def _budgets(self) -> tuple[int, ...]:
        """G of the layers that attend to everything; a single number if it is the same."""
        return tuple(
            g
            for i, g in enumerate(_as_tuple(self.recall_slots))
            if not (self.varies and self.slides(i))
        )

    def slides(self, layer: int) -> bool:
        """Whether a layer has a sliding window."""
        return self.window_of(layer) > 0

    def window_of(self, layer: int) -> int:
        """The sliding window of a layer, 0: it attends to everything."""
        windows = self.sliding_windows
        return 0 if isinstance(windows, UnsetType) else windows[layer]

    @property
    def has_windows(self) -> bool:
        """Whether there are layers with sliding windows."""
        return not isinstance(self.sliding_windows, UnsetType)

    def kept_of(self, layer: int) -> int:
        """Tokens that a compression leaves in a layer with a sliding window.

        The next token sees itself and these.
        """
        return self.window_of(layer) - 1

    @cached_property
    def most_slots(self) -> int:
        """G of the layer that has most."""
        return max(self._budgets)

    @cached_property
    def longest_layer(self) -> int:
        """A layer that attends to everything, with the most slots.

        No other such layer ever has more slots in use, and a token's position is its slot there.
        """
        if self.varies:
            return _as_tuple(self.recall_slots).index(self.most_slots)
        windows = self.sliding_windows
        return 0 if isinstance(windows, UnsetType) else windows.index(0)

    @property
    def average_slots(self) -> int:
        """G of an average layer that attends to everything, rounded.

        If every such layer had it, the state would take the same bytes.
        """
        return round(sum(self._budgets) / len(self._budgets))

    def slots_of(self, layer: int) -> int:
        """G of a layer."""
        if self.slides(layer):
            return 0
        return _as_tuple(self.recall_slots)[layer if self.varies else 0]

    @property
    def varies(self) -> bool:
        """Whether the layers have different numbers of recall slots."""
        return isinstance(self.recall_slots, tuple)

    @property
    def capacity(self) -> int:
        """C = S + G + N + W of the layer with most recall slots, and positions in use."""
        return self.sink_length + self.most_slots + self.segment_length + self.window_length

    def capacities(self, layers: int) -> list[int]:
        """C of every layer: S + G + N + W, or its sliding window's other tokens and N more.

        Raises:
            EdgeInfiniteError: recall slots or sliding windows are for another number of layers.
        """
        given = _as_tuple(self.recall_slots)
        if self.varies and len(given) != layers:
            raise _for_other_layers(len(given), layers)
        windows = self.sliding_windows
        if not isinstance(windows, UnsetType) and len(windows) != layers:
            raise EdgeInfiniteError(
                f"sliding windows are given for {len(windows)} layers, the model has {layers}"
            )
        fixed = self.capacity - self.most_slots
        return [
            self.kept_of(layer) + self.segment_length
            if self.slides(layer)
            else fixed + self.slots_of(layer)
            for layer in range(layers)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The geometry as it stands in the manifest and in session files: what JSON gives back."""
        fields = asdict(self)
        if self.varies:
            fields["recall_slots"] = list(_as_tuple(self.recall_slots))
        windows = fields.pop("sliding_windows")
        return fields if windows is UNSET else fields | {"sliding_windows": list(windows)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Geometry:
        """The inverse of `to_dict`.

        Raises:
            EdgeInfiniteError: a field is missing, unknown, or out of range.
        """
        try:
            lists = {name: tuple(v) for name, v in fields.items() if isinstance(v, list)}
            return cls(**fields | lists)
        except TypeError as error:
            raise EdgeInfiniteError(f"geometry {fields!r} can't be read: {error}") from error


def _as_tuple(slots: int | tuple[int, ...]) -> tuple[int, ...]:
    return tuple(slots) if isinstance(slots, list | tuple) else (slots,)


def _for_other_layers(given: int, layers: int) -> EdgeInfiniteError:
    return EdgeInfiniteError(f"recall slots are given for {given} layers, the model has {layers}")


def _check_number(name: str, value: object, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise EdgeInfiniteError(
            f"{name.replace('_', ' ')} is {value!r}; give a whole number of at least {lowest}"
        )
