"""LongBench's metrics for one answer, from 0 to 1 (arXiv 2308.14508, its own `metrics.py`)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from edgeinfinite.evaluation.longbench.tasks import Task

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_PUNCTUATION_ZH = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗"  # noqa: E501
    "〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.",
)


def score(task: Task, answer: str, gold: Sequence[str], classes: Sequence[str] = ()) -> float:
    """The best score over the gold answers.

    Args:
        task: decides the metric and how much of the answer counts.
        answer: the generated text.
        gold: the right answers.
        classes: all class names, for classification.
    """
    if task.first_line:
        answer = answer.lstrip("\n").split("\n")[0]
    return max((METRICS[task.metric](answer, one, classes) for one in gold), default=0.0)


def f1(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """F1 over words, in lower case, without punctuation and articles."""
    del classes
    return _overlap(_words(answer), _words(gold))


def f1_zh(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """F1 over jieba's words, without punctuation."""
    del classes
    return _overlap(_words_zh(answer), _words_zh(gold))


def rouge_l(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """ROUGE-L's F1 of the `rouge` package; 0 where that raises, as for an empty answer."""
    del classes
    from rouge import Rouge

    try:
        return float(Rouge(["rouge-l"]).get_scores([answer], [gold], avg=True)["rouge-l"]["f"])
    except (ValueError, RecursionError):  # LongBench counts an error as 0
        return 0.0


def rouge_l_zh(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """ROUGE-L's F1 over jieba's words."""
    return rouge_l(" ".join(_cut(answer)), " ".join(_cut(gold)), classes)


def classification(answer: str, gold: str, classes: Sequence[str]) -> float:
    """1 / number of class names found in the answer, if the right one is among them.

    Names that are part of the right name don't count. As in LongBench, removing such a name skips
    the next one, because the list is changed during iteration.
    """
    found = [name for name in classes if name in answer]
    at = 0
    while at < len(found):
        if found[at] in gold and found[at] != gold:
            found.remove(found[at])
        at += 1
    return 1.0 / len(found) if gold in found else 0.0


def retrieval(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """Share of the answer's numbers that are the paragraph's, `Paragraph 7`."""
    del classes
    return _share_of_numbers(answer, re.findall(r"Paragraph (\d+)", gold)[0])


def retrieval_zh(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """The same for `段落7`."""
    del classes
    return _share_of_numbers(answer, re.findall(r"段落(\d+)", gold)[0])


def count(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """Share of the answer's numbers that are the right one."""
    del classes
    return _share_of_numbers(answer, gold)


def code_similarity(answer: str, gold: str, classes: Sequence[str] = ()) -> float:
    """Edit similarity of the first line that is neither a comment nor Markdown."""
    del classes
    from rapidfuzz import fuzz

    lines = answer.lstrip("\n").split("\n")
    marks = ("`", "#", "//")
    line = next((line for line in lines if not any(mark in line for mark in marks)), "")
    return float(fuzz.ratio(line, gold)) / 100


METRICS: dict[str, Callable[[str, str, Sequence[str]], float]] = {
    "f1": f1,
    "f1_zh": f1_zh,
    "rouge": rouge_l,
    "rouge_zh": rouge_l_zh,
    "classification": classification,
    "retrieval": retrieval,
    "retrieval_zh": retrieval_zh,
    "count": count,
    "code": code_similarity,
}


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _words_zh(text: str) -> list[str]:
    words = ("".join(word.lower().translate(_PUNCTUATION_ZH).split()) for word in _cut(text))
    return [word for word in words if word]


def _cut(text: str) -> list[str]:
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)  # its debug log names its cache file
    return list(jieba.cut(text, cut_all=False))


def _overlap(answer: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(answer) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(answer), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def _share_of_numbers(answer: str, right: str) -> float:
    numbers = re.findall(r"\d+", answer)
    return numbers.count(right) / len(numbers) if numbers else 0.0
