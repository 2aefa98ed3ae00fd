"""Small texts of a few words, for commands that read folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def tiny_texts(folder: Path, count: int) -> Path:
    """`count` files of 900 words in `folder`, each drawn anew, the same in every run."""
    for number in range(count):
        words = np.random.default_rng(number).choice(["a", "dog", "went", "home\n"], 900)
        (folder / f"text{number}.txt").write_text(" ".join(words))
    return folder
