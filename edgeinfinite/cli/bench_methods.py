"""`edgeinfinite bench --model CHECKPOINT --methods ...`: what exact attention costs, by method."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from edgeinfinite.cli.arguments import file_option, finite, given, names, option, positive
from edgeinfinite.cli.mom import DTYPES
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable
from edgeinfinite.rows_file import write_rows

BENCH_METHODS = {
    "--methods": option(
        "exact attention on --model, in place of artifacts and peers: standard,last-token-head,"
        "chunked-prefill,mini-sequence,offload,mom-paper,mom, or all",
        type=names,
        default=None,
        metavar="LIST",
    ),
    "--budget-mb": option(
        "methods: also the longest context whose activations and cache fit",
        type=finite,
        metavar="MB",
    ),
    "--chunk": option("methods: tokens of a chunk", type=positive, metavar="N"),
    "--dtype": option("methods: weights and cache", choices=DTYPES),
    "--offload-folder": file_option("methods: folder for the caches on disk", "DIR"),
}


def bench_methods(arguments: argparse.Namespace) -> int:
    """Measures methods of exact attention on one checkpoint.

    Raises:
        EdgeInfiniteError: there is no --model, or artifacts or peers are given too.
    """
    from tqdm import tqdm

    from edgeinfinite.evaluation.exact_cost import report
    from edgeinfinite.evaluation.exact_cost.case import MemoryCase, MemoryOptions
    from edgeinfinite.evaluation.exact_cost.run import run_methods

    if "model" not in arguments:
        raise EdgeInfiniteError("--methods read a checkpoint; give it with --model")
    if arguments.artifacts or "peers" in arguments:
        raise EdgeInfiniteError(
            "--methods measures a checkpoint alone; measure artifacts and --peers in another run"
        )
    check_writable(arguments.json)
    check_writable(arguments.plot)
    values: dict[str, Any] = given(arguments, MemoryOptions)
    if arguments.methods == ("all",):
        del values["methods"]
    options = MemoryOptions(**values)
    with tqdm(desc="bench", unit="case", disable=None) as bar:

        def progress(case: MemoryCase) -> None:
            bar.set_postfix_str(f"{case.method}, {case.prompt_tokens:,} tokens")
            bar.update()

        found = run_methods(options, progress, note)
    print(report.table(found.rows))
    if found.budgets:
        print(f"\n{report.budget_table(found.budgets)}")
    if arguments.json:
        rows = [dataclasses.asdict(row) for row in found.rows]
        rows += [dataclasses.asdict(budget) for budget in found.budgets]
        write_rows(arguments.json, "bench --methods", rows)
    if arguments.plot:
        report.plot(found.rows, arguments.plot)
    return 0
