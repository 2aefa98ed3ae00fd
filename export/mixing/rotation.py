"""Turns the residual stream, so that no channel of it is larger than the others.

A back end that rounds a token's activations on one scale gives every channel the steps of the
largest. An orthogonal matrix Q between what writes the stream and what reads it spreads a large
channel over many (QuaRot, arXiv 2404.00456, SpinQuant, arXiv 2405.16406). With rows h' = h Q in the
stream, weights that read it become W Q and weights that write it Qᵀ W. The root mean square stays,
so norms commute with Q once their weights are part of the layers that read them. The function
stays the same, and K and V of every layer too.

An LM head that shares the embedding's table can't take the last norm's weight g. So the product
with Qᵀ diag(g) Q stands behind that norm.

Letters: d width, V vocabulary, O outputs, I inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.export.mixing.scaling import norm_shift
from edgeinfinite.export.mixing.stream import Stream, stream_of, weight_of_norm

_PART = 2**22
"""Numbers of a weight that are turned at a time, in float64."""


class TurnedNorm(nn.Module):
    """A norm whose weight is multiplied with in the stream's old channels.

    Args:
        norm: without its weight, `[..., d]` to `[..., d]`.
        turn: Qᵀ diag(g) Q.
    """

    def __init__(self, norm: nn.Module, turn: nn.Linear) -> None:
        super().__init__()
        self.norm = norm
        self.turn = turn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., d]` to the same shape."""
        result: torch.Tensor = self.turn(self.norm(x))
        return result


def rotate_residual(model: PreTrainedModel) -> bool:
    """Turns the stream of a model, in place.

    Args:
        model: float32, attached or not.

    Returns:
        Whether it was turned. Layers built otherwise than Llama's are left alone, those with norms
        behind what writes the stream among them (Gemma 2 and 3, OLMo 2).
    """
    stream = stream_of(model)
    if stream is None:
        return False
    turn = _orthogonal(stream.embedding.weight.shape[1])
    with torch.no_grad():
        _turn_ends(stream, turn)
        for readers, writers in zip(stream.readers, stream.writers, strict=True):
            for norm, linears in readers:
                for linear in linears:
                    _read(linear.weight, weight_of_norm(norm), turn)
                _forget(norm)
            for linear in writers:
                _write(linear, turn)
    return True


def _forget(norm: Any) -> None:
    norm.weight.fill_(1.0 - (norm_shift(norm) or 0.0))


def _turn_ends(stream: Stream, turn: torch.Tensor) -> None:
    """The embedding, the last norm, and the LM head."""
    norm, head, embedding = stream.last_norm, stream.head, stream.embedding
    weight = weight_of_norm(norm)
    tied = head.weight is embedding.weight
    _read(embedding.weight, None, turn)
    if tied:
        width = len(weight)
        behind = nn.Linear(width, width, bias=False, dtype=weight.dtype).requires_grad_(False)
        behind.weight.copy_(turn.T @ (weight.double().unsqueeze(1) * turn))
        stream.replace_last_norm(TurnedNorm(norm, behind))
    else:
        _read(head.weight, weight, turn)
    _forget(norm)


def _read(weight: torch.Tensor, norm: torch.Tensor | None, turn: torch.Tensor) -> None:
    """W diag(g) Q of a weight `[O, d]`."""
    factor = 1.0 if norm is None else norm.double()
    for rows in _parts(weight):
        weight[rows] = ((weight[rows].double() * factor) @ turn).to(weight.dtype)


def _write(linear: Any, turn: torch.Tensor) -> None:
    """Qᵀ W of a weight `[d, I]`, and Qᵀ b."""
    linear.weight.copy_(turn.T @ linear.weight.double())
    if linear.bias is not None:
        linear.bias.copy_(linear.bias.double() @ turn)


def _parts(weight: torch.Tensor) -> Iterator[slice]:
    rows = max(1, _PART // weight.shape[1])
    for start in range(0, len(weight), rows):
        yield slice(start, start + rows)


def _orthogonal(width: int) -> torch.Tensor:
    """`[d, d]` float64: two rounds of random signs, Hadamard blocks and a random order.

    A block has as many channels as the largest power of two that divides d, so with a d of 576 a
    channel is spread over 64 others, and each of these over the blocks that it falls into next.
    """
    generator = torch.Generator().manual_seed(0)
    block = _hadamard(width & -width)
    turn = torch.eye(width, dtype=torch.float64)
    for _ in range(2):
        signs = torch.randint(0, 2, (width,), generator=generator).double() * 2 - 1
        turn = (turn * signs).unflatten(1, (-1, len(block))) @ block
        turn = turn.flatten(1)[:, torch.randperm(width, generator=generator)]
    return turn


def _hadamard(size: int) -> torch.Tensor:
    """Sylvester's matrix, orthonormal, `[size, size]`; size is a power of two."""
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < size:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    return matrix / size**0.5
