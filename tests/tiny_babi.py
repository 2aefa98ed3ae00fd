"""Made-up stories in bAbI's format, and books to hide them in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PLACES = ("kitchen", "garden", "office")
PEOPLE = ("Ann", "Bob")
STORIES = 3
WORDS = ("rain", "fell", "on", "old", "roofs", "and", "nobody", "came")


def tiny_babi(folder: Path) -> Path:
    """`folder` with the first two tasks: three stories with two questions each."""
    folder.mkdir(parents=True)
    for task in ("qa1_single-supporting-fact", "qa2_two-supporting-facts"):
        lines: list[str] = []
        for story in range(STORIES):
            first, second = PLACES[story], PLACES[(story + 1) % 3]
            lines += [
                f"1 Ann went to the {first}.",
                f"2 Bob went to the {second}.",
                f"3 Where is Ann? \t{first}\t1",
                f"4 Ann moved to the {second}.",
                f"5 Where is Ann? \t{second}\t4",
            ]
        (folder / f"babi_{task}_test.txt").write_text("\n".join(lines) + "\n")
    return folder


def tiny_books(folder: Path, count: int = 2, sentences: int = 2000) -> Path:
    """`folder` with texts of sentences that name no place."""
    folder.mkdir(parents=True)
    for number in range(count):
        random = np.random.default_rng(number)
        lines = [" ".join(random.choice(WORDS, random.integers(3, 9))) for _ in range(sentences)]
        text = "\n".join(f"{line.capitalize()}." for line in lines)
        (folder / f"book{number}.txt").write_text(text)
    return folder
