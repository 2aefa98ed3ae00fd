"""`evaluate passkey`: facts planted in long texts, asked for at the end.

One text holds several facts at even depths. It is read once by every method; each question is then
asked from the same state, so the facts don't answer each other, or (`in_turn`) all of them one
after the other, as somebody would who has a text before him. Documents, facts and places depend
on the length and the sample alone: every method gets the same texts.
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
        tokens: all before the questions.
        facts: in the order of the text.
        depths: where each begins, as a share of the text.
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
    """Measures what isn't in `results` yet, the methods taking turns on each text.

    Args:
        readings: what to measure, see `planned`.
        open_reader: a new text's reader for a method and a length.
        tokenizer: the backbone's own.
        documents: texts that no trained part has seen.
        options: what is planted in them.
        results: where the rows go.
        progress: see there.

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
    """Every reading, the short ones first.

    Args:
        options: lengths and samples.
        methods: to take turns.
        reads: whether a method can read so many tokens.
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
    """Question and answer, and of how many tokens the answer is."""
    answer = encode(fact.answer, tokenizer)
    return encode(f"\n\n{fact.question}", tokenizer) + answer, len(answer)


def _facts(options: PasskeyOptions, random: np.random.Generator) -> list[Fact]:
    if options.questions is None:
        return draw_facts(options.facts, random, options.kinds)
    return draw_questions(read_squad(Path(options.questions)), options.facts, random)


def _room_for_questions(
    text: PlantedText, tokenizer: PreTrainedTokenizerBase, options: PasskeyOptions
) -> int:
    """Tokens beyond the planned length: only what is asked in turn goes on and on."""
    if not options.in_turn:
        return 0
    return sum(len(_question(fact, tokenizer)[0]) for fact in text.facts)


def _ask(
    reader: TextReader, text: PlantedText, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Iterator[Row]:
    """Each question from the state after the text, so that they don't answer each other."""
    del seed
    restore = reader.save()
    for fact, depth in zip(text.facts, text.depths, strict=True):
        restore()
        yield _asked(reader, fact, depth, tokenizer)


def _ask_in_turn(
    reader: TextReader, text: PlantedText, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Iterator[Row]:
    """One question after the other; the order is random, so that it says nothing about depth."""
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
        # All of the answer's tokens are the likeliest ones: greedy decoding would say it.
        "correct": bool(prediction.best.all()),
        "nats_per_digit_token": float(prediction.nats.mean()),
        "answer_tokens": answer,
        "state_bytes": reader.state_bytes,
    }
