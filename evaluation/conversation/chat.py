"""Chats with tools in the model's own template; facts are told all along, between tool outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.options import ConversationOptions
from edgeinfinite.evaluation.conversation.tool_outputs import Sentences, draw_tool_use
from edgeinfinite.evaluation.facts import Fact, draw_facts
from edgeinfinite.evaluation.planted import Question
from edgeinfinite.evaluation.told_in_chat import Message, asked_behind, chat_text
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.tools.plain import plain_messages
from edgeinfinite.training.texts import encode

SYSTEM = (
    "You are an assistant who works with tools. The user asks for files, records, logs and manuals "
    "and tells you what has to be known later. Call a tool where one is needed, and answer in a "
    "short sentence. What the user has told you is right; when you are asked for it, say it again "
    "in the user's own words and add nothing."
)
_LEAST_OUTPUT, _MOST_OUTPUT = 200, 700
"""Characters of a tool's output, about."""


@dataclass(frozen=True)
class Chat:
    """A chat with the questions about it.

    Args:
        messages: the system's, then the user's and the assistant's in turn, of text alone.
        tokens: of all messages in the template.
        questions: in the order in which the facts were told.
    """

    messages: list[Message]
    tokens: list[int]
    questions: list[Question]

    @property
    def room(self) -> int:
        """Tokens of the longest question with its answer."""
        return max(question.tokens for question in self.questions)


def draw_chat(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    seed: int,
    options: ConversationOptions,
) -> Chat:
    """The chat of one sample.

    At the start of each of as many equal stretches as there are facts, the user tells one and asks
    for a file or the like; the assistant calls a tool. With the longest question the chat has at
    most `length` tokens, and is shorter by less than a turn.

    Args:
        documents: texts that no trained part has seen; one is drawn.
        tokenizer: with the template.
        length: in tokens.
        seed: of the sample.
        options: what is told.

    Raises:
        EdgeInfiniteError: the tokenizer has no chat template, or one that changes earlier turns;
            `length` is too short for the facts.
    """
    if not tokenizer.chat_template:
        raise EdgeInfiniteError("the model has no chat template, so it can't be asked in a chat")
    random = np.random.default_rng((seed, length))
    facts = draw_facts(options.facts, random, options.kinds)
    document = documents[int(random.integers(len(documents)))]
    sentences = Sentences(read_text_file(document), random)
    messages: list[Message] = [{"role": "system", "content": SYSTEM}]
    text = chat_text(tokenizer, messages)
    count = len(encode(text, tokenizer))
    asked = [asked_behind(tokenizer, messages, text, fact) for fact in facts]
    room = max(len(question) + len(answer) for question, answer in asked)
    told: list[int] = []
    while True:
        due = len(told) < len(facts) and count >= len(told) / len(facts) * length
        turn = _turn(facts[len(told)] if due else None, sentences, random)
        new = len(encode(chat_text(tokenizer, [messages[0], *turn]), tokenizer))
        new -= len(encode(chat_text(tokenizer, messages[:1]), tokenizer))
        if count + new + room > length:
            break
        told += [count] if due else []
        messages += turn
        count += new
    if len(told) < len(facts):
        raise EdgeInfiniteError(
            f"{length:,} tokens are too few for a chat with {len(facts)} facts and tools; give "
            "longer --lengths or fewer --facts"
        )
    text = chat_text(tokenizer, messages)
    questions = [
        Question(fact, round(at / length, 3), *asked_behind(tokenizer, messages, text, fact))
        for fact, at in zip(facts, told, strict=True)
    ]
    return Chat(messages, encode(text, tokenizer), questions)


def _turn(fact: Fact | None, sentences: Sentences, random: np.random.Generator) -> list[Message]:
    """The user's request, the call, the tool's output and what the assistant says to it."""
    use = draw_tool_use(sentences, int(random.integers(_LEAST_OUTPUT, _MOST_OUTPUT)), random)
    told = "" if fact is None else f"{fact.statement}\n\n"
    call = {"function": {"name": use.name, "arguments": use.arguments}}
    return plain_messages(
        [
            {"role": "user", "content": told + use.request},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": use.output},
            {"role": "assistant", "content": use.remark},
        ],
        (),
    )
