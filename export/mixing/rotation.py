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
from edgeinfinite.models.row_modules import embedding_factor, is_linear

_READERS = {
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}
_FUSED_READERS = {
    "input_layernorm": ("self_attn.qkv_proj",),
    "post_attention_layernorm": ("mlp.gate_up_proj",),
}
_WRITERS = ("self_attn.o_proj", "mlp.down_proj")
_LAST_NORM = "norm"

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
    decoder: Any = model.get_decoder()
    head: Any = model.get_output_embeddings()
    embedding: Any = model.get_input_embeddings()
    readers = [_readers(layer) for layer in decoder.layers]
    last = getattr(decoder, _LAST_NORM, None)
    ends = is_linear(head) and embedding_factor(embedding) is not None and _is_rms_norm(last)
    if not ends or not all(readers):
        return False
    turn = _orthogonal(embedding.weight.shape[1])
    with torch.no_grad():
        _turn_ends(decoder, head, embedding, turn)
        for layer, found in zip(decoder.layers, readers, strict=True):
            for norm, linears in found:
                for linear in linears:
                    _read(linear.weight, _weight_of(norm), turn)
                _forget(norm)
            for name in _WRITERS:
                _write(layer.get_submodule(name), turn)
    return True


def _readers(layer: Any) -> list[tuple[Any, list[Any]]]:
    """Norms and the linear layers that read them; nothing if the layer is built otherwise."""
    known = dict(layer.named_modules())
    norms = {name for name, _ in layer.named_children() if name.endswith("norm")}
    for kinds in (_READERS, _FUSED_READERS):
        names = [*_WRITERS, *(name for group in kinds.values() for name in group)]
        fits = norms == set(kinds) and all(is_linear(known.get(name, layer)) for name in names)
        if fits and all(_is_rms_norm(known[norm]) for norm in kinds):
            return [(known[norm], [known[n] for n in group]) for norm, group in kinds.items()]
    return []


def _is_rms_norm(norm: Any) -> bool:
    """Whether it computes x / sqrt(mean(x²) + ε) times a weight, so that Q passes through."""
    weight = getattr(norm, "weight", None)
    if weight is None or weight.dim() != 1 or len(list(norm.parameters())) != 1:
        return False
    x = torch.linspace(-2, 3, 3 * len(weight)).reshape(3, -1).sin() * 1e3 + 100.0
    wanted = x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * _weight_of(norm)
    return torch.allclose(norm(x), wanted, rtol=1e-4, atol=1e-5)


def _weight_of(norm: Any) -> torch.Tensor:
    weight: torch.Tensor = norm.weight.detach() + norm_shift(norm)
    return weight


def _forget(norm: Any) -> None:
    norm.weight.fill_(1.0 - norm_shift(norm))


def _turn_ends(decoder: Any, head: Any, embedding: Any, turn: torch.Tensor) -> None:
    """The embedding, the last norm, and the LM head."""
    norm = getattr(decoder, _LAST_NORM)
    weight = _weight_of(norm)
    tied = head.weight is embedding.weight
    _read(embedding.weight, None, turn)
    if tied:
        width = len(weight)
        behind = nn.Linear(width, width, bias=False, dtype=weight.dtype).requires_grad_(False)
        behind.weight.copy_(turn.T @ (weight.double().unsqueeze(1) * turn))
        setattr(decoder, _LAST_NORM, TurnedNorm(norm, behind))
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
