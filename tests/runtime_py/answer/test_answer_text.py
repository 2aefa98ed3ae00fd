"""Stop strings: what is shown and when doesn't depend on how the text is split into tokens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.answer_text import AnswerText

texts = st.text("ab.", max_size=4)
stops = st.lists(st.text("ab.", min_size=1, max_size=4), max_size=3)


class Pieces:
    """A stream whose tokens are indices of the given pieces; the last one comes with `flush`."""

    def __init__(self, pieces: Sequence[str], end: str = "") -> None:
        self._pieces = pieces
        self._end = end
        self.holds = False

    def push(self, token: int) -> str:
        return self._pieces[token]

    def flush(self) -> str:
        return self._end


def cut(text: str, stop: Sequence[str]) -> tuple[str, str | None]:
    """The text before the stop string that is complete first, and that string."""
    for end in range(1, len(text) + 1):
        for one in sorted(stop, key=len, reverse=True):
            if text[:end].endswith(one):
                return text[: end - len(one)], one
    return text, None


def whole(pieces: Sequence[str], shown: int) -> int:
    """Tokens wholly within the first characters; one without text belongs to the next piece."""
    ends = [0] + [i + 1 for i, piece in enumerate(pieces) if piece]
    return max(end for end in ends if len("".join(pieces[:end])) <= shown)


@given(pieces=st.lists(texts, max_size=12), end=texts, stop=stops)
def test_the_answer_ends_before_the_stop_string_that_is_complete_first(
    pieces: list[str], end: str, stop: list[str]
) -> None:
    answer = AnswerText(Pieces(pieces, end), stop)
    taken = []
    for token in range(len(pieces)):
        answer.push(token)
        taken.append(answer.take())
        if answer.stopped_by is not None:
            break
    found = answer.finish()
    taken.append(answer.take())

    expected, stopped_by = cut("".join([*pieces, end]), stop)
    assert "".join(taken) == answer.text == expected
    assert (answer.stopped_by, found) == (stopped_by, stopped_by is not None)
    if stopped_by is None:
        assert answer.whole_tokens == len(pieces)
    else:
        assert answer.whole_tokens == whole(pieces, len(expected))


@given(pieces=st.lists(texts, max_size=12), stop=stops)
def test_text_is_held_back_only_while_it_may_begin_a_stop_string(
    pieces: list[str], stop: list[str]
) -> None:
    answer = AnswerText(Pieces(pieces), stop)
    for token in range(len(pieces)):
        answer.push(token)
        if answer.stopped_by is not None:
            return
        text = "".join(pieces[: token + 1])
        begun = [one[:n] for one in stop for n in range(1, len(one)) if text.endswith(one[:n])]
        shown = text[: len(text) - max(map(len, begun), default=0)]
        assert answer.text == shown
        assert answer.whole_tokens == whole(pieces[: token + 1], len(shown))


def test_a_token_with_the_end_of_the_answer_and_the_stop_string_is_not_whole() -> None:
    answer = AnswerText(Pieces(["One", " two", ".\n", "\n"]), ["\n\n"])
    for token in range(4):
        answer.push(token)
    assert (answer.text, answer.stopped_by, answer.whole_tokens) == ("One two.", "\n\n", 2)


def test_a_token_that_begins_a_character_of_the_stop_string_is_not_whole() -> None:
    class Halves(Pieces):
        def push(self, token: int) -> str:
            self.holds = token == 1  # "b", and the first byte of "é"
            return super().push(token)

    answer = AnswerText(Halves(["a", "b", "é"]), ["é"])
    for token in range(3):
        answer.push(token)
    assert (answer.text, answer.stopped_by, answer.whole_tokens) == ("ab", "é", 1)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(EdgeInfiniteError, match="a stop string is empty"):
        AnswerText(Pieces([]), ["a", ""])
