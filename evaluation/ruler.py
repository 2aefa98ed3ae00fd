"""RULER (arXiv 2404.06654) in lm-evaluation-harness: tasks without a download, right answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError

NO_DOWNLOAD = (
    "niah_single_1",
    "niah_multikey_2",
    "niah_multikey_3",
    "ruler_vt",
    "ruler_cwe",
    "ruler_fwe",
)
"""Tasks that generate their texts from installed packages alone."""

_PUNKT = "tokenizers/punkt_tab"


@contextmanager
def no_punkt_download(tasks: Sequence[str], folder: Path) -> Iterator[None]:
    """Keeps the harness from downloading NLTK's punkt_tab for tasks that don't use it.

    The niah tasks' module downloads it at import, but only essays (downloads themselves) are split
    into sentences. An empty folder of that name prevents the download.

    Args:
        tasks: the tasks to run.
        folder: a temporary folder.
    """
    if not set(tasks) & set(NO_DOWNLOAD) or set(tasks) - set(NO_DOWNLOAD):
        yield
        return
    import nltk

    (folder / _PUNKT).mkdir(parents=True)
    nltk.data.path.append(str(folder))  # searched last
    try:
        yield
    finally:
        nltk.data.path.remove(str(folder))


def question_alone(document: Mapping[str, Any], prompt: str) -> str:
    """The prompt without the text that is asked about: RULER's templates end with a line that asks.

    Args:
        document: a row of a task.
        prompt: made of it, with a chat template around it or without.

    Raises:
        EdgeInfiniteError: it isn't RULER's.
    """
    text = str(document.get("input", ""))
    if "max_length" not in document or not text or text not in prompt:
        raise EdgeInfiniteError(
            "method empty asks RULER's questions without their texts; other tasks have none to "
            "leave out"
        )
    return prompt.replace(text, text.rsplit("\n", 1)[-1])


def right_answer(document: Mapping[str, Any]) -> str | None:
    """The right answer in the form of RULER's own examples; None for documents of other tasks.

    Args:
        document: a row of a task.
    """
    if not {"outputs", "gen_prefix", "max_length"} <= set(document):
        return None
    outputs = [str(output) for output in document["outputs"]]
    if "input_example" in document:  # common words: `1. one 2. other`
        outputs = [f"{place}. {output}" for place, output in enumerate(outputs, start=1)]
    return " " + " ".join(outputs)
