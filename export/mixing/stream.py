"""What reads and what writes a model's residual stream, where its layers are built as Llama's.

Letters: d width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.mixing.scaling import norm_shift
from edgeinfinite.models.weights.row_modules import embedding_factor, is_linear

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


@dataclass(frozen=True)
class Stream:
    """The modules around the residual stream.

    Args:
        decoder: whose `norm` is the last norm.
        embedding, head: the head's weight may be the embedding's.
        readers: for each layer its norms, each with the linear layers that read it.
        writers: for each layer the linear layers whose outputs are added to the stream.
    """

    decoder: Any
    embedding: Any
    head: Any
    readers: Sequence[Sequence[tuple[Any, Sequence[Any]]]]
    writers: Sequence[Sequence[Any]]

    @property
    def last_norm(self) -> Any:
        """Before the LM head."""
        return getattr(self.decoder, _LAST_NORM)

    def replace_last_norm(self, norm: torch.nn.Module) -> None:
        """Puts another module in its place."""
        setattr(self.decoder, _LAST_NORM, norm)


def stream_of(model: PreTrainedModel) -> Stream | None:
    """The stream of a model; None where its layers are built otherwise than Llama's.

    Those with norms behind what writes the stream are among them (Gemma 2 and 3, OLMo 2).
    """
    decoder: Any = model.get_decoder()
    head: Any = model.get_output_embeddings()
    embedding: Any = model.get_input_embeddings()
    readers = [_readers(layer) for layer in decoder.layers]
    last = getattr(decoder, _LAST_NORM, None)
    ends = is_linear(head) and embedding_factor(embedding) is not None and _is_rms_norm(last)
    if not ends or not all(readers):
        return None
    writers = [[layer.get_submodule(name) for name in _WRITERS] for layer in decoder.layers]
    return Stream(decoder, embedding, head, readers, writers)


def shares_inputs(model: PreTrainedModel) -> dict[int, int]:
    """How many weights read the same inputs (Q, K and V; gate and up), by a weight's identity.

    A weight that isn't named reads inputs of its own, as far as is known.
    """
    stream = stream_of(model)
    groups = [] if stream is None else [g for layer in stream.readers for _, g in layer]
    return {id(linear.weight): len(group) for group in groups for linear in group}


def weight_of_norm(norm: Any) -> torch.Tensor:
    """What a norm multiplies with, `[d]`."""
    weight: torch.Tensor = norm.weight.detach() + (norm_shift(norm) or 0.0)
    return weight


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
    wanted = x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * weight_of_norm(norm)
    return torch.allclose(norm(x), wanted, rtol=1e-4, atol=1e-5)
