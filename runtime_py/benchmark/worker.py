"""Runs one case in a fresh process: a `Case` on stdin, a `Row` on stdout's last line, as JSON.

Each case has its own process. So its peak memory is its own, and thread pools, allocators and
caches of one system don't affect the next one's figures.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.runtime_py.answer.answer_figures import step_figures
from edgeinfinite.runtime_py.benchmark.case import Case, Row
from edgeinfinite.runtime_py.benchmark.systems import Figures, System, load_system

_RESERVED_TOKENS = 100
"""Special tokens are at the start of the vocabulary; prompts are drawn from the tokens after it."""


def prompt_of(case: Case) -> np.ndarray:
    """The same tokens for every system, of a text or random ones.

    Speed doesn't depend on them, nor does the memory of most systems. But an embedding that is
    mapped from its file is in memory as far as it was looked up: of a large vocabulary, random
    tokens touch far more than a text, whose words return.

    Returns:
        `[prompt_tokens]` int64.
    """
    if case.words:
        return np.resize(np.array(case.words, np.int64), case.prompt_tokens)
    low = min(_RESERVED_TOKENS, case.vocabulary // 2)
    return np.random.default_rng(0).integers(low, case.vocabulary, case.prompt_tokens)


def measure(case: Case) -> Row:
    """Loads the system, reads the prompt, decodes; raises whatever the system raises."""
    started = time.perf_counter()
    system: System = load_system(case)
    loaded = time.perf_counter()
    token = system.read(prompt_of(case))
    ttft = time.perf_counter() - loaded
    steps = []
    for _ in range(case.new_tokens):
        before = time.perf_counter()
        token = system.step(token)
        steps.append(time.perf_counter() - before)
    figures = system.figures()
    rate, median, slowest = step_figures(steps)
    return _row(
        case,
        figures,
        load_s=loaded - started,
        ttft_s=ttft,
        prefill_tokens_per_s=case.prompt_tokens / ttft,
        decode_tokens_per_s=rate,
        median_token_s=median,
        slowest_token_s=slowest,
        peak_rss_bytes=own_peak_bytes(),
        state_bytes=figures.state_bytes,
        file_bytes=figures.file_bytes,
    )


def measure_loss(case: Case) -> Row:
    """Reads the case's text token by token: the mean of -log p(next token)."""
    system: System = load_system(case)
    losses = []
    for token, following in itertools.pairwise(case.text):
        logits = system.logits(token).astype(np.float64)
        losses.append(np.logaddexp.reduce(logits) - logits[following])
    return _row(case, system.figures(), nats_per_token=float(np.mean(losses)))


def _row(case: Case, figures: Figures, **measured: Any) -> Row:
    return Row(
        system=case.system,
        quantization=figures.quantization,
        policy=figures.policy,
        settings=case.settings,
        prompt_tokens=case.prompt_tokens,
        new_tokens=case.new_tokens,
        threads=case.threads,
        **measured,
    )


def own_peak_bytes() -> int | None:
    """Peak resident memory of this program alone.

    Linux counts what a process held before `exec` into `ru_maxrss`, so a worker would report its
    parent's memory when that is larger; the high-water mark of its own address space does not.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return peak_rss_bytes()


def main() -> None:
    """The process's entry point."""
    case = Case(**json.load(sys.stdin))
    row = measure_loss(case) if case.text else measure(case)
    print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main()
