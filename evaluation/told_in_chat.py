"""Chats in the model's own template: facts are told, and asked for many turns later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.facts import Fact
from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.planted import PlantedText, Question, drawn_facts
from edgeinfinite.files import read_text_file
from edgeinfinite.training.texts import encode, excerpt

_LEAST_WORDS = 8
"""Tokens of a message, at least."""

Message = dict[str, str]


def told_in_chat(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    seed: int,
    options: PasskeyOptions,
) -> PlantedText:
    """The chat of one sample: a fact in each of the first turns, then `options.turns` more.

    A turn is a message of the user and one of the assistant; both go on with a document. With the
    longest question the chat has at most `length` tokens.

    Raises:
        EdgeInfiniteError: the tokenizer has no chat template, or one that changes earlier turns;
            `length` is too short for the turns, or the document for `length`.
    """
    if not tokenizer.chat_template:
        raise EdgeInfiniteError("the model has no chat template; leave --turns out")
    random = np.random.default_rng((seed, length, options.turns))
    facts = drawn_facts(options, random)
    document = read_text_file(documents[int(random.integers(len(documents)))])
    count = 2 * (len(facts) + options.turns)
    messages = _messages(facts, [""] * count)
    text = chat_text(tokenizer, messages)
    asked = [asked_behind(tokenizer, messages, text, fact) for fact in facts]
    longest = max(len(question) + len(answer) for question, answer in asked)
    room = (length - longest - len(encode(text, tokenizer))) // count
    if room < _LEAST_WORDS:
        turns = len(facts) + options.turns
        raise EdgeInfiniteError(f"{length:,} tokens are too few for a chat of {turns} turns")
    body = excerpt(document, tokenizer, room * count, random)
    while True:
        said = [str(tokenizer.decode(body[i * room :][:room])).strip() for i in range(count)]
        messages = _messages(facts, said)
        text = chat_text(tokenizer, messages)
        tokens = encode(text, tokenizer)
        if len(tokens) + longest <= length:
            break
        room -= 1  # cut apart and put into messages, a text can have more tokens
    questions = []
    for fact in facts:
        before = encode(text[: text.index(fact.statement)], tokenizer)
        depth = round(len(before) / length, 3)
        questions.append(Question(fact, depth, *asked_behind(tokenizer, messages, text, fact)))
    return PlantedText(tokens, questions)


def _messages(facts: Sequence[Fact], said: Sequence[str]) -> list[Message]:
    """User and assistant in turn; the user's first messages begin with the facts."""
    messages = []
    for turn in range(len(said) // 2):
        told = f"{facts[turn].statement}\n\n" if turn < len(facts) else ""
        messages += [_message("user", told + said[2 * turn])]
        messages += [_message("assistant", said[2 * turn + 1])]
    return messages


def asked_behind(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], text: str, fact: Fact
) -> tuple[list[int], list[int]]:
    """Tokens that ask for a fact behind the chat, with the answer's first words, and the answer's.

    Args:
        tokenizer: with the template.
        messages: of the chat.
        text: the chat in the template.
        fact: to ask for.

    Raises:
        EdgeInfiniteError: the template changes earlier turns.
    """
    question, begun = fact.question.split("? ", 1)
    asked = [_message("user", f"{question}?"), _message("assistant", begun)]
    whole = str(
        tokenizer.apply_chat_template(
            [*messages, *asked], tokenize=False, continue_final_message=True
        )
    )
    if not whole.startswith(text):
        raise EdgeInfiniteError(
            "the model's chat template changes earlier turns when another is added, so facts told "
            "in a chat can't be measured"
        )
    return encode(whole[len(text) :], tokenizer), encode(fact.answer, tokenizer)


def chat_text(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]) -> str:
    """Whole messages in the template."""
    return str(tokenizer.apply_chat_template(list(messages), tokenize=False))


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
