"""LongBench's metrics, each against a case computed by hand."""

from __future__ import annotations

import pytest

from edgeinfinite.evaluation.longbench.metrics import METRICS, classification, score
from edgeinfinite.evaluation.longbench.tasks import TASKS

CLASSES = ("Number", "Other number", "Date", "City")


def scored(task: str, answer: str, *gold: str, classes: tuple[str, ...] = ()) -> float:
    return score(TASKS[task], answer, gold, classes)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("The old windmill.", "an old windmill", 1.0),  # articles, case and punctuation don't count
        ("a b c red", "red", 0.5),  # of "b c red" one in three is right: 2 · 1/3 · 1 / (4/3)
        ("red red", "red blue", 0.5),  # a word counts as often as it stands in both
        ("it's", "its", 1.0),
        ("", "red", 0.0),
        ("the", "red", 0.0),
        ("red", "", 0.0),
    ],
)
def test_f1_counts_common_words(answer, gold, expected):
    assert scored("qasper", answer, gold) == pytest.approx(expected)


def test_the_best_of_several_answers_counts():
    assert scored("triviaqa", "fifty-five", "55", "fifty-five", "fifty five") == 1.0
    assert scored("hotpotqa", "55", "fifty-five", "55 miles") == pytest.approx(2 / 3)
    assert scored("hotpotqa", "anything") == 0.0


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("北京", "北京", 1.0),
        ("北京。", "“北京”", 1.0),  # Chinese punctuation doesn't count
        ("我来到北京", "北京", 0.5),  # 我 来到 北京: one of three is right
        ("ＡＢＣ", "北京", 0.0),
        ("", "北京", 0.0),
        ("。", "北京", 0.0),
    ],
)
def test_chinese_f1_counts_the_words_that_jieba_finds(answer, gold, expected):
    assert scored("multifieldqa_zh", answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("the cat", "the cat sat down", 2 / 3),  # precision 1, recall 1/2
        ("sat cat the", "the cat sat", 1 / 3),  # the order counts: one word in a row
        ("dog", "the cat", 0.0),
        ("", "the cat", 0.0),
        (".", "the cat", 0.0),
    ],
)
def test_rouge_l_is_the_longest_common_subsequence(answer, gold, expected):
    assert scored("gov_report", answer, gold) == pytest.approx(expected, abs=1e-6)


def test_rouge_l_of_a_long_answer_is_not_lost():
    text = " ".join(f"word{n}" for n in range(400))
    assert scored("gov_report", text, text) == pytest.approx(1.0)


def test_chinese_rouge_l_is_over_the_words_that_jieba_finds():
    # 我 来到 北京 and 北京 are three words and one: precision 1/3, recall 1.
    assert scored("dureader", "我来到北京", "北京") == pytest.approx(0.5, abs=1e-6)
    assert scored("vcsum", "", "北京") == 0.0


def test_summaries_of_dialogues_end_at_the_first_line_and_those_of_reports_do_not():
    assert scored("samsum", "\n\nEmilia is angry\nDialogue: more", "Emilia is angry") == (
        pytest.approx(1.0)
    )
    assert scored("qmsum", "one\ntwo", "one two") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Date", "Date", 1.0),
        ("Date or City", "Date", 0.5),
        ("Date\nQuestion: City", "Date", 1.0),  # the first line alone
        ("\n\nDate", "Date", 1.0),
        ("City", "Date", 0.0),
        ("", "Date", 0.0),
        # "Number" isn't in "Other number" (case), so both count when both stand there.
        ("Other number, Number", "Number", 0.5),
    ],
)
def test_classification_shares_the_point_among_the_names_found(answer, gold, expected):
    assert scored("trec", answer, gold, classes=CLASSES) == pytest.approx(expected)


def test_of_names_inside_the_right_name_every_second_one_counts():
    """LongBench removes from the list that it goes through, which passes over the next name."""
    assert classification("big city", "big city", ("city", "big city")) == 1.0
    # "big" is removed, "city" takes its place and is passed over: two names are left.
    assert classification("big city", "big city", ("big", "city", "big city")) == 0.5
    # "big" is removed, "big c" passed over, "city" removed, the right one passed over.
    assert classification("big city", "big city", ("big", "big c", "city", "big city")) == 0.5


@pytest.mark.parametrize(
    ("task", "answer", "gold", "expected"),
    [
        ("passage_retrieval_en", "Paragraph 7", "Paragraph 7", 1.0),
        ("passage_retrieval_en", "7, or maybe 17", "Paragraph 7", 0.5),
        ("passage_retrieval_en", "Paragraph 17", "Paragraph 7", 0.0),
        ("passage_retrieval_en", "the seventh", "Paragraph 7", 0.0),
        ("passage_retrieval_en", "", "Paragraph 7", 0.0),
        ("passage_retrieval_zh", "答案是：段落7，不是段落8", "段落7", 0.5),
        ("passage_retrieval_zh", "", "段落7", 0.0),
        ("passage_count", "There are 11 of 30.", "11", 0.5),
        ("passage_count", "", "11", 0.0),
    ],
)
def test_numbers_score_as_the_share_that_is_right(task, answer, gold, expected):
    assert scored(task, answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("return a", 1.0),
        ("\n\nreturn a\nmore", 1.0),
        ("```python\n# a comment\n// another\nreturn a", 1.0),
        ("return b", 14 / 16),  # 7 of 8 characters agree: 2 · 7 / 16
        ("", 0.0),
        ("# only a comment", 0.0),
    ],
)
def test_code_is_the_similarity_of_the_first_line_of_code(answer, expected):
    assert scored("lcc", answer, "return a") == pytest.approx(expected)


def test_every_task_has_a_metric_and_every_metric_a_task():
    assert len(TASKS) == 21
    assert {task.metric for task in TASKS.values()} == set(METRICS)
