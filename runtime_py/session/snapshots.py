"""What came before each of the last turns, so that they can be taken back.

What was evicted from the cache can't be brought back, so a turn is undone by going on from a fork
that was made before it. Forks cost memory once the conversation reads on; a ring keeps the newest.
Exact reading evicts nothing, and is cut back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from edgeinfinite.runtime_py.answer.conversation import Conversation

UNDO_TURNS = 8
"""How many turns are kept by default."""


@dataclass(frozen=True)
class Snapshot:
    """One thing that the user did.

    Args:
        bring_back: gives the conversation as it was, once.
        what: for the user, such as `/attach book.epub`.
        message: the user's message, if it was one.
    """

    bring_back: Callable[[], Conversation]
    what: str
    message: str | None = None

    @cached_property
    def before(self) -> Conversation:
        """The conversation as it was; go on with it alone."""
        return self.bring_back()


class Snapshots:
    """The last turns, newest last.

    Args:
        most: how many are kept; each takes up to a whole state's bytes. With 0 nothing is kept.
    """

    def __init__(self, most: int) -> None:
        self._turns: deque[Snapshot] = deque(maxlen=most)

    def before(self, conversation: Conversation, what: str, message: str | None = None) -> None:
        """Keeps the conversation as it is now, before a turn changes it."""
        if self._turns.maxlen:
            self._turns.append(Snapshot(conversation.remember(), what, message))

    @property
    def last(self) -> Snapshot | None:
        """The newest turn; None if there is none that can be taken back."""
        return self._turns[-1] if self._turns else None

    def take_back(self) -> Snapshot:
        """Removes the newest turn and returns it; go on with its `before`.

        Raises:
            IndexError: there is none.
        """
        return self._turns.pop()
