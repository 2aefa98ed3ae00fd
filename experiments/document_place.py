"""Where a document stands best: in its question's message, or in a turn of its own?

    python experiments/document_place.py ARTIFACT BOOKS

A fact is planted in 3,200 characters of each of 20 books and asked for afterwards. The document is
read once; forks of it go on in three ways. Prints nats per token of the gold answer, and how many
answers have the gold token first at every place.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

from edgeinfinite import Conversation, Session
from edgeinfinite.runtime_py.text.open_message import rest_of_message

NUMBER = [""]
FACTS = {
    "password of the library": NUMBER,
    "name of the grey horse": ["Thunder", "Biscuit", "Saturn", "Pepper"],
    "number of the hotel room": NUMBER,
    "colour of the captain's door": ["green", "purple", "yellow", "orange"],
    "price of the small boat": NUMBER,
    "favourite fruit of the doctor": ["plums", "cherries", "figs", "pears"],
}
BOOKS = 20
START, LENGTH = 30_000, 3_200


def measure(session: Session, tokens: list[int], gold: list[int]) -> tuple[float, bool]:
    """Nats per token of `gold` after `tokens`, and whether greedy decoding gives it."""
    fork = session.fork()
    logits, nats, exact = fork.append(tokens), [], True
    for token in gold:
        shifted = logits.astype(np.float64) - logits.max()
        nats.append(float(np.log(np.exp(shifted).sum()) - shifted[token]))
        exact &= int(logits.argmax()) == token
        logits = fork.append([token])
    return float(np.mean(nats)), exact


def main(artifact: str, folder: str) -> None:
    """Measures and prints."""
    conversation, chance = Conversation.open(artifact), random.Random(0)
    tokenizer = conversation.tokenizer
    rows: dict[str, list[tuple[float, bool]]] = {}
    for i, book in enumerate(sorted(Path(folder).glob("book_*.txt"))[:BOOKS]):
        what = list(FACTS)[i % len(FACTS)]
        choices = FACTS[what]
        value = str(chance.randrange(1000, 9999)) if choices is NUMBER else chance.choice(choices)
        text = book.read_text(encoding="utf-8")[START : START + LENGTH].split("\n\n")
        text.insert(chance.randrange(1, max(2, len(text))), f"The {what} is {value}.")
        conversation.reset()
        conversation.session.append(conversation.opening("\n\n".join(text)))
        question = f"What is the {what}?"
        lead = tokenizer.encode_more(f"The {what} is")
        gold = tokenizer.encode_more(f"The {what} is {value}.")[len(lead) : -1]
        turn = tokenizer.encode_turn(question)
        # SmolLM2's template: the end of a message, then three tokens that open the assistant's.
        answered = turn[:2] + turn[-3:] + tokenizer.encode_more("OK.")
        for name, tokens in (
            ("in the question's message", rest_of_message(tokenizer, question)),
            ("a turn of its own", turn),
            ("a turn of its own, answered with OK", answered + turn),
        ):
            row = measure(conversation.session, tokens + lead, gold)
            rows.setdefault(name, []).append(row)
    for name, found in rows.items():
        nats = np.mean([row[0] for row in found])
        print(f"{name:<40}{nats:.3f} nats, {sum(row[1] for row in found)} of {len(found)} exact")


if __name__ == "__main__":
    main(*sys.argv[1:])
