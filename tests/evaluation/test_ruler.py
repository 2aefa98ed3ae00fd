"""RULER's right answers are written as its prompts write them, and nothing is fetched for them."""

from __future__ import annotations

import pytest

pytest.importorskip("nltk")

import nltk

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.ruler import no_punkt_download, question_alone, right_answer

DOCUMENT = {"outputs": ["8231"], "gen_prefix": "The number is", "max_length": 1024}


def test_answers_go_on_from_the_prompts_last_words():
    assert right_answer(DOCUMENT) == " 8231"
    assert right_answer(DOCUMENT | {"outputs": ["ABC", "DEF"]}) == " ABC DEF"
    numbered = DOCUMENT | {"outputs": ["tree", "sea"], "input_example": "1. a 2. b"}
    assert right_answer(numbered) == " 1. tree 2. sea"
    assert right_answer({"question": "Who?", "outputs": ["me"]}) is None


def test_a_question_alone_is_the_prompts_last_line_where_the_prompt_has_it():
    document = DOCUMENT | {"input": "Memorize this.\nOne 1. Two 2.\nWhich number is two?"}
    assert question_alone(document, document["input"] + " It is") == "Which number is two? It is"
    chat = f"<user>{document['input']}<assistant>It is"
    assert question_alone(document, chat) == "<user>Which number is two?<assistant>It is"
    for other in (DOCUMENT, {"input": "Who?"}, document | {"input": "Another"}):
        with pytest.raises(EdgeInfiniteError, match="without their texts"):
            question_alone(other, chat)


def has_punkt() -> bool:
    try:
        return bool(nltk.data.find("tokenizers/punkt_tab"))
    except LookupError:
        return False


def test_the_niah_module_finds_a_punkt_as_long_as_no_task_needs_one(tmp_path):
    before, places = has_punkt(), list(nltk.data.path)
    with no_punkt_download(["niah_single_1", "ruler_vt"], tmp_path / "a"):
        assert has_punkt()
    assert has_punkt() == before and nltk.data.path == places
    for tasks in (["niah_single_1", "niah_single_2"], ["arc_easy"]):
        with no_punkt_download(tasks, tmp_path / "b"):  # essays do need one
            assert has_punkt() == before
