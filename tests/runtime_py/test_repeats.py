"""DRY: what goes on with a repetition of the answer, and how long that repetition is."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from edgeinfinite.runtime_py.repeats import ALLOWED, LONGEST, NEWEST, repeated
from edgeinfinite.runtime_py.sampling import Sampler, SamplingOptions

ANSWERS = st.lists(st.integers(0, 2), max_size=60)


def by_definition(answer: list[int]) -> dict[int, int]:
    """For each token that came before, the longest end of the answer that it followed."""
    found: dict[int, int] = {}
    for place in range(1, len(answer)):
        for length in range(ALLOWED, min(place, LONGEST) + 1):
            if answer[place - length : place] == answer[len(answer) - length :]:
                found[answer[place]] = max(found.get(answer[place], 0), length)
    return found


@given(ANSWERS)
@example([])
@example([1] * 60)
@example([0, 1, 2] * 20)
def test_it_is_what_the_definition_says(answer: list[int]) -> None:
    assert repeated(answer) == by_definition(answer)


def test_a_name_or_a_number_may_be_said_again() -> None:
    name = [7, 8, 9]
    assert len(name) < ALLOWED
    assert repeated([1, *name, 2, 3, *name]) == {}


def test_a_loop_ends_and_the_first_sentence_is_as_it_was() -> None:
    sentence = [*range(10, 22), 1]  # a model that says nothing else

    def logits(answer: list[int]) -> np.ndarray:
        out = np.zeros(30, np.float32)
        out[sentence[len(answer) % len(sentence)]] = 12
        return out

    sampler, answer = Sampler(SamplingOptions(dry_multiplier=0.8)), []
    for _ in range(40):
        answer.append(sampler.sample(logits(answer), answer=answer))
    assert answer[: len(sentence)] == sentence
    assert answer[len(sentence) : 2 * len(sentence)] != sentence


def test_what_was_said_long_ago_and_what_was_read_cost_nothing() -> None:
    phrase = [1, 2, 3, 4, 5]
    assert repeated(phrase + [9] * 3 + list(range(10, 10 + NEWEST)) + phrase[:4]) == {}
    sampler, logits = Sampler(SamplingOptions(dry_multiplier=0.8)), np.zeros(8, np.float32)
    logits[5] = 0.5
    assert sampler.sample(logits, answer=[], residual=phrase + phrase[:4]) == 5
    assert sampler.sample(logits, answer=phrase + phrase[:4]) != 5
