"""Every method reads each question once, answers it, and measures the gold answers' loss.

Several answers to one prompt share one prefill: the state is restored before each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.questions.options import EMPTY, QuestionOptions
from edgeinfinite.evaluation.questions.prompts import Prompts, Question
from edgeinfinite.evaluation.questions.systems import System
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.training.texts import encode


@dataclass(frozen=True)
class Case:
    """One question, as every method gets it.

    Args:
        key: fields that identify its rows: `task` and `row`, maybe more.
        question: context, question and right answers.
        prompts: builds the prompts of its task.
        answer_length: most tokens of a generated answer.
        score: scores a generated answer, from 0 to 1.
        stops_at_newline: whether a newline ends the answer.
    """

    key: Mapping[str, str | int]
    question: Question
    prompts: Prompts
    answer_length: int
    score: Callable[[str], float]
    stops_at_newline: bool = False

    @property
    def room(self) -> int:
        """Tokens that may follow the prompt: a generated answer, or the longest gold one."""
        gold = (self.prompts.answer(self.question, answer) for answer in self.question.answers)
        return max(self.answer_length, *map(len, gold))


@dataclass(frozen=True)
class Reading:
    """One prompt to be read by one method.

    Args:
        case: the question.
        method: its name.
        longest: most tokens of the prompt, None for no limit.
        tokens: length of the prompt.
    """

    case: Case
    method: str
    longest: int | None
    tokens: int

    @property
    def key(self) -> tuple[str | int, ...]:
        """Identifies its row."""
        return self.method, *self.case.key.values()


def planned(cases: Sequence[Case], system: System, options: QuestionOptions) -> list[Reading]:
    """Every reading: `empty` first, then method by method for each question.

    Args:
        cases: the questions.
        system: has the methods.
        options: where prompts are cut.

    Raises:
        EdgeInfiniteError: `cut_methods` names a method that isn't measured.
    """
    if unknown := [method for method in options.cut_methods if method not in system.methods]:
        raise EdgeInfiniteError(f"{unknown[0]} isn't measured, so its prompts can't be cut")
    empty: list[Reading] = []
    others: list[Reading] = []
    for case in cases:
        whole = len(case.prompts.build(case.question).tokens)
        room = case.room
        for method in system.methods:
            cut = options.cut_methods.get(method, options.cut_length)
            longest = _longest(system.longest(method), cut, room)
            if method == EMPTY:
                prompt = case.prompts.build(case.question, longest, empty=True)
                empty.append(Reading(case, method, longest, len(prompt.tokens)))
            else:
                tokens = whole if longest is None else min(whole, longest)
                others.append(Reading(case, method, longest, tokens))
    return empty + others


def _longest(positions: int | None, cut: int | None, room: int) -> int | None:
    limits = [n for n in (None if positions is None else positions - room, cut) if n is not None]
    return min(limits) if limits else None


def measure_questions(
    readings: Sequence[Reading],
    system: System,
    measures: Collection[str],
    results: Results,
    progress: Progress,
) -> None:
    """Measures every reading that isn't in `results` yet.

    Args:
        readings: from `planned`.
        system: has the methods.
        measures: some of `MEASURES`.
        results: takes the rows.
        progress: see `results.Progress`.
    """
    for reading in readings:
        if results.has(method=reading.method, **reading.case.key):
            progress("", reading.tokens)
            continue
        results.add([_measure(reading, system, measures, progress)])


def _measure(
    reading: Reading, system: System, measures: Collection[str], progress: Progress
) -> Row:
    case, method = reading.case, reading.method
    prompt = case.prompts.build(case.question, reading.longest, empty=method == EMPTY)
    reader = system.open(method, prompt, case.room)
    start = time.perf_counter()
    reader.skip(prompt.tokens, lambda new: progress(f"{method} {case.key['task']}", new))
    seconds = time.perf_counter() - start
    footprint = reader.footprint
    restore = reader.save()
    answer = nats = None
    if "score" in measures:
        answer = _answer(reader, system, case)
        restore()
    if "loss" in measures:
        nats = min(_losses(reader, restore, case), default=None)
    return {
        "method": method,
        **case.key,
        "score": None if answer is None else case.score(answer),
        "answer_nats": nats,
        "prompt_tokens": len(prompt.tokens),
        "state_bytes": footprint.held,
        "peak_state_bytes": footprint.peak,
        "average_state_bytes": footprint.average,
        "first_token_s": round(seconds, 3),
        "answer": answer,
    }


def _answer(reader: TextReader, system: System, case: Case) -> str:
    newline = encode("\n", system.tokenizer)[-1:] if case.stops_at_newline else []
    # If a newline ends the answer, LongBench asks for at least one token.
    least = 1 if case.stops_at_newline else 0
    tokens = greedy_answer(reader, system.stop_ids.union(newline), case.answer_length, least)
    return str(system.tokenizer.decode(tokens, skip_special_tokens=True))


def _losses(reader: TextReader, restore: Callable[[], None], case: Case) -> Iterator[float]:
    """Nats per token of every gold answer, each read from the same state."""
    for answer in case.question.answers:
        if tokens := case.prompts.answer(case.question, answer):
            yield float(reader.read(tokens).nats.mean())
            restore()


def greedy_answer(
    reader: TextReader, stop_ids: Collection[int], most: int, least: int = 0
) -> list[int]:
    """Decodes greedily.

    Args:
        reader: a reader that has read the prompt.
        stop_ids: tokens that end the answer.
        most: longest answer in tokens.
        least: tokens before one of `stop_ids` may end it.
    """
    answer: list[int] = []
    while len(answer) < most:
        logits = reader.logits
        if len(answer) < least:
            logits = logits.copy()
            logits[list(stop_ids)] = -np.inf
        token = int(logits.argmax())
        if token in stop_ids:
            break
        answer.append(token)
        if len(answer) < most:
            reader.skip([token])
    return answer
