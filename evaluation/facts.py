"""Facts for testing recall; their topics, wordings and answers aren't in training/scorer/facts.py.

Four kinds: a number, a word, a name, a whole sentence. Every topic has a statement, planted
somewhere in a long text, and a question at the end. The question begins the answer in the
statement's words, because small models can't answer otherwise and the test is about the state's
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class Fact:
    """One planted fact.

    Args:
        kind: of `KINDS`.
        statement: planted somewhere in the text.
        question: asked at the text's end; the answer continues it.
        answer: with a leading space.
    """

    kind: str
    statement: str
    question: str
    answer: str


_WORDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "words": (
        (
            "The treasure was buried under the old {answer}.",
            "Where is the treasure? The treasure was buried under the old",
            "windmill pigsty lighthouse sycamore barn staircase cemetery sawmill",
        ),
        (
            "The secret ingredient of the famous stew is {answer}.",
            "What makes the stew so famous? The secret ingredient of the famous stew is",
            "saffron cinnamon parsley garlic vinegar nutmeg honey ginger",
        ),
        (
            "The burglars got in through the {answer}.",
            "Which way did the burglars come? The burglars got in through the",
            "skylight cellar pantry keyhole roof greenhouse laundry drain",
        ),
        (
            "The queen's favourite flower is the {answer}.",
            "Which flower does the queen love best? The queen's favourite flower is the",
            "daffodil carnation tulip marigold orchid lavender snowdrop peony",
        ),
    ),
    "names": (
        (
            "The lighthouse keeper is called {answer}.",
            "Who keeps the lighthouse? The lighthouse keeper is called",
            "",
        ),
        (
            "The winner of the chess tournament is {answer}.",
            "Who plays chess best? The winner of the chess tournament is",
            "",
        ),
        (
            "The painting in the hall is signed by {answer}.",
            "Whose painting is it? The painting in the hall is signed by",
            "",
        ),
        (
            "The bell of the monastery was cast by {answer}.",
            "Who made the bell? The bell of the monastery was cast by",
            "",
        ),
    ),
}
_NUMBERS = (
    (
        "The pass key is {answer}. Remember it. {answer} is the pass key.",
        "What is the pass key? The pass key is",
    ),
    (
        "The vault is opened with the code {answer}.",
        "How is the vault opened? The vault is opened with the code",
    ),
    (
        "The size of the secret army is {answer} soldiers.",
        "How large is the secret army? The size of the secret army is",
    ),
    (
        "The flight to the moon base has the number {answer}.",
        "Which flight goes to the moon base? The flight to the moon base has the number",
    ),
)
_SENTENCES = (
    (
        "Somebody has chalked on the cellar wall: {answer}.",
        "What is on the cellar wall? Somebody has chalked on the cellar wall:",
    ),
    (
        "The oracle's prophecy is as follows: {answer}.",
        "What did the oracle see? The oracle's prophecy is as follows:",
    ),
    (
        "The parrot could say only one thing: {answer}.",
        "What did the parrot say? The parrot could say only one thing:",
    ),
    (
        "The inscription around the ring is: {answer}.",
        "What can be read on the ring? The inscription around the ring is:",
    ),
)
_GIVEN = "Barnaby Philippa Cornelius Beatrix Augustin Henrietta Leopold Winifred Ambrose Octavia"
_FAMILY = "Thistlewood Marchbanks Pettigrew Oakenshaw Ravenscroft Humperdinck Applegarth Swinton"
_WHO = "a grey wolf,two blind monks,the tallest giant,an honest thief,three sisters,the last king"
_DOES = "will swallow,must not wake,shall inherit,cannot outrun,has forgiven,will bury"
_WHOM = "the winter moon,a sleeping dragon,seven white ravens,the glass tower,his own shadow"
_WHEN = "before the snow melts,when the river burns,on the hundredth night,without a single tear"

KINDS = ("numbers", "words", "names", "sentences")


def draw_facts(count: int, random: np.random.Generator, kinds: Sequence[str] = KINDS) -> list[Fact]:
    """Draws facts on different topics, alternating kinds, in a random order.

    Args:
        count: how many, at most four per kind.
        random: source of randomness.
        kinds: of `KINDS`.

    Raises:
        EdgeInfiniteError: a kind is unknown, or there are fewer topics than facts.
    """
    if unknown := set(kinds) - set(KINDS):
        raise EdgeInfiniteError(
            f"unknown kind of facts {sorted(unknown)[0]!r}; choose from {', '.join(KINDS)}"
        )
    if not 1 <= count <= len(kinds) * len(_NUMBERS):
        raise EdgeInfiniteError(
            f"{count} facts of {', '.join(kinds)} can't be planted in one text; "
            f"give 1 to {len(kinds) * len(_NUMBERS)}"
        )
    topics = {kind: list(random.permutation(len(_NUMBERS))) for kind in kinds}
    first = int(random.integers(len(kinds)))  # else few facts always get the first kinds
    chosen = [kinds[(first + index) % len(kinds)] for index in range(count)]
    facts = [_fact(kind, int(topics[kind].pop()), random) for kind in chosen]
    return [facts[index] for index in random.permutation(count)]


def _fact(kind: str, topic: int, random: np.random.Generator) -> Fact:
    if kind == "numbers":
        statement, question = _NUMBERS[topic]
        answer = str(int(random.integers(10_000, 100_000)))
    elif kind == "sentences":
        statement, question = _SENTENCES[topic]
        parts = (_WHO, _DOES, _WHOM, _WHEN)
        answer = " ".join(_pick(part.split(","), random) for part in parts)
    else:
        statement, question, words = _WORDS[kind][topic]
        answer = _pick(words.split(), random) if words else ""
        answer = answer or f"{_pick(_GIVEN.split(), random)} {_pick(_FAMILY.split(), random)}"
    return Fact(kind, statement.format(answer=answer), question, f" {answer}")


def _pick(words: Sequence[str], random: np.random.Generator) -> str:
    return words[int(random.integers(len(words)))]
