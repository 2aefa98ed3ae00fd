"""Chats with tools: what is told, where, and how it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import TEMPLATE, tiny_checkpoint
from tiny_babi import tiny_books
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.chat import Chat, draw_chat
from edgeinfinite.evaluation.conversation.options import ConversationOptions
from edgeinfinite.evaluation.conversation.tool_outputs import Sentences, draw_tool_use

LENGTH, FACTS = 20_000, 6
OPTIONS = ConversationOptions(facts=FACTS)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sorted(tiny_books(tmp_path_factory.mktemp("data") / "books").iterdir())


def chat(
    tokenizer: PreTrainedTokenizerBase, books: list[Path], seed: int = 0, length: int = LENGTH
) -> Chat:
    return draw_chat(books, tokenizer, length, seed, OPTIONS)


def test_each_fact_is_told_once_by_the_user_where_its_depth_says(tokenizer, books):
    for seed in range(3):
        made = chat(tokenizer, books, seed)
        text = tokenizer.decode(made.tokens)
        for question in made.questions:
            statement = question.fact.statement
            assert text.count(statement) == 1
            (message,) = [m for m in made.messages if statement in m["content"]]
            assert message["role"] == "user" and message["content"].startswith(statement)
            before = len(tokenizer(text[: text.index(statement)]).input_ids)
            assert question.depth == pytest.approx(before / LENGTH, abs=2e-3)
            assert question.depth * LENGTH >= 0.9 * made.questions.index(question) * LENGTH / FACTS
        assert len({q.fact.statement for q in made.questions}) == FACTS


def test_between_the_facts_stand_tool_calls_and_what_the_tools_said(tokenizer, books):
    made = chat(tokenizer, books)
    roles = [message["role"] for message in made.messages]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2)]
    turns = made.messages[1:]
    for call, output in zip(turns[1::4], turns[2::4], strict=True):
        body = call["content"].removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
        assert set(json.loads(body)) == {"name", "arguments"}
        assert output["content"].startswith("<tool_response>\n")
    told = sum(len(q.fact.statement) for q in made.questions)
    assert told < 0.05 * LENGTH, "the tools' outputs are most of it"


def test_question_and_begun_answer_are_turns_and_the_gold_answer_ends_them(tokenizer, books):
    made = chat(tokenizer, books)
    for question in made.questions:
        asked, begun = question.fact.question.split("? ", 1)
        expected = f"<|im_start|>user\n{asked}?<|im_end|>\n<|im_start|>assistant\n{begun}"
        assert tokenizer.decode(question.asked) == expected
        assert tokenizer.decode(question.answer) == question.fact.answer
        assert question.fact.answer.strip() in question.fact.statement
        assert question.fact.answer.strip() not in expected, "the question doesn't answer itself"
        whole = tokenizer(expected + question.fact.answer, add_special_tokens=False).input_ids
        assert whole == question.asked + question.answer


def test_the_chat_is_as_long_as_asked_the_longest_question_included(tokenizer, books):
    for length in (LENGTH, 2 * LENGTH):
        made = chat(tokenizer, books, length=length)
        assert length - 2000 < len(made.tokens) + made.room <= length


def test_a_sample_is_the_same_in_every_run_and_another_for_each_seed(tokenizer, books):
    assert chat(tokenizer, books) == chat(tokenizer, books) != chat(tokenizer, books, 1)


def test_every_tool_answers_with_the_documents_sentences(books):
    text = books[0].read_text()
    random = np.random.default_rng(0)
    sentences = Sentences(text, random)
    uses = [draw_tool_use(sentences, 400, random) for _ in range(40)]
    assert {u.name for u in uses} == {"list_files", "query_records", "read_log", "read_manual"}
    for use in uses:
        assert 400 <= len(use.output) < 1000
        if use.name == "query_records":
            for record in json.loads(use.output)["results"]:
                assert record["text"] in " ".join(text.split())
        if use.name == "read_log":
            assert all(line.split(": ", 1)[1] in text for line in use.output.splitlines())


def test_what_cannot_be_a_chat_is_refused(tokenizer, books, tmp_path):
    with pytest.raises(EdgeInfiniteError, match="1,000 tokens are too few for a chat with 6 facts"):
        chat(tokenizer, books, length=1000)
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("1 2 3\n" * 100)
    with pytest.raises(EdgeInfiniteError, match="no sentences"):
        draw_chat([numbers], tokenizer, LENGTH, 0, OPTIONS)
    for template, words in (
        ("{{ messages | length }}\n" + TEMPLATE, "changes earlier turns"),
        (None, "no chat template"),
    ):
        other = AutoTokenizer.from_pretrained(tokenizer.name_or_path)
        other.chat_template = template
        with pytest.raises(EdgeInfiniteError, match=words):
            chat(other, books)
