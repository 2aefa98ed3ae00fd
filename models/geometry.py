"""The geometry of the fixed-size KV cache (DESIGN §2, §2b). No torch: the runtime reads it too.

Letters used in shapes all over the project:
    B batch (1), L layers, H query heads, K KV heads, T new tokens, C cache capacity,
    D head dimension, V vocabulary, S sinks, G recall slots, N segment, W window
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from edgeinfinite import EdgeInfiniteError

POLICIES = ("reencode", "carry")


@dataclass(frozen=True)
class Geometry:
    """What the cache holds: `[S sinks | G recall slots | residual of at most N + W tokens]`.

    Args:
        segment_length: N, tokens folded into the memory at once.
        sink_length: S, first tokens of the text, attended by every segment, never compressed.
        window_length: W, newest tokens that a compression leaves in the cache, at least 1.
        policy: what stays in the cache at a compression; `reencode` is the paper's Algorithm 1,
            `carry` moves the window along and keeps recall slots (DESIGN §2b).
        recall_slots: G, pairs that the retention scorer keeps, a multiple of N; 0 under `reencode`.

    Raises:
        EdgeInfiniteError: a length is out of range or the policy is unknown.
    """

    segment_length: int = 2048
    sink_length: int = 300
    window_length: int = 200
    policy: str = "reencode"
    recall_slots: int = 0

    def __post_init__(self) -> None:
        least = {"segment_length": 1, "sink_length": 0, "window_length": 1, "recall_slots": 0}
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise EdgeInfiniteError(
                    f"{name.replace('_', ' ')} is {value!r}; "
                    f"give a whole number of at least {lowest}"
                )
        if self.policy not in POLICIES:
            raise EdgeInfiniteError(
                f"unknown policy {self.policy!r}; choose one of {', '.join(POLICIES)}"
            )
        if self.policy == "reencode" and self.recall_slots:
            raise EdgeInfiniteError("policy reencode has no recall slots; use --policy carry")
        if self.recall_slots % self.segment_length:
            # Otherwise the last slots could only be filled by dropping something too early.
            raise EdgeInfiniteError(
                f"{self.recall_slots} recall slots aren't a multiple of the segment length "
                f"{self.segment_length}; choose {self._nearest_slots()}"
            )

    def _nearest_slots(self) -> int:
        return max(1, round(self.recall_slots / self.segment_length)) * self.segment_length

    @property
    def capacity(self) -> int:
        """C = S + G + N + W, slots of the cache in every layer."""
        return self.sink_length + self.recall_slots + self.segment_length + self.window_length

    def to_dict(self) -> dict[str, Any]:
        """The geometry as it stands in the manifest."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Geometry:
        """The inverse of `to_dict`.

        Raises:
            EdgeInfiniteError: a field is missing, unknown, or out of range.
        """
        try:
            return cls(**fields)
        except TypeError as error:
            raise EdgeInfiniteError(f"geometry {fields!r} can't be read: {error}") from error
