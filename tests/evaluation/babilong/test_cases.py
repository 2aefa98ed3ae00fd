"""Facts are hidden in books: all of them, in their order, in prompts of the length asked for."""

from __future__ import annotations

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_babi import tiny_babi, tiny_books
from transformers import AutoTokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.cases import babilong_cases, texts_digests
from edgeinfinite.evaluation.babilong.options import BabilongOptions
from edgeinfinite.evaluation.babilong.stories import find_stories, read_questions

OPTIONS = BabilongOptions(tasks=("qa1", "qa2"), lengths=(1200, 2400), samples=4)
LONGEST_SENTENCE = 70


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "tiny"))


@pytest.fixture(scope="module")
def babi(tmp_path_factory):
    return tiny_babi(tmp_path_factory.mktemp("babi") / "babi")


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    return sorted(tiny_books(tmp_path_factory.mktemp("books") / "books").iterdir())


def test_every_fact_is_hidden_in_its_order_and_the_prompt_is_as_long_as_asked(
    tokenizer, babi, books
):
    cases = babilong_cases(babi, books, tokenizer, OPTIONS)
    keys = [(case.key["length"], case.key["task"]) for case in cases]
    expected = [(n, task) for n in (1200, 2400) for task in ("qa1", "qa2") for _ in range(4)]
    assert keys == expected
    stories = read_questions(find_stories(babi, "qa1"))
    for case in cases:
        length, story = case.key["length"], stories[int(case.key["row"])]
        tokens = len(case.prompts.build(case.question).tokens)
        assert length - LONGEST_SENTENCE < tokens <= length
        sentences = case.question.context.replace(". ", ".\n").splitlines()
        facts = [s for s in sentences if s.startswith(("Ann", "Bob"))]
        assert tuple(facts) == story.facts
        assert case.question.input == story.question
        assert case.question.answers == (story.answer,)
        assert case.score(f"the {story.answer}") == 1


def test_facts_are_spread_and_a_sample_is_the_same_in_every_run(tokenizer, babi, books):
    cases = babilong_cases(babi, books, tokenizer, OPTIONS)
    again = babilong_cases(babi, books, tokenizer, OPTIONS)
    assert [case.question for case in cases] == [case.question for case in again]
    long = [case.question.context for case in cases if case.key["length"] == 2400]
    depths = [text.find(" Ann ") / len(text) for text in long]
    assert len(set(depths)) == len(depths)
    other = babilong_cases(babi, books, tokenizer, BabilongOptions(**vars(OPTIONS) | {"seed": 1}))
    assert [case.question for case in cases] != [case.question for case in other]
    # More samples and other lengths add rows, they change none.
    more = BabilongOptions(tasks=("qa1",), lengths=(2400,), samples=6)
    grown = babilong_cases(babi, books, tokenizer, more)
    known = {case.key["row"]: case.question for case in cases if case.key["length"] == 2400
             and case.key["task"] == "qa1"}  # fmt: skip
    assert known.items() <= {case.key["row"]: case.question for case in grown}.items()


def test_what_does_not_fit_is_refused(tokenizer, babi, books, tmp_path):
    short = BabilongOptions(tasks=("qa1",), lengths=(300,), samples=1)
    with pytest.raises(EdgeInfiniteError, match="give longer --lengths"):
        babilong_cases(babi, books, tokenizer, short)
    many = BabilongOptions(tasks=("qa1",), lengths=(2400,), samples=7)
    with pytest.raises(EdgeInfiniteError, match="of 6 questions"):
        babilong_cases(babi, books, tokenizer, many)
    (pamphlet,) = tiny_books(tmp_path / "pamphlet", 1, 10).iterdir()
    with pytest.raises(EdgeInfiniteError, match="too few sentences for a prompt of 2,400"):
        babilong_cases(babi, [pamphlet], tokenizer, BabilongOptions(("full",), lengths=(2400,),
                       tasks=("qa1",), samples=1))  # fmt: skip


def test_a_listing_in_a_book_is_passed_over(tokenizer, babi, books, tmp_path):
    listing = tmp_path / "manual.txt"
    prose = books[0].read_text()
    listing.write_text(prose + " column = 1;" * (len(prose) // 6) + " End. " + prose)
    options = BabilongOptions(tasks=("qa1",), lengths=(2400,), samples=6)
    cases = babilong_cases(babi, [listing], tokenizer, options)
    lengths = [len(case.prompts.build(case.question).tokens) for case in cases]
    assert all(2400 - LONGEST_SENTENCE < length <= 2400 for length in lengths)


def test_digests_are_of_the_files_that_are_there(babi):
    assert set(texts_digests(babi)) == {"qa1", "qa2"}


def test_a_prompt_ends_where_the_answer_begins(tokenizer, babi, books):
    (case, *_) = babilong_cases(babi, books, tokenizer, OPTIONS)
    text = tokenizer.decode(case.prompts.build(case.question).tokens)
    assert text.endswith(f"</context>\n\nQuestion: {case.question.input}\nAnswer:")
    (answer,) = case.question.answers
    assert tokenizer.decode(case.prompts.answer(case.question, answer)) == f" {answer}"
