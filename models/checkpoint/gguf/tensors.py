"""Where a GGUF file's tensors go in a transformers model; each has a place, or is refused.

Letters: H heads, D head dimension, I inputs, E experts, F inner width.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gguf.gguf_reader import ReaderTensor
from transformers import PretrainedConfig, PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.file import GgufFile, refusal
from edgeinfinite.models.checkpoint.gguf.header import Header
from edgeinfinite.models.checkpoint.gguf.rope import rope_tensor_names

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
_BARE = ("experts.gate_up_proj", "experts.down_proj")
"""Parameters of modules that hold the weights of all experts."""


@dataclass(frozen=True)
class Place:
    """What becomes of a tensor.

    Args:
        parameter: of the model.
        heads: of a tensor whose rows are in the order of RoPE's pairs; 0: they are in order.
        less: what is subtracted from its values.
        half: of the parameter's second axis, which two tensors share: 0, 1, or None for all.
    """

    parameter: str
    heads: int = 0
    less: float = 0.0
    half: int | None = None

    def shape(self, tensor: ReaderTensor, wanted: Sequence[int]) -> list[int]:
        """The shape that the parameter would have, going by the tensor."""
        found = [int(size) for size in reversed(tensor.shape)]
        if self.half is not None and len(found) == 3:
            found[1] *= 2
        if found == [size for size in wanted if size != 1]:  # a gate of one output, a convolution
            return list(wanted)
        return found

    def values(self, held: np.ndarray) -> np.ndarray:
        """The parameter's values, of the tensor's; may be a view."""
        if self.heads:
            pairs = held.reshape(self.heads, -1, 2, *held.shape[1:])  # [H, D / 2, 2, ...]
            held = pairs.swapaxes(1, 2).reshape(held.shape)
        return held - np.float32(self.less) if self.less else held


def places_of(file: GgufFile, header: Header, config: PretrainedConfig) -> dict[str, Place | None]:
    """Each tensor's place by its name; None for those that the configuration already holds.

    Raises:
        EdgeInfiniteError: a tensor isn't known.
    """
    known = _named(header, config)
    rope = rope_tensor_names(header)
    found: dict[str, Place | None] = {}
    for tensor in file.tensors:
        name = tensor.name
        if name not in known and name not in rope:
            raise _unknown(file, header, name, config.num_hidden_layers)
        found[name] = known.get(name)
    return found


def check_complete(
    file: GgufFile, header: Header, places: Mapping[str, Place | None], model: PreTrainedModel
) -> set[str]:
    """Makes sure that the tensors are the model's, one by one, before a weight is read.

    Args:
        file, header: as read.
        places: of the tensors.
        model: without weights.

    Returns:
        The biases that are all 0, since the file has none.

    Raises:
        EdgeInfiniteError: a tensor is missing, isn't one of the model's, or has another shape.
    """
    weights = dict(model.named_parameters())
    filled = set()
    for tensor in file.tensors:
        place = places[tensor.name]
        if place is None:
            continue
        weight = weights.get(place.parameter)
        if weight is None:
            raise _unknown(file, header, tensor.name, model.config.num_hidden_layers)
        wanted = list(weight.shape)
        found = place.shape(tensor, wanted)
        if found != wanted:
            raise refusal(
                file.path,
                f"{tensor.name} as {place.parameter} has shape {found}, its configuration says "
                f"{wanted}",
            )
        filled.add((place.parameter, place.half))
    named = {place.parameter: name for name, place in _named(header, model.config).items()}
    whole = {
        (parameter, half)
        for parameter in weights
        for half in ((0, 1) if parameter.endswith(_BARE[0]) else (None,))
    }
    lacking = {parameter for parameter, _ in whole - filled}
    zero = {name for name in lacking if _may_lack(header, name)}
    if missing := sorted(lacking - zero):
        known = named.get(missing[0], "")
        raise refusal(
            file.path, f"it lacks the tensor {known} for {missing[0]}; download the file again"
        )
    return zero


def _may_lack(header: Header, parameter: str) -> bool:
    """Whether a parameter is a bias, which is 0 without a tensor."""
    return parameter.endswith(".bias") and "norm" not in parameter and not header.row.needs_biases


def _named(header: Header, config: PretrainedConfig) -> dict[str, Place]:
    """The place of every tensor that such a file may have."""
    row = header.row
    less = 1.0 if row.norm_offset else 0.0
    norm, module = row.last_norm
    found = {
        _EMBEDDING: Place("model.embed_tokens.weight"),
        _HEAD: Place("lm_head.weight"),
        f"{norm}.weight": Place(f"{module}.weight", less=less),
    }
    if row.layer_norms:
        found[f"{norm}.bias"] = Place(f"{module}.bias")
    if config.tie_word_embeddings:
        del found[_HEAD]
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    types = config.layer_types if row.other_layer else []
    for layer in range(config.num_hidden_layers):
        attends = not types or types[layer] == "full_attention"
        for tensor, module in (row.layer if attends else row.other_layer).items():
            parameter = f"model.layers.{layer}.{module}"
            order = heads.get(tensor, 0) if row.pairs else 0
            half = ("ffn_gate_exps", "ffn_up_exps").index(tensor) if tensor in _HALVES else None
            suffix = "" if module.endswith(_BARE) else ".weight"
            found[f"blk.{layer}.{tensor}.weight"] = Place(
                parameter + suffix, order, less if "norm" in tensor else 0.0, half
            )
            if tensor in row.biases:
                found[f"blk.{layer}.{tensor}.bias"] = Place(f"{parameter}.bias", order)
    return found


_HALVES = ("ffn_gate_exps", "ffn_up_exps")


def _unknown(file: GgufFile, header: Header, name: str, layers: int) -> EdgeInfiniteError:
    block = re.match(r"blk\.(\d+)\.", name)
    if block and int(block[1]) >= layers:
        return header.refuse("block_count", f"is {layers}, and the file has the tensor {name}")
    if name.startswith("rope_factors") and "rope_factors" in header.row.rope_tensors:
        return header.refuse("rope.scaling.type", f"isn't longrope, and the file has {name}")
    return refusal(
        file.path,
        f"its tensor {name} isn't one that a model of architecture {header.architecture} is read "
        "with, so what it does would be lost",
    )
