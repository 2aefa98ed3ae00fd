"""Plans and runs the cases; each in a process of its own, so that its peak is its own."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.exact_cost.budget import longest_context
from edgeinfinite.evaluation.exact_cost.case import (
    BudgetRow,
    MemoryCase,
    MemoryOptions,
    MemoryRow,
)
from edgeinfinite.export.peer_models import prepare_peer_model
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.benchmark.worker_process import WorkerFailed, run_worker

_WORKER = "edgeinfinite.evaluation.exact_cost.worker"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(4 << 20)}
"""glibc gives pieces from 4 MB on back as soon as they are freed, for all methods. By default it
keeps pieces of up to 32 MB, and what was scattered among them hid what a method frees: 4,096 tokens
of SmolLM2-135M with the cache on disk took 499 MB in place of 123."""

_MEDIANS = (
    "weights_bytes",
    "peak_bytes",
    "activation_bytes",
    "prefill_bytes",
    "ttft_s",
    "prefill_cpu_s",
    "decode_tokens_per_s",
)

Progress = Callable[[MemoryCase], None]


@dataclass(frozen=True)
class MemoryReport:
    """What a run measured."""

    rows: Sequence[MemoryRow]
    budgets: Sequence[BudgetRow]


def run_methods(
    options: MemoryOptions,
    progress: Progress = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> MemoryReport:
    """Measures every method at every length, then the longest contexts, if there is a budget.

    Args:
        options: see `MemoryOptions`.
        progress: called before each case.
        note: told what is written to the folder for converted checkpoints.

    Raises:
        EdgeInfiniteError: not on Linux, the checkpoint can't be loaded, the text is too short.
    """
    if sys.platform != "linux":
        raise EdgeInfiniteError("peak memory is read from /proc; run this on Linux")
    model = prepare_peer_model("folder", "", options.model, options.peer_cache, note)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = _first_case(options, model, folder)
        rows = _table(options, first, folder, progress)
        budgets = _budgets(options, first, progress) if options.budget_mb else []
    return MemoryReport(rows, budgets)


def run_case(case: MemoryCase, time_limit: float) -> MemoryRow:
    """One repeat in its own process; a failure in that process becomes a row, not an exception."""
    environment = {**dict.fromkeys(_THREADS, str(case.threads)), **_ALLOCATOR}
    try:
        return MemoryRow(**run_worker(_WORKER, asdict(case), time_limit, environment))
    except WorkerFailed as failed:
        return _failure(case, str(failed))


def _first_case(options: MemoryOptions, model: Path, folder: Path) -> MemoryCase:
    """A case to derive the others from; writes the text's tokens."""
    tokens = ""
    if options.text is not None:
        ids = _text_tokens(options.text, model)
        most = max(options.lengths) + options.new_tokens
        if len(ids) < most:
            raise EdgeInfiniteError(
                f"{options.text} has {len(ids):,} tokens; give a text of at least {most:,}"
            )
        tokens = str(folder / "tokens.npy")
        np.save(tokens, ids)
    return MemoryCase(
        method="",
        model=str(model),
        prompt_tokens=0,
        new_tokens=options.new_tokens,
        threads=options.threads,
        chunk=options.chunk,
        dtype=options.dtype,
        offload_folder=str(options.offload_folder or ""),
        tokens=tokens,
    )


def _text_tokens(text: Path, model: Path) -> np.ndarray:
    """The text's ids `[n]` int64, by the checkpoint's own tokenizer."""
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(str(model))(read_text_file(text), verbose=False)
    return np.array(ids["input_ids"], dtype=np.int64)


def _table(
    options: MemoryOptions, first: MemoryCase, folder: Path, progress: Progress
) -> list[MemoryRow]:
    rows: list[MemoryRow] = []
    failed: dict[str, str] = {}
    for length in sorted(options.lengths):
        repeats: dict[str, list[MemoryRow]] = {method: [] for method in options.methods}
        for method in list(options.methods) * options.repeats:
            logits = str(folder / f"{method}.npy")
            case = replace(first, method=method, prompt_tokens=length, logits=logits)
            if method in failed:
                if not repeats[method]:
                    repeats[method].append(_failure(case, f"not tried: {failed[method]}"))
                continue
            progress(case)
            row = run_case(case, options.time_limit)
            repeats[method].append(row)
            if row.error:
                failed[method] = f"at {length:,} tokens {row.error}"
        rows += _with_differences([_median(found) for found in repeats.values()], folder)
    return rows


def _budgets(options: MemoryOptions, first: MemoryCase, progress: Progress) -> list[BudgetRow]:
    assert options.budget_mb is not None
    found = []
    for method in options.methods:
        # Peaks don't depend on what is read, so the text's length doesn't limit the search.
        case = replace(first, method=method, new_tokens=0, tokens="", logits="")

        def measured(length: int, case: MemoryCase = case) -> float | None:
            probe = replace(case, prompt_tokens=length)
            progress(probe)
            return run_case(probe, options.time_limit).activation_bytes

        found.append(longest_context(method, options.budget_mb * 1e6, measured))
    return found


def _median(rows: Sequence[MemoryRow]) -> MemoryRow:
    bad = [row for row in rows if row.error]
    if bad:
        return replace(bad[0], repeats=len(rows))
    medians = {
        name: statistics.median(values)
        for name in _MEDIANS
        if (values := [v for row in rows if (v := getattr(row, name)) is not None])
    }
    return replace(rows[0], repeats=len(rows), **medians)


def _with_differences(rows: list[MemoryRow], folder: Path) -> list[MemoryRow]:
    """Adds the largest difference of each row's logits from the first row's that worked."""
    worked = [row for row in rows if not row.error]
    if not worked:
        return rows
    reference = np.load(folder / f"{worked[0].method}.npy")

    def with_difference(row: MemoryRow) -> MemoryRow:
        if row.error:
            return row
        difference = np.abs(np.load(folder / f"{row.method}.npy") - reference).max()
        return replace(row, logit_difference=float(difference))

    return [with_difference(row) for row in rows]


def _failure(case: MemoryCase, error: str) -> MemoryRow:
    known = {field.name for field in fields(MemoryRow)}
    shared = {name: value for name, value in asdict(case).items() if name in known}
    return MemoryRow(**shared, error=error)
