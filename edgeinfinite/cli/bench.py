"""`edgeinfinite bench`: speed and memory by prompt length, compared with peers."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from edgeinfinite.cli.arguments import given
from edgeinfinite.cli.bench_methods import bench_methods
from edgeinfinite.cli.notes import note
from edgeinfinite.files import check_writable
from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.benchmark.case import Row
from edgeinfinite.runtime_py.benchmark.options import BenchOptions


def bench(arguments: argparse.Namespace) -> int:
    """Measures speed and memory by prompt length, for artifacts and installed peers."""
    if arguments.methods is not None:
        return bench_methods(arguments)
    from edgeinfinite.runtime_py.benchmark import report
    from edgeinfinite.runtime_py.benchmark.run import run_bench

    check_writable(arguments.json)
    check_writable(arguments.plot)
    options = BenchOptions(**given(arguments, BenchOptions))

    def peer_model(kind: str, settings: str, model: str) -> Path:
        from edgeinfinite.export.peer_models import (
            prepare_peer_model,  # the only part that needs torch
        )

        return prepare_peer_model(kind, settings, model, options.peer_cache, note)

    def keep(rows: list[Row]) -> None:
        if arguments.json:  # what was measured stays if the rest is interrupted
            write_rows(arguments.json, "bench", [dataclasses.asdict(row) for row in rows])

    rows, limits = run_bench(options, peer_model, keep)
    print(f"{report.table(rows)}\n\n{report.details(rows)}\n")
    print(
        f"memory reads {limits.read_bytes_per_s / 1e9:.1f} GB/s, float32 matrix products "
        f"{limits.multiply_flops / 1e9:.0f} GFLOP/s with {options.threads} threads"
    )
    keep(rows)
    if arguments.plot:
        report.plot(rows, arguments.plot)
    return 0
