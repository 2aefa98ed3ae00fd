"""A message in two parts: a document now, the question later, in the tokens of one prompt.

A chat template closes every message, so a document that is read before its question is known needs
the tokens up to where the question will stand, and later the tokens from there on. Both are cut
out of renderings of whole messages. The document then stands at the beginning of the user's
message, where models were trained to find it, and the state is that of one prompt that holds the
document, a blank line and the question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

SEPARATOR = "\n\n"
"""Between a document and what follows it in the same message."""

_DOCUMENT = "Hi."
_QUESTIONS = ("What", "1", "(", "Ü")
"""Stand-ins for the other part; the questions begin as differently as questions can."""


def beginning_of_message(
    tokenizer: TextTokenizer,
    document: str,
    *,
    first: bool,
    begun: bool = False,
    system: str | None = None,
) -> list[int]:
    """The tokens of a document at the beginning of a user's message, up to its question.

    Args:
        tokenizer: the artifact's.
        document: stripped of white space at its ends, as templates do with messages.
        first: whether the message begins the conversation.
        begun: whether a document of the same message was read before; `first` says nothing then.
        system: what a first message stands behind; None for the template's own.

    Raises:
        EdgeInfiniteError: the artifact has no chat template, or one that can't be cut here.
    """
    text = document.strip() + SEPARATOR
    before: list[int] = []
    encode: Callable[[str], list[int]] = tokenizer.encode_turn
    if begun:
        before = _first_part(tokenizer)
        text = _DOCUMENT + SEPARATOR + text
    if first or begun:
        encode = partial(tokenizer.encode_message, system=None if begun else system)
    whole = encode(text + _QUESTIONS[0])
    rest = rest_of_message(tokenizer, _QUESTIONS[0])
    if whole[-len(rest) :] != rest or whole[: len(before)] != before:
        raise EdgeInfiniteError(
            "this artifact's chat template or tokenizer joins a document with its question; put "
            "both into one prompt"
        )
    del whole[-len(rest) :], whole[: len(before)]  # in place: a million tokens take their time
    return whole


def rest_of_message(tokenizer: TextTokenizer, question: str) -> list[int]:
    """The tokens that follow `beginning_of_message`: the question, up to where the answer starts.

    Raises:
        EdgeInfiniteError: the tokenizer joins the question's first characters with what stands
            before them.
    """
    before = _first_part(tokenizer)
    whole = tokenizer.encode_message(_DOCUMENT + SEPARATOR + question.strip())
    if whole[: len(before)] != before:
        raise EdgeInfiniteError(
            "the tokenizer joins the question's first character with the end of the document; "
            "begin the question with a letter"
        )
    return whole[len(before) :]


def _first_part(tokenizer: TextTokenizer) -> list[int]:
    """The tokens of the stand-in document that don't depend on the question."""
    wholes = [tokenizer.encode_message(_DOCUMENT + SEPARATOR + question) for question in _QUESTIONS]
    shortest = min(map(len, wholes))
    same = (len({whole[i] for whole in wholes}) == 1 for i in range(shortest))
    return wholes[0][: next((i for i, alike in enumerate(same) if not alike), shortest)]
