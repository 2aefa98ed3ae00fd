"""Facts are told at the start of a chat in the model's template and asked for many turns later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import TEMPLATE, tiny_checkpoint
from tiny_babi import tiny_books
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.planted import PlantedText
from edgeinfinite.evaluation.told_in_chat import told_in_chat

LENGTH, TURNS, FACTS = 3000, 12, 4
OPTIONS = PasskeyOptions(facts=FACTS, lengths=(LENGTH,), turns=TURNS)


@pytest.fixture
def tokenizer(tmp_path: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path / "tiny"))


@pytest.fixture
def books(tmp_path: Path) -> list[Path]:
    return sorted(tiny_books(tmp_path / "books").iterdir())


def chat(
    tokenizer: PreTrainedTokenizerBase,
    books: list[Path],
    seed: int = 0,
    options: PasskeyOptions = OPTIONS,
    length: int = LENGTH,
) -> PlantedText:
    return told_in_chat(books, tokenizer, length, seed, options)


def test_each_of_the_first_turns_tells_a_fact_and_the_others_none(tokenizer, books):
    for seed in range(4):
        made = chat(tokenizer, books, seed)
        messages = tokenizer.decode(made.tokens).split("<|im_start|>")[1:]
        assert len(messages) == 2 * (FACTS + TURNS)
        users, assistants = messages[::2], messages[1::2]
        assert all(m.startswith("user\n") for m in users)
        assert all(m.startswith("assistant\n") for m in assistants)
        for user, question in zip(users, made.questions, strict=False):
            assert user.startswith(f"user\n{question.fact.statement}\n\n")
        later = "".join(users[FACTS:] + assistants)
        assert not any(question.fact.statement in later for question in made.questions)


def test_question_and_begun_answer_are_turns_of_the_template(tokenizer, books):
    made = chat(tokenizer, books)
    for question in made.questions:
        asked, begun = question.fact.question.split("? ", 1)
        expected = f"<|im_start|>user\n{asked}?<|im_end|>\n<|im_start|>assistant\n{begun}"
        assert tokenizer.decode(question.asked) == expected
        assert tokenizer.decode(question.answer) == question.fact.answer


def test_the_chat_is_as_long_as_asked_and_depths_are_the_facts_places(tokenizer, books):
    made = chat(tokenizer, books)
    longest = max(question.tokens for question in made.questions)
    assert LENGTH - 2 * 2 * (FACTS + TURNS) < len(made.tokens) + longest <= LENGTH
    text = tokenizer.decode(made.tokens)
    for question in made.questions:
        # A byte is a token here, a special token is one too.
        place = len(tokenizer(text[: text.index(question.fact.statement)]).input_ids)
        assert question.depth == pytest.approx(place / LENGTH, abs=1e-3)
    assert np.all(np.diff([question.depth for question in made.questions]) > 0)
    assert made.questions[-1].depth < FACTS / (FACTS + TURNS)


def test_a_sample_is_the_same_in_every_run_and_another_for_each_seed(tokenizer, books):
    assert chat(tokenizer, books) == chat(tokenizer, books) != chat(tokenizer, books, 1)


def test_what_cannot_be_a_chat_is_refused(tokenizer, books):
    with pytest.raises(EdgeInfiniteError, match="700 tokens are too few for a chat of 16 turns"):
        chat(tokenizer, books, length=700)
    tokenizer.chat_template = "{{ messages | length }} messages\n" + TEMPLATE
    with pytest.raises(EdgeInfiniteError, match="changes earlier turns"):
        chat(tokenizer, books)
    tokenizer.chat_template = None
    with pytest.raises(EdgeInfiniteError, match="no chat template; leave --turns out"):
        chat(tokenizer, books)
