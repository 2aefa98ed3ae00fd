"""Chats cut to a window, as clients do it: the newest tokens, or a summary and the newest turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.chat import Chat
from edgeinfinite.evaluation.told_in_chat import Message, chat_text
from edgeinfinite.training.texts import encode

SUMMARY_SHARE = 0.125
"""Of the window: the longest summary."""
NEWEST_SHARE = 0.125
"""Of the window: newest turns that stay as they are, as many as fit."""
HEADING = "Summary of the conversation so far:"
"""Stands between the system's message and a summary."""


@dataclass(frozen=True)
class Cut:
    """What is left of a chat.

    Args:
        tokens: to be read before a question.
        compactions: how often a summary took the place of older turns.
    """

    tokens: list[int]
    compactions: int = 0


@dataclass(frozen=True)
class Window:
    """How much text a cache holds whole.

    Args:
        tokens: that it holds.
        tokenizer: with the template.
    """

    tokens: int
    tokenizer: PreTrainedTokenizerBase

    @property
    def summary(self) -> int:
        """Most tokens of a summary."""
        return int(self.tokens * SUMMARY_SHARE)

    def length(self, messages: Sequence[Message]) -> int:
        """Tokens of whole messages in the template."""
        return len(encode(chat_text(self.tokenizer, messages), self.tokenizer))


def newest(chat: Chat, window: Window) -> Cut:
    """The system's message and as many of the newest tokens as leave room for a question."""
    system = encode(chat_text(window.tokenizer, chat.messages[:1]), window.tokenizer)
    room = window.tokens - chat.room
    if len(chat.tokens) <= room:
        return Cut(chat.tokens)
    _check(window, room - len(system))
    return Cut(system + chat.tokens[len(system) - room :])


Summarise = Callable[[list[Message], int], str]
"""Gives the summary of messages of which the last ones, as many as the number says, will stay."""


def compacted(
    chat: Chat,
    window: Window,
    summarise: Summarise,
    reserve: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Cut:
    """Plays the chat to a client that keeps its history within a window.

    Before a user's message and the assistant's answer would make the history too long, it is
    replaced: by the system's message with a summary, and the newest turns. The summary is made of
    that history alone, which begins with the summary before.

    Args:
        chat: the chat.
        window: what the history must fit.
        summarise: makes a summary of at most `window.summary` tokens.
        reserve: tokens of the window that are kept free for making it.
        progress: called with the number of tokens played.

    Raises:
        EdgeInfiniteError: the window is too small for a turn beside a summary.
    """
    system, *rest = chat.messages
    pairs = [rest[at : at + 2] for at in range(0, len(rest), 2)]
    room = window.tokens - max(reserve, chat.room)
    head, kept, compactions = system, list[list[Message]](), 0
    for pair in pairs:
        if window.length(_joined(head, [*kept, pair])) > room:
            stay = _newest_pairs(kept, window, system)
            summary = summarise(_joined(head, kept), 2 * len(stay))
            head = {**system, "content": f"{system['content']}\n\n{HEADING}\n{summary}"}
            kept, compactions = stay, compactions + 1
            while kept and window.length(_joined(head, [*kept, pair])) > room:
                kept = kept[1:]
            _check(window, room - window.length(_joined(head, [pair])))
        kept = [*kept, pair]
        progress(window.length([system, *pair]) - window.length([system]))
    text = chat_text(window.tokenizer, _joined(head, kept))
    return Cut(encode(text, window.tokenizer), compactions)


def _newest_pairs(
    pairs: list[list[Message]], window: Window, system: Message
) -> list[list[Message]]:
    own, most = window.length([system]), int(window.tokens * NEWEST_SHARE)
    at = len(pairs)
    while at and window.length(_joined(system, pairs[at - 1 :])) - own <= most:
        at -= 1
    return pairs[at:]


def _joined(head: Message, pairs: Sequence[list[Message]]) -> list[Message]:
    return [head, *(message for pair in pairs for message in pair)]


def _check(window: Window, left: int) -> None:
    if left < 0:
        raise EdgeInfiniteError(
            f"a window of {window.tokens:,} tokens is too small for this chat's turns; give a "
            "larger state"
        )
