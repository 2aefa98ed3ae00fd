"""Exact attention and states of a fixed size, side by side: memory, time, loss and recall.

python experiments/exact_and_fixed.py ROWS.jsonl --data HELD_OUT/*.txt \
    --tokenizer build/demo --lengths 2048,4096,8192,16384,32768,65536,131072 --threads 1 \
    --plot exact-and-fixed.png \
    --system fixed=build/demo streaming=build/demo-streaming mom=smollm2-135m-instruct \
             llama.cpp=FILE.gguf beyond=smollm2-135m-instruct part=smollm2-135m-instruct

Every system reads the same texts, each with eight planted facts (`evaluate passkey`'s). The time to
the first token is that of all but the last 96 tokens; these are read one by one, which gives the
decode rate and the loss; then each fact is asked for from the state after the text. Each row is a
process of its own, so that its peak of memory is its own, and a line of ROWS.jsonl. A run that is
started again measures what is missing. `llama.cpp` has a q8_0 cache.

Where `mom` ends, at the positions that the model was trained on, loss and recall say nothing.
`beyond` is `mom` without that limit, for memory and time alone. `part` stands in for it where a
prefill takes hours: it reads the prompt with the model's first three layers, of which two attend
in full, and decodes with all layers from a cache that was filled with random numbers. `filled` only
decodes so.

A system that fails or takes too long isn't asked for longer texts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from exact_and_fixed_report import SPEED_ALONE, plot, table
from exact_and_fixed_systems import PartReader, Reader, open_reader

from edgeinfinite.runtime_py.benchmark.worker import own_peak_bytes

_STEPS = 96
"""Tokens read one by one at a text's end, which no fact is planted in."""

_STEPS_OF_PART = 16
_ROOM_FOR_AN_ANSWER = 128

_RESET_PEAK = "5"
"""Written to /proc/self/clear_refs: the peak is counted from there, without the loading's."""


@dataclass(frozen=True)
class Case:
    """One row: a system (a name of `exact_and_fixed_report.NAMES`), what it loads, and a text.

    Args:
        length: in tokens, the longest question included.
        seed: of the text.
        text: token ids.
        questions: token ids of each question with its answer, and how many are the answer's.
    """

    system: str
    model: str
    length: int
    seed: int
    threads: int
    text: list[int]
    questions: list[tuple[list[int], int]]


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="ARTIFACT")
    parser.add_argument("--system", nargs="+", required=True, metavar="NAME=MODEL")
    parser.add_argument("--lengths", default="2048,8192")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=600)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    systems = dict(pair.split("=", 1) for pair in options.system)
    failed: set[str] = set()
    for length in map(int, options.lengths.split(",")):
        for seed in range(options.seed, options.seed + options.samples):
            text = _text(options.tokenizer, options.data, length, seed)
            for system, model in systems.items():
                case = Case(system, model, length, seed, options.threads, *text)
                found = [row for row in _rows(options.rows) if _is_of(row, case)]
                if not found and system not in failed:
                    found = [_run(case, options.time_limit)]
                    with options.rows.open("a") as file:
                        file.write(json.dumps(found[0]) + "\n")
                    print(json.dumps(found[0]), flush=True)
                if any(row.get("error") for row in found):
                    failed.add(system)
    print(table(_rows(options.rows)))
    if options.plot:
        plot(_rows(options.rows), options.plot)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _is_of(row: dict[str, Any], case: Case) -> bool:
    return (row["system"], row["prompt_tokens"], row["seed"], row["threads"]) == (
        case.system,
        case.length,
        case.seed,
        case.threads,
    )


def _text(
    artifact: Path, documents: Sequence[Path], length: int, seed: int
) -> tuple[list[int], list[tuple[list[int], int]]]:
    """A text with facts, and the questions about them."""
    from edgeinfinite.evaluation.artifact_reader import tokenizer_of
    from edgeinfinite.evaluation.options import PasskeyOptions
    from edgeinfinite.evaluation.planted import planted_text

    tokenizer = tokenizer_of(artifact)
    text = planted_text(documents, tokenizer, length, seed, PasskeyOptions())
    return text.tokens, [(q.asked + q.answer, len(q.answer)) for q in text.questions]


def _run(case: Case, limit: float) -> dict[str, Any]:
    about = {"system": case.system, "prompt_tokens": case.length}
    about |= {"seed": case.seed, "threads": case.threads}
    command = [sys.executable, __file__, "--case"]
    given = json.dumps(asdict(case))
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return about | {"error": f"took more than {limit:,.0f} s"}
    if done.returncode:
        return about | {"error": (done.stderr.strip() or "no message").splitlines()[-1][-200:]}
    return about | json.loads(done.stdout.splitlines()[-1])


def measure(case: Case) -> dict[str, Any]:
    """The row of a case, in a process of its own that imports what the system needs, no more."""
    tokens = case.length + _ROOM_FOR_AN_ANSWER
    reader = open_reader(case.system, case.model, tokens=tokens, threads=case.threads)
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    steps = _STEPS_OF_PART if case.system in ("part", "filled") else _STEPS
    wall, cpu = _time_of(lambda: reader.skip(case.text[:-steps]))
    if isinstance(reader, PartReader):
        reader.fill(len(case.text) - steps)
    losses: list[float] = []
    decode_wall, decode_cpu = _time_of(lambda: losses.extend(_read(reader, case.text[-steps:])[0]))
    row = {
        "ttft_s": round(wall, 3),
        "prefill_cpu_s": round(cpu, 3),
        "decode_tokens_per_s": round(steps / decode_wall, 2),
        "decode_cpu_ms": round(1000 * decode_cpu / steps, 2),
        "peak_rss_bytes": int(own_peak_bytes() or 0),
        "state_bytes": reader.state_bytes,
    }
    if case.system == "filled":
        del row["ttft_s"], row["prefill_cpu_s"], row["peak_rss_bytes"]
    if case.system in SPEED_ALONE:
        return row
    asked = [_ask(reader, question, count) for question, count in case.questions]
    return row | {
        "nats_per_token": round(statistics.mean(losses), 4),
        "facts": len(asked),
        "exact": sum(exact for _, exact in asked),
        "nats_per_answer_token": round(statistics.mean(nats for nats, _ in asked), 4),
    }


def _time_of(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds on the clock, and of processor time."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - worked


def _read(reader: Reader, tokens: Sequence[int]) -> tuple[list[float], bool]:
    """Reads tokens one by one: the loss of each, and whether each was the likeliest."""
    losses, all_best = [], True
    for token in tokens:
        logits = reader.logits.astype(np.float64)
        losses.append(float(np.logaddexp.reduce(logits) - logits[token]))
        all_best &= int(logits.argmax()) == token
        reader.skip([token])
    return losses, all_best


def _ask(reader: Reader, question: Sequence[int], count: int) -> tuple[float, bool]:
    """Nats per token of the answer, and whether greedy decoding would give it; then forgets."""
    restore = reader.save()
    reader.skip(question[:-count])
    losses, exact = _read(reader, question[-count:])
    restore()
    return statistics.mean(losses), exact


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(measure(Case(**json.load(sys.stdin)))), flush=True)
    else:
        main()
