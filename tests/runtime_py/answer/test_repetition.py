"""An answer that says one piece over and over ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.generation import Generation
from edgeinfinite.runtime_py.answer.repetition import NO_DETECTION, RepetitionDetection
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import attached, random_tokens

TOKENS = st.lists(st.integers(0, 2), max_size=40)


def said_often_enough(tokens: list[int], smallest: int, largest: int, count: int) -> bool:
    """The definition: the end of the text is some pattern, written `count` times."""
    ends = (tokens[len(tokens) - size :] for size in range(smallest, largest + 1))
    return any(tokens[len(tokens) - count * len(end) :] == count * end for end in ends if end)


@given(TOKENS, st.integers(1, 5), st.integers(0, 5), st.integers(2, 4))
def test_it_finds_what_ends_in_a_pattern_said_often_enough_and_nothing_else(
    tokens: list[int], smallest: int, more: int, count: int
) -> None:
    detection = RepetitionDetection(smallest + more, smallest, count)
    possible = min(smallest + more, len(tokens) // count)
    assert detection.found(tokens) == said_often_enough(tokens, smallest, possible, count)


def test_by_default_a_sentence_said_three_times_is_noticed_and_a_short_one_later() -> None:
    detection = RepetitionDetection()

    def ends_after(size: int) -> int:
        tokens = [1_000 + i % size for i in range(500)]
        return next(n for n in range(len(tokens)) if detection.found(tokens[:n]))

    assert [ends_after(size) for size in (1, 2, 5, 7, 16, 40, 128)] == [
        *(48, 48, 60, 63, 48, 120, 384)
    ]
    assert not detection.found([1_000 + i % 129 for i in range(500)])
    assert not RepetitionDetection(0, 0, 0).found([7] * 500)
    assert not detection.found(list(range(500))) and not detection.found([])


def test_a_table_a_refrain_and_a_repeated_word_are_left_alone() -> None:
    refrain = list(range(20))
    row = [5, 6, 5, 6, 5, 6, 7]
    for tokens in ([*refrain, 99, *refrain, 98, *refrain], row * 3, [3] * 40):
        assert not any(RepetitionDetection().found(tokens[:n]) for n in range(len(tokens) + 1))


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ({"max_pattern_size": -1}, "max_pattern_size"),
        ({"max_pattern_size": 10**6}, "max_pattern_size"),
        ({"min_pattern_size": 129}, "min_pattern_size"),
        ({"min_pattern_size": -1}, "min_pattern_size"),
        ({"min_count": 1}, "min_count"),
        ({"min_count": 10**6}, "min_count"),
    ],
)
def test_numbers_out_of_range_are_refused(numbers: dict[str, int], named: str) -> None:
    with pytest.raises(EdgeInfiniteError, match=named):
        RepetitionDetection(**numbers)


class AnyToken:
    """A grammar that allows everything and never ends."""

    is_finished = False

    def allowed(self) -> None:
        return None

    def accept(self, _: int) -> None:
        pass


@pytest.mark.parametrize(
    ("detection", "grammar", "finish", "said"),
    [
        (RepetitionDetection(), None, "repetition", 48),
        (RepetitionDetection(3, 3, 4), None, "repetition", 12),
        (NO_DETECTION, None, "length", 60),
        (RepetitionDetection(), AnyToken(), "length", 60),
    ],
)
def test_an_answer_that_repeats_itself_ends_and_is_read(
    detection: RepetitionDetection, grammar: AnyToken | None, finish: str, said: int
) -> None:
    session = Session(TorchEngine(attached(Geometry(8, 2, 3))))
    always = SamplingOptions(logit_bias={7: 100.0}, repetition_detection=detection)
    generation = Generation(
        session,
        random_tokens(10),
        sampler=Sampler(always),
        stop_ids=(),
        max_new_tokens=60,
        grammar=grammar,  # type: ignore[arg-type]
    )
    assert list(generation) == [7] * said
    assert (generation.finish, session.tokens_read) == (finish, 10 + said)
    row = generation.statistics(text="", engine="torch", artifact="").to_row()
    assert row["finish"] == finish
