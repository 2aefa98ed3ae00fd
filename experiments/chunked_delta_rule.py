"""The gated delta rule in chunks, as plain products.

Within a chunk, with the decays' product g_t up to its token t and rates b, the keys' effect on each
other is solved at once (Yang et al. 2024, arXiv 2412.06464, section 3.3):

    A = strictly lower part of (b K K^T) g_i / g_j,   P = (I + A)^-1
    V' = P (b V) - P (b g K) S
    Y = g Q S + lower part of (Q K^T g_i / g_j) V',   S <- g_C S + (K g_C / g)^T V'

A power of A as large as the chunk is zero, so P = (I - A)(I + A^2)(I + A^4)...

The number of chunks is fixed: it is unrolled. Fewer tokens are filled up with such as change
nothing: keys and rates of zero, no decay.

Letters: T tokens, N the most of them, C of a chunk, U heads, I dimensions of a key, J of a value.
"""

from __future__ import annotations

import torch
from torch import nn


class ChunkedDeltaRule(nn.Module):
    """`Rule` of `delta_layer_executorch.py`, unrolled over N / C chunks.

    Args:
        most: N, a multiple of C.
        state: shape of the state `[1, U, I, J]`.
        chunk: C.
    """

    upto: torch.Tensor
    below: torch.Tensor
    one: torch.Tensor

    def __init__(self, most: int, state: torch.Size, chunk: int) -> None:
        super().__init__()
        _, self._heads, inner, outer = state
        self._chunk, self._count, self._most = chunk, most // chunk, most
        for size in {inner, outer, 1}:
            zeros = torch.zeros(1, most, self._heads, size)
            self.register_buffer(f"zeros_{size}", zeros)
        every = torch.ones(1, chunk, chunk)
        self.register_buffer("upto", every.tril())
        self.register_buffer("below", every.tril(-1))
        self.register_buffer("one", torch.eye(chunk)[None])

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        log_decay: torch.Tensor,
        rate: torch.Tensor,
        state: torch.Tensor,
    ) -> list[torch.Tensor]:
        """As `recurrences._operator`: `[1, T, U, J]` and the state `[1, U, I, J]`."""
        tokens = query.shape[1]
        query, key, value, log_decay, rate = map(
            self._parted, (query, key, value, log_decay.unsqueeze(-1), rate.unsqueeze(-1))
        )
        logs = torch.bmm(self.upto.expand(len(query), -1, -1), log_decay)
        between = torch.clamp(logs - logs.transpose(1, 2), max=0.0).exp() * self.upto
        power = -(torch.bmm(key * rate, key.transpose(1, 2)) * between * self.below)
        solved, covered = self.one + power, 2
        while covered < self._chunk:
            power, covered = torch.bmm(power, power), 2 * covered
            solved = solved + torch.bmm(solved, power)
        decay, last = logs.exp(), logs[:, self._chunk - 1 :]
        parts = (
            torch.bmm(solved, value * rate),
            torch.bmm(solved, key * rate * decay),
            torch.bmm(query, key.transpose(1, 2)) * between,
            query * decay,
            (key * (last - logs).exp()).transpose(1, 2),
            last.exp(),
        )
        by_chunk = [x.reshape(self._heads, self._count, *x.shape[1:]) for x in parts]
        now, results = state[0], []
        for index in range(self._count):
            # A slice, which XNNPACK takes; it takes no `select`.
            values, keys, scores, queries, late_keys, faded = (
                x[:, index : index + 1].flatten(0, 1) for x in by_chunk
            )
            values = values - torch.bmm(keys, now)
            results.append(torch.bmm(queries, now) + torch.bmm(scores, values))
            now = now * faded + torch.bmm(late_keys, values)
        result = torch.cat(results, dim=1)[None].transpose(1, 2)[:, :tokens]
        return [result.contiguous(), now[None]]

    def _parted(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, T, U, n]` as `[U N / C, C, n]`."""
        # The slice ends at a number that doesn't depend on T, so tracing guards on nothing.
        x = torch.cat((x, self.get_buffer(f"zeros_{x.shape[-1]}")), dim=1)[:, : self._most]
        return x.transpose(1, 2).reshape(self._heads * self._count, self._chunk, x.shape[-1])
