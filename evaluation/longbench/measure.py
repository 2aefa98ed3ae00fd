"""`evaluate longbench`: every method reads each row once, answers it, and measures the loss.

Several answers to one prompt share one prefill: the state is restored before each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.longbench.folder import TaskData, TaskRow
from edgeinfinite.evaluation.longbench.metrics import score
from edgeinfinite.evaluation.longbench.options import EMPTY, LongBenchOptions
from edgeinfinite.evaluation.longbench.prompts import Prompts
from edgeinfinite.evaluation.longbench.systems import System
from edgeinfinite.evaluation.reader import TextReader
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.training.texts import encode


@dataclass(frozen=True)
class Reading:
    """One prompt to be read by one method.

    Args:
        data: the task.
        row: a row of the task.
        method: which one.
        longest: most tokens of the prompt, None for no limit.
        tokens: length of the prompt.
    """

    data: TaskData
    row: TaskRow
    method: str
    longest: int | None
    tokens: int


def planned(tasks: Sequence[TaskData], system: System, options: LongBenchOptions) -> list[Reading]:
    """Every reading: `empty` first, then method by method for each row.

    Args:
        tasks: as `read_folder` gives them.
        system: has the methods.
        options: which rows, and where prompts are cut.

    Raises:
        EdgeInfiniteError: no row is short enough.
    """
    empty: list[Reading] = []
    others: list[Reading] = []
    for data in tasks:
        prompts = Prompts(data, system.tokenizer)
        for row in data.rows:
            whole = len(prompts.build(row).tokens)
            if options.max_tokens is not None and whole > options.max_tokens:
                continue
            room = answer_room(prompts, data, row)
            for method in system.methods:
                longest = _longest(system.longest(method), options.cut_length, room)
                if method == EMPTY:
                    tokens = len(prompts.build(row, longest, empty=True).tokens)
                    empty.append(Reading(data, row, method, longest, tokens))
                else:
                    tokens = whole if longest is None else min(whole, longest)
                    others.append(Reading(data, row, method, longest, tokens))
    if not empty + others:
        raise EdgeInfiniteError(
            f"no row has at most {options.max_tokens:,} tokens; give more to --max-tokens"
        )
    return empty + others


def answer_room(prompts: Prompts, data: TaskData, row: TaskRow) -> int:
    """Tokens that may follow the prompt: a generated answer, or the longest gold one."""
    return max(data.answer_length, *(len(prompts.answer(row, answer)) for answer in row.answers))


def _longest(positions: int | None, cut: int | None, room: int) -> int | None:
    limits = [n for n in (None if positions is None else positions - room, cut) if n is not None]
    return min(limits) if limits else None


def measure_longbench(
    readings: Sequence[Reading],
    system: System,
    options: LongBenchOptions,
    results: Results,
    progress: Progress,
) -> None:
    """Measures every reading that isn't in `results` yet.

    Args:
        readings: from `planned`.
        system: what reads.
        options: what to measure.
        results: takes the rows.
        progress: see `results.Progress`.
    """
    done = {(row["method"], row["task"], row["row"]) for row in results.rows}
    for reading in readings:
        if (reading.method, reading.data.task.name, reading.row.row) in done:
            progress("", reading.tokens)
            continue
        results.add([_measure(reading, system, options, progress)])


def _measure(
    reading: Reading, system: System, options: LongBenchOptions, progress: Progress
) -> Row:
    data, row, method = reading.data, reading.row, reading.method
    prompts = Prompts(data, system.tokenizer)
    prompt = prompts.build(row, reading.longest, empty=method == EMPTY)
    reader = system.open(method, prompt, answer_room(prompts, data, row))
    start = time.perf_counter()
    reader.skip(prompt.tokens, lambda new: progress(f"{method} {data.task.name}", new))
    seconds = time.perf_counter() - start
    footprint = reader.footprint
    restore = reader.save()
    answer = nats = None
    if "score" in options.measures:
        newline = encode("\n", system.tokenizer)[-1:] if data.task.stops_at_newline else []
        answer = "".join(
            system.tokenizer.decode(
                greedy_answer(
                    reader,
                    system.stop_ids.union(newline),
                    data.answer_length,
                    # If a newline ends the answer, LongBench asks for at least one token.
                    least=1 if data.task.stops_at_newline else 0,
                ),
                skip_special_tokens=True,
            )
        )
        restore()
    if "loss" in options.measures:
        nats = min(_losses(reader, restore, prompts, row), default=None)
    return {
        "method": method,
        "task": data.task.name,
        "row": row.row,
        "score": None if answer is None else score(data.task, answer, row.answers, row.classes),
        "answer_nats": nats,
        "prompt_tokens": len(prompt.tokens),
        "state_bytes": footprint.held,
        "peak_state_bytes": footprint.peak,
        "average_state_bytes": footprint.average,
        "first_token_s": round(seconds, 3),
        "answer": answer,
    }


def _losses(
    reader: TextReader, restore: Callable[[], None], prompts: Prompts, row: TaskRow
) -> Iterator[float]:
    """Nats per token of every gold answer, each read from the same state."""
    for answer in row.answers:
        if tokens := prompts.answer(row, answer):
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
