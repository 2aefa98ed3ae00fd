"""What `--recall-slots` asks for, read once. No torch: the command line imports this."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file

TRAINED_SLOTS = "trained"
"""The value that divides the recall slots among the layers by the scorer's card: the default number
on average, or another average as in `trained:1920`."""


@dataclass(frozen=True)
class RecallSlots:
    """How many recall slots there are, and who divides them among the layers.

    Args:
        number: G of every layer, or one number a layer; None takes the policy's default.
        by_card: whether the number is an average, which the scorer's card divides.
    """

    number: int | tuple[int, ...] | None = None
    by_card: bool = False

    @property
    def none(self) -> bool:
        """Whether no recall slots are wanted."""
        return self.number == 0

    @classmethod
    def of(cls, asked: int | tuple[int, ...] | str | None) -> RecallSlots:
        """What options hold: numbers as in `Geometry`, `trained`, `trained:1920`, or nothing.

        Raises:
            EdgeInfiniteError: a text that is neither.
        """
        if not isinstance(asked, str):
            return cls(asked)
        name, _, average = asked.partition(":")
        if name != TRAINED_SLOTS or (average and not average.isdecimal()):
            raise EdgeInfiniteError(
                f"recall slots are {asked!r}; give a number, one a layer, "
                f"{TRAINED_SLOTS}, or {TRAINED_SLOTS}:1920 for so many on average"
            )
        return cls(int(average) if average else None, by_card=True)


def typed_slots(text: str) -> int | str | tuple[int, ...]:
    """What was typed, in the form that options hold: a file or a list becomes numbers.

    Raises:
        EdgeInfiniteError: it is neither a number, nor a list, nor a file with one.
    """
    if text.partition(":")[0] == TRAINED_SLOTS:
        return text
    try:
        slots = tuple(int(part) for part in text.split(","))
    except ValueError:
        slots = _slots_of_file(Path(text))
    return slots if len(slots) > 1 else slots[0]


def _slots_of_file(path: Path) -> tuple[int, ...]:
    """A JSON list of numbers, one per layer."""
    try:
        slots = json.loads(read_text_file(path))
    except OSError:
        raise EdgeInfiniteError(
            f"give one number, one per layer, {TRAINED_SLOTS}, or a file with one per layer; "
            f"{str(path)!r} is none of them"
        ) from None
    except (EdgeInfiniteError, ValueError):
        slots = None
    if isinstance(slots, list) and any(isinstance(entry, list) for entry in slots):
        raise EdgeInfiniteError(
            f"{path} is a list of lists, slots by KV head, which edgeinfinite doesn't have any "
            "more; give whole numbers, one per layer, such as [0, 512, 128]"
        )
    if not slots or not isinstance(slots, list) or not all(type(n) is int for n in slots):
        raise EdgeInfiniteError(
            f"{path} isn't a JSON list of whole numbers, one per layer, such as [0, 512, 128]"
        )
    return tuple(slots)
