"""Long lists of labelled examples, and new examples to label at the end."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.training.scorer.composed import Composed, Piece, assemble

_FORMATS = (
    "Text: {text}\nLabel: {label}\n",
    "{text}\t{label}\n",
    "Utterance: {text}\nIntent: {label}\n\n",
    "{text} => {label}\n",
)
_LABELS = (12, 40)
"""How many labels a list has, at least and at most."""


class Labels:
    """Composes lists of labelled examples."""

    def __init__(self, examples: Mapping[str, Sequence[str]]) -> None:
        """Takes the texts of each label."""
        self._examples = examples

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """Examples of some labels in any order; the end labels new ones of a few of them."""
        wording = _FORMATS[int(random.integers(len(_FORMATS)))]
        count = min(int(random.integers(_LABELS[0], _LABELS[1] + 1)), len(self._examples))
        names = [str(name) for name in random.choice(list(self._examples), count, replace=False)]
        asked = set(names[: max(2, count // 4)])
        written = {name: _written(name, random) for name in names}
        end = ""
        listed: list[tuple[str, str]] = []
        for name in names:
            texts = [self._examples[name][int(i)] for i in self._order(name, random)]
            if name in asked:
                end += wording.format(text=texts.pop(), label=written[name])
            listed += [(name, text) for text in texts]
        order = random.permutation(len(listed))
        pieces = (
            Piece(
                wording.format(text=listed[int(i)][1], label=written[listed[int(i)][0]]),
                asked=listed[int(i)][0] in asked,
            )
            for i in order[: length // 8]
        )
        return assemble(pieces, end, tokenizer, length)

    def _order(self, name: str, random: np.random.Generator) -> np.ndarray:
        return random.permutation(len(self._examples[name]))


def read_labels(path: Path) -> Labels:
    """Reads a table with columns `text` and `category` (.csv), or CLINC150's JSON.

    Raises:
        EdgeInfiniteError: it is neither, or has fewer than two labels with two examples each.
    """
    text = read_text_file(path)
    try:
        if path.suffix == ".csv":
            rows = [(row["text"], row["category"]) for row in csv.DictReader(io.StringIO(text))]
        else:
            rows = [(str(said), str(label)) for said, label in json.loads(text)["train"]]
    except (ValueError, KeyError, TypeError) as error:
        raise EdgeInfiniteError(
            f"{path} isn't a list of labelled examples (columns text and category, or CLINC150)"
        ) from error
    examples: dict[str, list[str]] = {}
    for said, label in rows:
        examples.setdefault(label, []).append(" ".join(said.split()))
    examples = {label: texts for label, texts in examples.items() if len(texts) > 1}
    if len(examples) < 2:
        raise EdgeInfiniteError(f"{path} has fewer than two labels with two examples each")
    return Labels(examples)


def _written(name: str, random: np.random.Generator) -> str:
    """A label as it stands in the file, or in words."""
    return name if random.random() < 0.5 else name.replace("_", " ").capitalize()
