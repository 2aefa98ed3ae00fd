"""bAbI's files are read as they are, or said to be something else in one line."""

from __future__ import annotations

import pytest
from tiny_babi import tiny_babi

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.stories import find_stories, read_questions


def test_a_question_has_all_facts_before_it_and_none_of_other_stories(tmp_path):
    path = find_stories(tiny_babi(tmp_path / "babi"), "qa1")
    first, second, third, *_ = read_questions(path)
    assert first.facts == ("Ann went to the kitchen.", "Bob went to the garden.")
    assert (first.question, first.answer, first.row) == ("Where is Ann?", "kitchen", "0")
    assert second.facts == (*first.facts, "Ann moved to the garden.")
    assert second.answer == "garden"
    assert third.facts == ("Ann went to the garden.", "Bob went to the office.")


def test_the_file_of_a_task_is_found_by_its_number_alone(tmp_path):
    folder = tiny_babi(tmp_path / "babi")
    (folder / "qa15_basic-deduction_test.txt").write_text("1 x\n")
    (folder / "qa1_single-supporting-fact_train.txt").write_text("1 x\n")
    assert find_stories(folder, "qa1").name == "babi_qa1_single-supporting-fact_test.txt"
    with pytest.raises(EdgeInfiniteError, match="needs one qa3_"):
        find_stories(folder, "qa3")
    with pytest.raises(EdgeInfiniteError, match="isn't a folder"):
        find_stories(folder / "none", "qa1")


@pytest.mark.parametrize(
    ("text", "says"),
    [("1 A fact.\nno number\n", "line 2: not a line of bAbI"), ("1 A fact.\n", "no question")],
)
def test_what_is_not_babi_is_named(tmp_path, text, says):
    path = tmp_path / "qa1_test.txt"
    path.write_text(text)
    with pytest.raises(EdgeInfiniteError, match=says):
        read_questions(path)
