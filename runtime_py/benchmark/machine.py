"""The hardware's limits, measured in the same run as everything else."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from edgeinfinite.runtime_py.benchmark.case import Row

_READ_BYTES = 256 * 1024 * 1024
_MATRIX = 1536


@dataclass(frozen=True)
class MachineLimits:
    """Memory read bandwidth in bytes/s and float32 matrix multiplication in FLOP/s."""

    read_bytes_per_s: float
    multiply_flops: float


def machine_limits(threads: int) -> MachineLimits:
    """The best of several tries, in a separate process so that `threads` takes effect.

    Args:
        threads: CPU threads, as for the cases.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-m", __name__, str(threads)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    bandwidth, flops = answer.stdout.split()[-2:]
    return MachineLimits(float(bandwidth), float(flops))


def with_shares(row: Row, limits: MachineLimits, multiplied: int | None) -> Row:
    """Adds to a row its speed as shares of the machine's limits.

    Decoding a token reads every weight at least once: the decode share is this traffic divided by
    the bandwidth. Prefill multiplies every weight with every token: the prefill share is this work,
    without attention, divided by the float32 rate. 8-bit products can exceed that rate.

    Args:
        row: one system at one length.
        limits: the machine's limits, from the same run.
        multiplied: the number of weights that each prompt token is multiplied with; None: unknown.
    """
    reads = multiplies = None
    if row.file_bytes and row.median_token_s:
        reads = row.file_bytes / row.median_token_s / limits.read_bytes_per_s
    if row.prefill_tokens_per_s and multiplied is not None:
        multiplies = 2 * multiplied * row.prefill_tokens_per_s / limits.multiply_flops
    return replace(row, bandwidth_share=reads, multiply_share=multiplies)


def _read_bytes_per_s(threads: int) -> float:
    """Each thread sums its own array, which is several times larger than any CPU cache."""
    arrays = [np.ones(_READ_BYTES // threads // 8, dtype=np.float64) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = perf_counter()
            list(pool.map(np.sum, arrays))
            best = max(best, sum(a.nbytes for a in arrays) / (perf_counter() - start))
    return best


def _multiply_flops() -> float:
    a = np.ones((_MATRIX, _MATRIX), dtype=np.float32)
    best = 0.0
    for _ in range(5):
        start = perf_counter()
        np.matmul(a, a)
        best = max(best, 2 * _MATRIX**3 / (perf_counter() - start))
    return best


if __name__ == "__main__":
    print(_read_bytes_per_s(int(sys.argv[1])), _multiply_flops())
