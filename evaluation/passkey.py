"""`evaluate passkey`: facts planted in long texts, asked for at the end.

One text holds several facts at evenly spaced depths (`planted.py`), or is a chat in whose first
turns they are told (`told_in_chat.py`). Every method reads it once. Each question is then asked
from the same state, so that questions can't help each other, or (`in_turn`) all are asked one after
the other, as a user would. Documents, facts and places depend only on the length and the sample, so
every method gets the same texts. `empty` reads no text: it says what the questions alone are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.planted import PlantedText, Question, planted_text
from edgeinfinite.evaluation.questions.options import EMPTY
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.evaluation.told_in_chat import told_in_chat

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
        EdgeInfiniteError: a document is too short; with `turns`, see `told_in_chat`.
    """
    for length, seed, method in readings:
        if results.has(method=method, prompt_tokens=length, seed=seed):
            progress("", tokens_to_read((length, seed, method)))
            continue
        make = told_in_chat if options.turns else planted_text
        text = make(documents, tokenizer, length, seed, options)
        # Questions in turn go beyond the planned length, and without a text they are all there is.
        beyond = options.in_turn or method == EMPTY
        room = sum(question.tokens for question in text.questions) if beyond else 0
        if method == EMPTY:
            start = list(tokenizer("").input_ids)  # a BOS token, where the tokenizer adds one
            reader = open_reader(method, len(start) + room)
            if start:
                reader.skip(start)
        else:
            reader = open_reader(method, length + room)
            reader.skip(text.tokens, lambda new, method=method: progress(method, new))  # type: ignore[misc]
            reader.end_prompt()
        row = {"method": method, "prompt_tokens": length, "seed": seed}
        ask = _ask_in_turn if options.in_turn else _ask
        results.add([row | asked for asked in ask(reader, text, seed)])


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


def tokens_to_read(reading: Reading) -> int:
    """Of its text, before the questions."""
    length, _, method = reading
    return 0 if method == EMPTY else length


def _ask(reader: TextReader, text: PlantedText, seed: int) -> Iterator[Row]:
    """Asks each question from the state after the text, so that questions can't help each other."""
    del seed
    restore = reader.save()
    for question in text.questions:
        restore()
        yield _asked(reader, question)


def _ask_in_turn(reader: TextReader, text: PlantedText, seed: int) -> Iterator[Row]:
    """Asks one question after the other, in random order, so that order and depth are
    independent.
    """
    order = np.random.default_rng((seed, len(text.questions))).permutation(len(text.questions))
    for place, index in enumerate(order.tolist(), start=1):
        yield _asked(reader, text.questions[index]) | {"place": place}


def _asked(reader: TextReader, question: Question) -> Row:
    reader.skip(question.asked)
    prediction = reader.read(question.answer)
    return {
        "depth": question.depth,
        "kind": question.fact.kind,
        # Correct means that greedy decoding would give exactly this answer.
        "correct": bool(prediction.best.all()),
        "nats_per_digit_token": float(prediction.nats.mean()),
        "answer_tokens": len(question.answer),
        "state_bytes": reader.state_bytes,
    }
