"""`evaluate passkey`: facts planted in long texts, asked for at the end.

One text holds several facts at evenly spaced depths. Every method reads it once. Each question is
then asked from the same state, so that questions can't help each other, or (`in_turn`) all are
asked one after the other, as a user would. Documents, facts and places depend only on the length
and the sample, so every method gets the same texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.evaluation.facts import Fact, draw_facts
from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.evaluation.squad import draw_questions, read_squad
from edgeinfinite.files import read_text_file
from edgeinfinite.training.texts import encode, excerpt


@dataclass(frozen=True)
class PlantedText:
    """A text with facts.

    Args:
        tokens: the text before the questions.
        facts: in the order of the text.
        depths: where each fact begins, as a share of the text.
    """

    tokens: list[int]
    facts: list[Fact]
    depths: list[float]


Reading = tuple[int, int, str]
"""Length, seed and method."""


def measure_passkey(
    readings: Sequence[Reading],
    open_reader: Callable[[str, int], TextReader],
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    options: PasskeyOptions,
    results: Results,
    progress: Progress,
) -> None:
    """Measures every reading that isn't in `results` yet, method by method for each text.

    Args:
        readings: from `planned`.
        open_reader: opens a reader of a method for a text of this length.
        tokenizer: the backbone's own.
        documents: texts that no trained part has seen.
        options: what to plant in them.
        results: takes the rows.
        progress: see `results.Progress`.

    Raises:
        EdgeInfiniteError: a document is too short.
    """
    for length, seed, method in readings:
        if results.has(method=method, prompt_tokens=length, seed=seed):
            progress("", length)
            continue
        text = planted_text(documents, tokenizer, length, seed, options)
        reader = open_reader(method, length + _room_for_questions(text, tokenizer, options))
        reader.skip(text.tokens, lambda new, method=method: progress(method, new))  # type: ignore[misc]
        row = {"method": method, "prompt_tokens": length, "seed": seed}
        ask = _ask_in_turn if options.in_turn else _ask
        results.add([row | asked for asked in ask(reader, text, tokenizer, seed)])


def planned(
    options: PasskeyOptions,
    methods: Sequence[str],
    reads: Callable[[str, int], bool] = lambda method, length: True,
) -> list[Reading]:
    """Every reading, short texts first.

    Args:
        options: lengths and samples.
        methods: to measure.
        reads: whether a method can read this many tokens.
    """
    return [
        (length, options.seed + sample, method)
        for length in sorted(options.lengths)
        for sample in range(options.samples)
        for method in methods
        if reads(method, length)
    ]


def planted_text(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    seed: int,
    options: PasskeyOptions,
) -> PlantedText:
    """The text of one sample: with the longest question it has `length` tokens."""
    random = np.random.default_rng((seed, length))
    facts = _facts(options, random)
    document = read_text_file(documents[int(random.integers(len(documents)))])
    statements = [encode(f"\n\n{fact.statement}\n\n", tokenizer) for fact in facts]
    longest = max(len(_question(fact, tokenizer)[0]) for fact in facts)
    body = excerpt(document, tokenizer, length - longest - sum(map(len, statements)), random)
    tokens: list[int] = []
    depths = []
    before = 0
    for index, statement in enumerate(statements):
        cut = int((index + 0.5) / len(facts) * len(body))
        tokens += body[before:cut]
        depths.append(round(len(tokens) / length, 3))
        tokens += statement
        before = cut
    return PlantedText(tokens + body[before:], facts, depths)


def _question(fact: Fact, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], int]:
    """The tokens of question and answer, and how many of them are the answer's."""
    answer = encode(fact.answer, tokenizer)
    return encode(f"\n\n{fact.question}", tokenizer) + answer, len(answer)


def _facts(options: PasskeyOptions, random: np.random.Generator) -> list[Fact]:
    if options.questions is None:
        return draw_facts(options.facts, random, options.kinds)
    return draw_questions(read_squad(Path(options.questions)), options.facts, random)


def _room_for_questions(
    text: PlantedText, tokenizer: PreTrainedTokenizerBase, options: PasskeyOptions
) -> int:
    """Tokens beyond the planned length, needed only for questions asked in turn."""
    if not options.in_turn:
        return 0
    return sum(len(_question(fact, tokenizer)[0]) for fact in text.facts)


def _ask(
    reader: TextReader, text: PlantedText, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Iterator[Row]:
    """Asks each question from the state after the text, so that questions can't help each other."""
    del seed
    restore = reader.save()
    for fact, depth in zip(text.facts, text.depths, strict=True):
        restore()
        yield _asked(reader, fact, depth, tokenizer)


def _ask_in_turn(
    reader: TextReader, text: PlantedText, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Iterator[Row]:
    """Asks one question after the other, in random order, so that order and depth are
    independent.
    """
    order = np.random.default_rng((seed, len(text.facts))).permutation(len(text.facts))
    for place, index in enumerate(order.tolist(), start=1):
        row = _asked(reader, text.facts[index], text.depths[index], tokenizer)
        yield row | {"place": place}


def _asked(reader: TextReader, fact: Fact, depth: float, tokenizer: PreTrainedTokenizerBase) -> Row:
    asked, answer = _question(fact, tokenizer)
    reader.skip(asked[:-answer])
    prediction = reader.read(asked[-answer:])
    return {
        "depth": depth,
        "kind": fact.kind,
        # Correct means that greedy decoding would give exactly this answer.
        "correct": bool(prediction.best.all()),
        "nats_per_digit_token": float(prediction.nats.mean()),
        "answer_tokens": answer,
        "state_bytes": reader.state_bytes,
    }
