"""Which parts a prompt may be cut into without a number changing.

A row of a matrix product doesn't depend on the other rows, but how its sum is rounded depends on
how many there are: MKL sums other ways for fewer than four rows a thread, on processors with
AVX512-FP16 for fewer than sixteen. So what is computed for one token, or for a short rest, is
computed in as many rows as round like a whole prompt's.
Measured: float32, x86, one and two threads, `experiments/exact_rounding.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

_FEWEST, _FEWEST_A_THREAD = 16, 4
"""Rows of a product, in all and in a thread, from which on they round the same, however many there
are."""

_FEWEST_QUERIES = 4
"""The same for queries in the products of PyTorch's attention."""

_LONG_QUERIES, _QUERIES_OF_LONG = 768, 256
_MEDIUM_QUERIES, _QUERIES_OF_MEDIUM = 192, 64
_QUERIES_OF_SHORT = 32
"""PyTorch's CPU attention computes so many queries at a time, by their number in the call
(`aten/src/ATen/native/cpu/FlashAttentionKernel.cpp`)."""


def like_many(tokens: int) -> int:
    """Rows that round like those of a call of so many tokens."""
    return min(tokens, max(_FEWEST, _FEWEST_A_THREAD * torch.get_num_threads()))


def chunks(tokens: int, size: int) -> Iterator[tuple[int, int]]:
    """Cuts tokens into chunks of `size`, as pairs of start and end.

    A rest too short to round like a whole prompt joins the chunk before, which is an eighth longer
    then at most. In chunks so short that it would be more, a short rest stands alone.
    """
    rest, fewest = tokens % size, like_many(tokens)
    joins = 0 < rest < fewest and 8 * fewest <= size
    last = tokens - rest - (size if joins else 0)
    for start in range(0, tokens, size):
        if start >= last:
            yield start, tokens
            return
        yield start, start + size


def query_blocks(tokens: int, prompt: int, most: int) -> Iterator[tuple[int, int]]:
    """Cuts the queries of a chunk for PyTorch's attention, as pairs of start and end.

    Pairs may overlap; what is computed twice is the same. One to three last queries of a prompt
    that is read at once may stand alone in a product. They do so here too, and no others do.

    Args:
        tokens: queries of the chunk.
        prompt: those of the whole call; chunks begin at multiples of `most` in it.
        most: queries of a block, a multiple of 256.
    """
    for start in range(0, tokens, most):
        end = min(start + most, tokens)
        rest = stand_alone(end - start)
        if not rest:
            yield start, end
            continue
        if end - rest > start:
            yield start, end - rest
        yield max(0, end - (rest if stand_alone(prompt) else 0) - _QUERIES_OF_SHORT), end


def last_queries(tokens: int, prompt: int) -> int:
    """How many of a chunk's last queries to compute, if only the last one is read.

    Args:
        tokens, prompt: see `query_blocks`.
    """
    return min(tokens, _QUERIES_OF_SHORT + stand_alone(prompt))


def stand_alone(queries: int) -> int:
    """Of a call's last queries, how many stand in a product of fewer than four; 0 for none."""
    if queries >= _LONG_QUERIES:
        at_a_time = _QUERIES_OF_LONG
    else:
        at_a_time = _QUERIES_OF_MEDIUM if queries >= _MEDIUM_QUERIES else _QUERIES_OF_SHORT
    rest = queries % at_a_time
    return rest if rest < _FEWEST_QUERIES else 0
