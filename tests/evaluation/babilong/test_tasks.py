"""BABILong's exact match, against cases worked out by hand."""

from __future__ import annotations

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.babilong.tasks import TASKS, chosen_tasks, score


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("kitchen", 1),
        (" Kitchen.", 1),
        ("Ann is in the kitchen", 1),
        ("The kitchen. Or the garden.", 1),  # the first sentence counts
        ("the kitchen or the garden", 0),  # more than one answer
        ("garden", 0),
        ("", 0),
        ("Nobody knows. The kitchen.", 0),
        ("<example> kitchen", 0),  # made up by the model
        (" kitchen\n\nQuestion: Where is Bob?\nAnswer: garden", 1),  # the first line counts
        ("kitchen<context>garden", 1),
        ("the cellar, which is no kitchen", 1),  # a cellar is none of the labels
    ],
)
def test_the_first_sentence_must_name_the_answer_and_no_other(answer, expected):
    assert score(answer, task=TASKS["qa1"], question="Where is Ann?", gold="kitchen") == expected


def test_what_the_question_names_is_no_answer():
    question = "Where was the apple before the garden?"
    said = "Before the garden it was in the office"
    assert score(said, task=TASKS["qa3"], question=question, gold="office") == 1
    assert score("the garden", task=TASKS["qa3"], question=question, gold="office") == 0
    question = "What did Fred give to Jeff?"
    said = "Fred gave the Milk to Jeff"
    assert score(said, task=TASKS["qa5"], question=question, gold="milk") == 1
    assert score("Mary", task=TASKS["qa5"], question="Who gave it?", gold="Mary") == 1


def test_examples_in_the_prompts_answer_with_one_word_that_is_no_label():
    for task in TASKS.values():
        assert task.prompt.count("{context}") == task.prompt.count("{input}") == 1
        assert task.prompt.endswith("Question: {input}\nAnswer:")
        for _, _, answer in task.examples:
            assert " " not in answer and answer.lower() not in task.labels


def test_tasks_are_chosen_by_name():
    assert [task.name for task in chosen_tasks(("qa2", "qa1"))] == ["qa1", "qa2"]
    for names, says in ((("qa9",), "unknown task 'qa9'"), ((), "no task given")):
        with pytest.raises(EdgeInfiniteError, match=says):
            chosen_tasks(names)
