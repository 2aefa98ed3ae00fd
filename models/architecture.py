"""Facts about a backbone's architecture, collected once, and the check that it is supported.

Configurations name the same thing in many ways, or leave it to the code. So one token runs through
the decoder, and the facts come from the arguments that each layer passes to transformers' attention
interface. Letters: H query heads, K KV heads, D head dimension, V vocabulary.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.artifact.tensors import Heads, RecurrentTensor
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attention.adapter import nothing_read, register_attention
from edgeinfinite.models.attention.call import AttentionCall, reads_another
from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.attention.masks import measure_windows
from edgeinfinite.models.experts import experts_of
from edgeinfinite.models.layer_inputs import probe_arguments
from edgeinfinite.models.recurrent_states import (
    attention_of,
    is_recurrent,
    mixer_of,
    recurrent_tensors,
)
from edgeinfinite.models.rotary_embedding import rotary_embedding
from edgeinfinite.models.weights.row_modules import compute_dtype

_LAYER_TYPES = {"full_attention", "sliding_attention"}
_PROBE_ATTENTION = "edgeinfinite-probe"
_CALLS_ARGUMENT = "edgeinfinite_calls"
_FURTHER_ON = 7
"""A position at which RoPE visibly rotates keys, even with scaled-down angles."""


@dataclass(frozen=True)
class LayerFacts:
    """How one layer attends.

    Args:
        sliding_window: newest slots that a token sees, its own included; None for full attention.
        softcap: scores are capped to softcap * tanh(scores / softcap); None for no cap.
        rotary: whether RoPE rotates its queries and keys.
        sinks: whether a learned logit of each head stands beside its scores.
    """

    sliding_window: int | None = None
    softcap: float | None = None
    rotary: bool = True
    sinks: bool = False


@dataclass(frozen=True)
class Architecture:
    """The facts about a backbone that other modules depend on.

    Args:
        name: class of the model, such as `LlamaForCausalLM`.
        layers: how each layer attends, L of them: those that don't attend aren't counted, nor those
            that read what an earlier one cached.
        query_heads: H, the same in every layer.
        kv_heads, head_dim: K and D; the largest of any layer where they differ.
        vocabulary: V, rows of the embedding.
        positions: how many the model was trained on.
        rotary_by_type: whether RoPE's angles depend on the layer's type too, not only the position.
        recurrent: what the state holds beside KV caches, see `recurrent_states`.
        heads: K and D of every layer where they differ; else empty.
        readers: how many layers read the cache of an earlier one.
        experts: the class of what holds a layer's experts; None if all MLPs are dense.
    """

    name: str
    layers: tuple[LayerFacts, ...]
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int
    rotary_by_type: bool = False
    recurrent: tuple[RecurrentTensor, ...] = ()
    heads: tuple[Heads, ...] = ()
    readers: int = 0
    experts: str | None = None

    @property
    def every_heads(self) -> tuple[Heads, ...]:
        """K and D of every layer."""
        return self.heads or (Heads(self.kv_heads, self.head_dim),) * len(self.layers)

    @property
    def sliding_windows(self) -> tuple[int, ...]:
        """Of every layer, the newest tokens that a token sees, itself included; 0: all of them.

        A window as long as the positions that the backbone was trained on hides nothing.
        """
        windows = (facts.sliding_window or 0 for facts in self.layers)
        return tuple(window if window < self.positions else 0 for window in windows)


def architecture_of(model: PreTrainedModel) -> Architecture:
    """The facts about a model, collected on the first call and stored on the model.

    Raises:
        EdgeInfiniteError: see `check_supported`; also if layers differ in query heads, or keys from
            values in heads or their size.
    """
    known = getattr(model, "edgeinfinite_architecture", None)
    if not isinstance(known, Architecture):
        check_supported(model)
        known = _collected(model)
        model.edgeinfinite_architecture = known  # type: ignore[assignment]
    return known


def check_all_attend(model: PreTrainedModel, what: str) -> Architecture:
    """The facts about a model, for what knows nothing but KV caches, one like the other.

    Args:
        model: a causal LM.
        what: needs it, for the message.

    Raises:
        EdgeInfiniteError: see `check_supported`; or some layers keep another state, share a cache,
            or differ in heads.
    """
    facts = architecture_of(model)
    lacks = None
    if facts.recurrent:
        lacks = f"carry on the states of {facts.name}'s layers that aren't KV caches"
    elif facts.readers:
        lacks = f"read the caches that layers of {facts.name} share"
    elif facts.heads:
        lacks = f"hold the caches of {facts.name}, whose layers differ in heads or their size"
    if lacks:
        raise EdgeInfiniteError(
            f"{what} can't {lacks}; export it for a state of fixed size instead"
        )
    return facts


def check_supported(model: PreTrainedModel) -> None:
    """Refuses a model that isn't a RoPE decoder using transformers' attention interface.

    Raises:
        EdgeInfiniteError: names the architecture and the reason.
    """
    text = model.config.get_text_config()
    decoder = None if model.config.is_encoder_decoder else model.get_decoder()
    layers = getattr(decoder, "layers", [])
    lacks = None
    if decoder is None:
        lacks = "it is an encoder-decoder"
    elif others := _layers_without_attention(layers):
        lacks = others
    elif rotary_embedding(decoder) is None and not hasattr(decoder, "rotary_emb"):
        lacks = _about_positions(model)
    elif len(layers) and all(map(is_recurrent, layers)):
        lacks = "none of its layers attends, so what it keeps of a text is of a fixed size already"
    elif not _attending(layers) or len(_attending(layers)) < _not_recurrent(layers):
        lacks = "its layers hold no `self_attn`"
    elif not type(model)._supports_attention_backend and not _calls_interface(layers):
        lacks = "it doesn't use transformers' attention interface"
    elif unknown := _layer_types(layers, text) - _LAYER_TYPES:
        lacks = "; ".join(
            f"{_numbered(text.layer_types, kind)} of type {kind}" for kind in sorted(unknown)
        )
    elif getattr(text, "kv_lora_rank", None):
        lacks = "its KV cache is a latent one (MLA)"
    if lacks:
        raise _unsupported(model, lacks)


def _attending(layers: Sequence[nn.Module]) -> list[nn.Module]:
    return [part for layer in layers if (part := attention_of(layer)) is not None]


def _calls_interface(layers: Sequence[nn.Module]) -> bool:
    """Whether the layers' code knows the attention interface; hybrids don't say so.

    That each layer calls it shows the probe (`_collected`).
    """
    code = {sys.modules[type(part).__module__] for part in _attending(layers)}
    return all(hasattr(module, "ALL_ATTENTION_FUNCTIONS") for module in code)


def _not_recurrent(layers: Sequence[nn.Module]) -> int:
    return sum(not is_recurrent(layer) for layer in layers)


def _layer_types(layers: Sequence[nn.Module], text: Any) -> set[str]:
    """The types of the layers that attend and do nothing else, as the configuration has them."""
    types = getattr(text, "layer_types", None) or []
    return {kind for kind, layer in zip(types, layers, strict=False) if mixer_of(layer) is None}


def _about_positions(model: PreTrainedModel) -> str:
    """Why a decoder without `rotary_emb` of its own isn't supported."""
    named = [*(name for name, _ in model.named_modules()), *vars(model.config)]
    if any(re.search("rotary|rope", name.lower()) for name in named):
        return "its rotary embedding isn't one for all layers, the decoder's `rotary_emb`"
    return "it has no rotary position embedding (RoPE)"


def _layers_without_attention(layers: Sequence[nn.Module]) -> str | None:
    """Which layers are something else, such as an SSM or a convolution; None if all attend."""
    kinds = [
        None if attention_of(layer) is not None or is_recurrent(layer) else _mixer(layer)
        for layer in layers
    ]
    kinds = [None if kind and "Attention" in kind else kind for kind in kinds]
    found = dict.fromkeys(kind for kind in kinds if kind)  # in the order of the layers
    return "; ".join(f"{_numbered(kinds, kind)} {kind}, not attention" for kind in found) or None


def _mixer(layer: nn.Module) -> str:
    """The class of what mixes a layer's tokens: its first part that is neither norm nor MLP."""
    parts = layer.named_children()
    mixers = (
        part
        for name, part in parts
        if not re.search("norm|mlp|feed_forward|moe|dropout|linear$", name)
    )
    return type(next(mixers, layer)).__name__


def _numbered(kinds: Sequence[str | None], kind: str) -> str:
    numbers = [str(number) for number, found in enumerate(kinds) if found == kind]
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    plural = len(numbers) > 1
    return f"layer{'s' * plural} {', '.join(numbers[:8])}{more} {'are' if plural else 'is'}"


def _unsupported(model: PreTrainedModel, lacks: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{type(model).__name__} isn't supported: {lacks}. EdgeInfinite needs a RoPE decoder such "
        "as Llama, Qwen2, Qwen3, Mistral, SmolLM, Phi-3, Granite, OLMo, LFM2 or Gemma"
    )


def _collected(model: PreTrainedModel) -> Architecture:
    decoder, text = model.get_decoder(), model.config.get_text_config()
    positions = getattr(text, "max_position_embeddings", None)
    if not isinstance(positions, int):
        raise _unsupported(model, "its configuration doesn't say how many positions it knows")
    try:
        measure_windows(model, positions)
        recurrent = recurrent_tensors(model)
        calls = _attention_calls(model)
    except EdgeInfiniteError:
        raise
    except ValueError as error:
        raise _unsupported(model, str(error)) from error
    except Exception as error:  # of code that no one here has seen
        lacks = f"its decoder doesn't run on its own ({type(error).__name__}: {error})"
        raise _unsupported(model, " ".join(lacks.split())) from error
    attending = _attending(decoder.layers)
    readers = sum(reads_another(module) for module in attending)
    if sorted(calls) != list(range(len(attending) - readers)):
        raise _unsupported(model, "not every layer hands its arguments to the attention interface")
    ordered = [call for _, call in sorted(calls.items())]
    heads = tuple(Heads(*call.key.shape[1::2]) for call in ordered)
    query_heads = ordered[0].query.shape[1]
    for call, size in zip(ordered, heads, strict=True):
        if call.query.shape[1::2] != (query_heads, size.head_dim) or call.value.shape[1::2] != size:
            raise _unsupported(model, "its queries, keys and values differ in heads or their size")
    return Architecture(
        name=type(model).__name__,
        layers=tuple(
            LayerFacts(
                call.sliding_window, call.softcap, _is_turned(call.key), call.sinks is not None
            )
            for call in ordered
        ),
        query_heads=query_heads,
        kv_heads=max(size.kv_heads for size in heads),
        head_dim=max(size.head_dim for size in heads),
        vocabulary=text.vocab_size,
        positions=positions,
        recurrent=recurrent,
        experts=experts_of(model),
        rotary_by_type=_knows_types(rotary_embedding(decoder)),
        heads=heads if len(set(heads)) > 1 else (),
        readers=readers,
    )


def _knows_types(rotary: nn.Module | None) -> bool:
    """Whether a rotary embedding wants the layer's type; None where the configuration has none."""
    return rotary is not None and "layer_type" in inspect.signature(rotary.forward).parameters


def _attention_calls(model: PreTrainedModel) -> dict[int, AttentionCall]:
    """Each layer's attention call for one token, at two positions in a batch of two.

    Of those that read another layer's cache there is none.

    The probe's attention returns zeros, so a layer's input doesn't depend on the position. Its keys
    depend on it only if RoPE rotates them.
    """
    calls: dict[int, AttentionCall] = {}
    decoder: Any = model.get_decoder()
    embedding: Any = model.get_input_embeddings()
    width: int = embedding.weight.shape[1]
    token = torch.randn(1, 1, width, generator=torch.Generator().manual_seed(0))
    training = model.training
    try:
        with torch.no_grad(), attention_implementation(model, _PROBE_ATTENTION):
            decoder.eval()(
                inputs_embeds=token.expand(2, 1, width).to(model.device, compute_dtype(model)),
                position_ids=torch.tensor([[0], [_FURTHER_ON]], device=model.device),
                use_cache=False,
                **probe_arguments(model, 2),
                **{_CALLS_ARGUMENT: calls},
            )
    finally:
        model.train(training)
    return calls


def _is_turned(key: torch.Tensor) -> bool:
    """Whether keys `[2, K, 1, D]` of one token at two positions differ."""
    difference = (key[0] - key[1]).abs().max()
    return bool(difference > 1e-3 * key.abs().max())


def _note_call(call: AttentionCall, _: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    """The probe's attention: notes the call."""
    if not call.reads_another:
        others.get(_CALLS_ARGUMENT, {})[call.layer] = call  # without it, the model is refused
    return nothing_read(call)


register_attention(_PROBE_ATTENTION, _note_call)
