"""The texts that a second network is fitted to: documents, source code, texts with questions."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.files import read_text_file
from edgeinfinite.training.scorer.composed import Composed, TextSource
from edgeinfinite.training.scorer.pairs import compose
from edgeinfinite.training.texts import excerpt

_CODE_BYTES = (40_000, 250_000)
"""Sizes of the library's files that are read: longer than a pass, and no tables."""


@dataclass(frozen=True)
class RepeatedText:
    """A text to repeat, and to answer about.

    Args:
        body: T token ids.
        questions: what people asked at its end, with the answers; empty if nobody did.
        document: whether the model shall answer about it, too.
    """

    body: list[int]
    questions: list[int]
    document: bool


Composer = Callable[[int, np.random.Generator], RepeatedText]
"""Draws a kind's text number so and so."""


def composers(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    facts: int,
    sources: Sequence[TextSource],
) -> list[Composer]:
    """One composer for each kind of text.

    Args:
        documents: excerpts are drawn from them, with planted facts and without.
        tokenizer: the backbone's.
        length: T at most.
        facts: number of planted facts.
        sources: texts with questions that people asked, one after the other.
    """
    texts = [read_text_file(path) for path in documents]
    code = library_files()

    def planted(_: int, random: np.random.Generator) -> RepeatedText:
        text = texts[int(random.integers(len(texts)))]
        return _apart(compose(text, tokenizer, length, facts, random), length, document=True)

    def plain(_: int, random: np.random.Generator) -> RepeatedText:
        text = texts[int(random.integers(len(texts)))]
        return RepeatedText(excerpt(text, tokenizer, length, random), [], document=True)

    def asked(index: int, random: np.random.Generator) -> RepeatedText:
        source = sources[index % len(sources)]
        return _apart(source.compose(tokenizer, length * 5 // 4, random), length, document=False)

    def library(_: int, random: np.random.Generator) -> RepeatedText:
        text = read_text_file(code[int(random.integers(len(code)))])
        return RepeatedText(excerpt(text, tokenizer, length, random), [], document=True)

    found: list[Composer] = [planted, plain]
    return found + [asked] * bool(sources) + [library] * bool(code)


def _apart(text: Composed, length: int, *, document: bool) -> RepeatedText:
    end = len(text.tokens) - text.asking
    questions = text.tokens[end:]
    return RepeatedText(text.tokens[: min(end, length)], questions, document or not questions)


def library_files() -> list[Path]:
    """Source files of this Python's library; empty where it has none."""
    least, most = _CODE_BYTES
    folder = Path(sysconfig.get_paths()["stdlib"])
    return [path for path in sorted(folder.glob("*.py")) if least < path.stat().st_size < most]
