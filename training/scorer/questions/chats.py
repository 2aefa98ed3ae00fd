"""Chats in the model's own template: facts are told along the way and asked for at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.training.scorer.composed import Composed, Piece, assemble
from edgeinfinite.training.scorer.facts import draw_facts
from edgeinfinite.training.texts import encode

_TELLING = (
    "{statement} What do you make of this?\n{text}",
    "{text}\nBy the way: {statement}",
    "Before we go on, please remember: {statement}\n{text}",
    "{statement}\n{text}",
)
_CHATTING = ("Please go on:\n{text}", "{text}\nWhat happens next?", "{text}")
_ASKING = ("{question}", "One more thing. {question}", "Do you remember? {question}")
_TURN_CHARACTERS = (80, 600)
"""Shortest and longest turn that isn't a question."""
_LEAST_TOLD = 6


class Chats:
    """Composes chats whose filler comes from documents."""

    def __init__(self, documents: Sequence[str]) -> None:
        """Takes long texts; what is said is cut out of them."""
        self._documents = documents

    def compose(
        self, tokenizer: PreTrainedTokenizerBase, length: int, random: np.random.Generator
    ) -> Composed:
        """User and assistant take turns; every third message of the user tells a fact."""
        facts = draw_facts(max(_LEAST_TOLD, length // 500), random)
        document = self._documents[int(random.integers(len(self._documents)))]
        end = [
            message
            for i in random.permutation(len(facts))
            for message in (
                _user(_pick(_ASKING, random).format(question=facts[int(i)].question)),
                _assistant(f"{facts[int(i)].answer.strip()}."),
            )
        ]
        asking = len(encode(_rendered(tokenizer, end), tokenizer))
        told = self._told(document, facts, tokenizer, length - asking, random)
        whole = _rendered(tokenizer, [*told, *end])
        cut = len(_rendered(tokenizer, told))
        pieces: list[Piece] = []
        at = 0
        for fact in facts:
            found = whole.find(fact.statement, at, cut)
            if found >= 0:
                after = found + len(fact.statement)
                pieces += [Piece(whole[at:found]), Piece(whole[found:after], asked=True)]
                at = after
        return assemble([*pieces, Piece(whole[at:cut])], whole[cut:], tokenizer, length)

    def _told(
        self,
        document: str,
        facts: Sequence,
        tokenizer: PreTrainedTokenizerBase,
        room: int,
        random: np.random.Generator,
    ) -> list[dict[str, str]]:
        """Turns until the room is full; the facts stand in its first part, in order."""
        place = int(random.integers(max(1, len(document) * 3 // 4)))
        gap = 0.75 * room / len(facts)
        messages: list[dict[str, str]] = []
        used = told = 0
        while used < room:
            said, place = _said(document, place, random)
            if told < len(facts) and used >= told * gap:
                wording = _pick(_TELLING, random)
                said = wording.format(statement=facts[told].statement, text=said)
                told += 1
            else:
                said = _pick(_CHATTING, random).format(text=said)
            answer, place = _said(document, place, random)
            turn = [_user(said), _assistant(answer)]
            used += len(encode(_rendered(tokenizer, turn), tokenizer))
            if used < room:
                messages += turn
        return messages


def _said(document: str, place: int, random: np.random.Generator) -> tuple[str, int]:
    """A stretch of whole lines or sentences, and where the next one begins."""
    wanted = int(random.integers(*_TURN_CHARACTERS))
    after = document.find(". ", place + wanted)
    end = place + wanted if after < 0 or after > place + 3 * wanted else after + 1
    if end >= len(document):
        return document[:wanted].strip(), wanted
    return " ".join(document[place:end].split()), end


def _rendered(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> str:
    return str(tokenizer.apply_chat_template(messages, tokenize=False)) if messages else ""


def _pick(choices: Sequence[str], random: np.random.Generator) -> str:
    return choices[int(random.integers(len(choices)))]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}
