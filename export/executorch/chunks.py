"""Gated delta rules and SSMs of several tokens, as matrix products over chunks.

Within a chunk of C tokens the keys' effect on each other is solved at once (Yang et al. 2024, arXiv
2412.06464, section 3.3). With the product a_ij of the decays behind token j up to token i, and a_i
of all up to i,

    A_ij = b_i (k_i k_j) a_ij for j < i,   P = (I + A)^-1
    V' = P (b V) - P (b a K) S
    Y = (a Q) S + M V' with M_ij = (q_i k_j) a_ij for j <= i
    S <- a_C S + (a_Cj K)^T V'

P grows from blocks on the diagonal to such of twice their size, P <- P - P A' P with what A has
between two neighbours, A'. The shorter product (I - A)(I + A^2)(I + A^4)... isn't used: a text that
repeats itself has keys that are alike, and powers of A of 10^8 that only together are small. An SSM
of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060, section 6) has no delta, V' = V.

The number of chunks is fixed, so they stand in a program without a loop. Their length follows from
the number of tokens. What fills the last chunks changes nothing: keys, values and rates of zero, no
decay.

Letters: T tokens, C of a chunk, U heads, I dimensions of a key, J of a value.
"""

from __future__ import annotations

import torch
from torch.fx.experimental import _config as tracing
from torch.nn.functional import linear

CHUNKS = 8
LONGEST = 32
"""The most of C."""

MOST_TOKENS = CHUNKS * LONGEST
"""The most of T."""

_STEP = 2 * CHUNKS
"""Tokens are filled up to a multiple. So C is even, and a tracer needn't ask whether it is 1."""

_EVERY = torch.ones(LONGEST, LONGEST)
_UPTO = _EVERY.tril()
_ONE = torch.eye(LONGEST)


def _between_neighbours(size: int) -> torch.Tensor:
    """1 where a row's block of this size is odd, and the column's is the one before it."""
    block = torch.arange(LONGEST) // size
    return (block[:, None] % 2 * (block[:, None] - 1 == block)).float()


_NEIGHBOURS = [_between_neighbours(size) for size in (1, 2, 4, 8, 16)]


@tracing.patch(backed_size_oblivious=True)
def in_chunks(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor | None,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """For tracing, with 2 <= T <= `MOST_TOKENS`; the example's T is no multiple of 16.

    Args:
        query, key: `[1, T, U, I]`.
        value: `[1, T, U, J]`.
        log_decay: `[1, T, U]`, at most 0.
        beta: `[1, T, U]`; None for an SSM.
        state: `[1, U, I, J]`.

    Returns:
        `[1, T, U, J]` and the state `[1, U, I, J]`; float32.
    """
    tokens, heads = query.shape[1], query.shape[2]
    steps = (tokens + (_STEP - 1)) // _STEP
    missing, length = steps * _STEP - tokens, 2 * steps

    def parted(x: torch.Tensor) -> torch.Tensor:
        """`[1, T, U, n]` as `[8 U, C, n]`, chunk by chunk."""
        x = torch.cat((x, torch.zeros(1, missing, heads, x.shape[3])), dim=1)
        x = x.reshape(CHUNKS, length, heads, x.shape[3]).transpose(1, 2)
        return x.reshape(CHUNKS * heads, length, x.shape[3])

    query, key, value = parted(query), parted(key), parted(value)
    decays = parted(log_decay.unsqueeze(3)).transpose(1, 2)  # [8 U, 1, C]
    # By this `triu` the pass `recurrent_layers` knows such a layer.
    upto, after = (x[:length, :length] for x in (_UPTO, _EVERY.triu(1)))
    # Sums of their own: differences of sums would lose weak decays behind strong ones.
    between = linear(decays * upto, after).exp() * upto
    late = linear(decays, after).transpose(1, 2).exp()
    faded = linear(decays, _EVERY[:1, :length]).exp()
    decay = linear(decays, upto).transpose(1, 2).exp()
    turned = key.transpose(1, 2)
    keys = None
    if beta is not None:
        rate = parted(beta.unsqueeze(3))
        solved = _inverse(torch.bmm(key * rate, turned) * between, length)
        value, keys = torch.bmm(solved, value * rate), torch.bmm(solved, key * rate * decay)
    scores = torch.bmm(query, turned) * between
    query, turned = query * decay, (key * late).transpose(1, 2)
    now, results = state[0], []
    for chunk in range(CHUNKS):
        own = slice(chunk * heads, (chunk + 1) * heads)
        added = value[own] if keys is None else value[own] - torch.bmm(keys[own], now)
        results.append(torch.bmm(query[own], now) + torch.bmm(scores[own], added))
        now = now * faded[own] + torch.bmm(turned[own], added)
    result = torch.cat(results).reshape(CHUNKS, heads, length, -1).transpose(1, 2)
    return result.reshape(1, CHUNKS * length, heads, -1)[:, :tokens], now.unsqueeze(0)


def _inverse(below: torch.Tensor, length: int) -> torch.Tensor:
    """Of I + A, for what `[n, C, C]` has below its diagonal."""
    first, *others = (below * mask[:length, :length] for mask in _NEIGHBOURS)
    inverse = _ONE[:length, :length] - first
    for part in others:
        inverse = inverse - torch.bmm(torch.bmm(inverse, part), inverse)
    return inverse
