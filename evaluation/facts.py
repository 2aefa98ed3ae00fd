"""Facts for testing recall. None of their topics, wordings and answers is in `training/facts.py`.

Four kinds: a number, a word, a name, a whole sentence. Every topic has one statement, which stands
somewhere in a long text, and one question at the end that the answer continues, in other words than
the statement's where language allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite import EdgeInfiniteError


@dataclass(frozen=True)
class Fact:
    """One planted fact.

    Args:
        kind: of `KINDS`.
        statement: stands somewhere in the text.
        question: stands at the text's end; the answer continues it.
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
            "Question: Under what was the treasure buried? Answer: The treasure was buried under "
            "the old",
            "windmill pigsty lighthouse sycamore barn staircase cemetery sawmill",
        ),
        (
            "The secret ingredient of the famous stew is {answer}.",
            "Question: Which secret ingredient makes the stew so famous? Answer: It is",
            "saffron cinnamon parsley garlic vinegar nutmeg honey ginger",
        ),
        (
            "The burglars got in through the {answer}.",
            "Question: Which way had the burglars come in? Answer: Through the",
            "skylight cellar pantry keyhole roof greenhouse laundry drain",
        ),
        (
            "The queen's favourite flower has always been the {answer}.",
            "Question: Which flower does the queen love best? Answer: The",
            "daffodil carnation tulip marigold orchid lavender snowdrop peony",
        ),
    ),
    "names": (
        (
            "The name of the lighthouse keeper is {answer}.",
            "Question: What is the lighthouse keeper called? Answer: His name is",
            "",
        ),
        (
            "The winner of the chess tournament turned out to be {answer}.",
            "Question: Who won the chess tournament? Answer: The winner is",
            "",
        ),
        (
            "The painting in the hall is signed by {answer}.",
            "Question: Whose signature is on the painting in the hall? Answer: It is that of",
            "",
        ),
        (
            "The bell of the monastery was cast by {answer}.",
            "Question: Who cast the monastery's bell? Answer: It was",
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
        "Question: Which code opens the vault? Answer: The code",
    ),
    (
        "The size of the secret army is {answer} soldiers.",
        "Question: How many soldiers has the secret army? Answer: It has",
    ),
    (
        "The flight to the moon base has the number {answer}.",
        "Question: Which number has the flight to the moon base? Answer: It has the number",
    ),
)
_SENTENCES = (
    (
        "On the cellar wall somebody has chalked the words: {answer}.",
        "Question: Which words are chalked on the cellar wall? Answer: The words are:",
    ),
    (
        "The oracle's prophecy was as follows: {answer}.",
        "Question: What did the oracle prophesy? Answer: The prophecy was:",
    ),
    (
        "The parrot could say only one thing: {answer}.",
        "Question: What could the parrot say? Answer: It could say:",
    ),
    (
        "The inscription around the ring is {answer}.",
        "Question: What is inscribed on the ring? Answer: The inscription is",
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
    """Facts on different topics, the kinds taking turns, in a random order.

    Args:
        count: how many, at most four of a kind.
        random: the source of chance.
        kinds: of `KINDS`.

    Raises:
        EdgeInfiniteError: a kind is unknown, or more facts are wanted than there are topics.
    """
    if unknown := set(kinds) - set(KINDS):
        raise EdgeInfiniteError(
            f"unknown kind of facts {sorted(unknown)[0]!r}; choose of {', '.join(KINDS)}"
        )
    if not 1 <= count <= len(kinds) * len(_NUMBERS):
        raise EdgeInfiniteError(
            f"{count} facts of {', '.join(kinds)} can't be planted in one text; "
            f"give 1 to {len(kinds) * len(_NUMBERS)}"
        )
    topics = {kind: list(random.permutation(len(_NUMBERS))) for kind in kinds}
    first = int(random.integers(len(kinds)))  # so that no kind is left out where there are few
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
