"""The control tokens with which a chat template ends an assistant's answer.

Checkpoints name the tokens that end a text, and often not the one that ends a turn: a model tuned
on ChatML whose `eos_token` is still `<|endoftext|>` would go on and invent the user's next message.
The template knows: it is rendered with a stand-in for the answer, and what it writes behind that is
what the model was trained to write there.

Some tokens may stand behind a part of an answer and don't end it: those that the template writes
between the generation prompt and the answer (`</think>`, and gpt-oss's `<|end|>` behind the
thinking), and those that close what was opened there (`<answer>…</answer>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tokenizers import Tokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate, Message
from edgeinfinite.runtime_py.text.control_tokens import is_markup

_QUESTION = "EDGEINFINITE-QUESTION-2B90"
_ANSWER = "EDGEINFINITE-ANSWER-6D1E"
_THOUGHT = "EDGEINFINITE-THOUGHT-C4A7"
_SECONDS = 1.0
"""For one rendering: an artifact opens in about as long."""

_SYSTEM: Message = {"role": "system", "content": "Be brief."}
_USER: Message = {"role": "user", "content": _QUESTION}
_REPLY: Message = {"role": "assistant", "content": _ANSWER}
_NEXT: Message = {"role": "user", "content": "Go on."}
_THOUGHTFUL: Message = {
    **_REPLY,
    "reasoning_content": _THOUGHT,
    "reasoning": _THOUGHT,
    "thinking": _THOUGHT,
}
"""Under the names that templates know."""

_BOUND_WORDS = {"", "start", "begin", "open", "end", "close", "of"}
"""What tells the two tokens of a pair apart."""


def answer_ends(template: ChatTemplate, tokenizer: Tokenizer) -> frozenset[int]:
    """The ids of the tokens that the template writes where an answer ends.

    Args:
        template: the checkpoint's.
        tokenizer: the same checkpoint's.

    Returns:
        Mostly one. None where the template writes plain text there, or refuses every conversation.
        Where it ends no answer, the token that begins the next turn.
    """
    controls = _controls(tokenizer, template.source)
    if not controls:
        return frozenset()
    longest_first = sorted(controls, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    inside = _Inside(template, pattern)
    found = {_first(pattern, behind, inside) for behind in _behind_answers(template)}
    return frozenset(controls[token] for token in found if token)


def _controls(tokenizer: Tokenizer, source: str) -> dict[str, int]:
    """Ids by text: what the tokenizer calls special, and markup that the template spells out."""
    return {
        token.content: number
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if len(token.content.strip()) > 1
        and (token.special or (is_markup(token.content) and token.content in source))
    }


def _behind_answers(template: ChatTemplate) -> Iterator[str]:
    """What follows an answer: at the conversation's end, and before the user's next message."""
    for begin in ([_USER], [_SYSTEM, _USER]):
        for end, prompt in (([_REPLY], False), ([_REPLY, _NEXT], True)):
            yield _rendered(template, [*begin, *end], prompt).partition(_ANSWER)[2]


def _first(pattern: re.Pattern[str], behind: str, inside: _Inside) -> str:
    """The first control token of a text that may begin with white space; empty for none."""
    at = 0
    while True:
        at += len(behind[at:]) - len(behind[at:].lstrip())
        found = pattern.match(behind, at)
        if found is None or not inside.holds(found[0]):
            return "" if found is None else found[0]
        at = found.end()


class _Inside:
    """The tokens that may stand behind a part of an answer, and don't end it."""

    def __init__(self, template: ChatTemplate, pattern: re.Pattern[str]) -> None:
        asked, prompted = (_rendered(template, [_USER], prompt) for prompt in (False, True))
        own = ""  # what the model itself writes before the answer
        for reply in (_REPLY, _THOUGHTFUL):
            before, found, _ = _rendered(template, [_USER, reply], False).partition(_ANSWER)
            if found and prompted == asked:  # it isn't known where the model begins
                own += before.partition(_THOUGHT)[2]
            elif found and before.startswith(prompted):
                own += before[len(prompted) :]
        self._written = set(pattern.findall(own))
        self._opened = {_name(token) for token in self._written} - {()}
        # What ends the user's turn as well closes no part of an answer.
        self._of_turns = set(pattern.findall(asked.partition(_QUESTION)[2]))

    def holds(self, token: str) -> bool:
        closes = _name(token) in self._opened and token not in self._of_turns
        return token in self._written or closes


def _name(token: str) -> tuple[str, ...]:
    """Equal for the two tokens of a pair, such as `<answer>` and `</answer>`."""
    return tuple(word for word in re.split(r"[\W_]+", token.lower()) if word not in _BOUND_WORDS)


def _rendered(template: ChatTemplate, messages: Sequence[Message], prompt: bool) -> str:
    """The conversation; empty if the template refuses it, as some do without a turn's partner."""
    try:
        return template.render(messages, opens=prompt, seconds=_SECONDS)
    except EdgeInfiniteError:
        return ""
