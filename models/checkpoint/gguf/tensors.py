"""Where a GGUF file's tensors go in a transformers model; each has a place, or is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from transformers import PretrainedConfig, PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.architecture import GgufArchitecture
from edgeinfinite.models.checkpoint.gguf.file import GgufFile, refusal
from edgeinfinite.models.checkpoint.gguf.header import Header
from edgeinfinite.models.checkpoint.gguf.places import Part, Place, To, places_at, whole_names
from edgeinfinite.models.checkpoint.gguf.rope import rope_tensor_names

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"


_READ_FROM_OTHERS = ("attn_k.weight", "attn_v.weight", "attn_k_norm.weight")
"""Of layers that read an earlier one's cache: in files, but nothing is computed with them."""


_OF_EXPERTS = re.compile(r"ffn_gate_inp|exp_probs_b|ffn_\w+_exps")


def places_of(
    file: GgufFile, header: Header, config: PretrainedConfig
) -> dict[str, tuple[Place, ...]]:
    """Each tensor's places by its name; none for those that the configuration already holds.

    Raises:
        EdgeInfiniteError: a tensor isn't known.
    """
    known = named_places(header.row, config, header.blocks)
    rope = rope_tensor_names(header)
    found: dict[str, tuple[Place, ...]] = {}
    for tensor in file.tensors:
        name = tensor.name
        if name not in known and name not in rope:
            raise _unknown(file, header, name, config.num_hidden_layers)
        found[name] = known.get(name, ())
    return found


def check_complete(
    file: GgufFile,
    header: Header,
    places: Mapping[str, tuple[Place, ...]],
    model: PreTrainedModel,
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
    filled: set[tuple[str, Part | None]] = set()
    held = weights | dict(model.named_buffers())
    for tensor, place in ((one, place) for one in file.tensors for place in places[one.name]):
        weight = held.get(place.parameter)
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
        filled.add((place.parameter, place.part))
    known = named_places(header.row, model.config, header.blocks).items()
    named = {(at.parameter, at.part): name for name, places in known for at in places}
    shared = {parameter for parameter, part in named if part is not None}
    whole = {key for key in named if key[0] in weights}
    whole |= {(name, None) for name in weights.keys() - shared}
    lacking = whole - filled
    zero = {name for name, _ in lacking if _may_lack(header, name)}
    if missing := sorted(
        (name, named.get((name, part), "")) for name, part in lacking if name not in zero
    ):
        parameter, tensor_name = missing[0]
        raise refusal(
            file.path, f"it lacks the tensor {tensor_name} for {parameter}; download the file again"
        )
    return zero


def _may_lack(header: Header, parameter: str) -> bool:
    """Whether a parameter is a bias, which is 0 without a tensor."""
    return parameter.endswith(".bias") and "norm" not in parameter and not header.row.needs_biases


def named_places(
    row: GgufArchitecture, config: PretrainedConfig, blocks: int
) -> dict[str, tuple[Place, ...]]:
    """The places of every tensor that a file may have; none for one that nothing is computed with.

    Args:
        row: of the file's architecture.
        config: of the model.
        blocks: of tensors; those behind the model's layers predict further tokens.
    """
    less = 1.0 if row.norm_offset else 0.0
    norm, module = row.last_norm
    found: dict[str, tuple[Place, ...]] = {
        _EMBEDDING: (Place("model.embed_tokens.weight"),),
        _HEAD: (Place("lm_head.weight"),),
        f"{norm}.weight": (Place(f"{module}.weight", less=less),),
    }
    if row.layer_norms:
        found[f"{norm}.bias"] = (Place(f"{module}.bias"),)
    if config.tie_word_embeddings:
        del found[_HEAD]
    found |= {name: places_at("model.", to, config) for name, to in whole_names(row.model).items()}
    types = config.layer_types if row.other_layer else []
    own = config.num_hidden_layers - (getattr(config, "num_kv_shared_layers", None) or 0)
    for layer in range(config.num_hidden_layers):
        attends = not types or types[layer] == "full_attention"
        tensors = row.layer if attends else row.other_layer
        if row.dense and layer < config.num_dense_layers:
            kept = {name: to for name, to in tensors.items() if not _OF_EXPERTS.match(name)}
            tensors = {**kept, **row.dense}
        of_layer = _of_layer(row, config, tensors, layer)
        if layer >= own:
            of_layer |= dict.fromkeys(_READ_FROM_OTHERS, ())
        found |= {f"blk.{layer}.{name}": places for name, places in of_layer.items()}
    for layer in range(config.num_hidden_layers, blocks):
        unused = (*_of_layer(row, config, row.layer, layer), *row.predicting)
        found |= {f"blk.{layer}.{name}": () for name in unused}
    return found


def _of_layer(
    row: GgufArchitecture, config: PretrainedConfig, tensors: Mapping[str, str | To], layer: int
) -> dict[str, tuple[Place, ...]]:
    """The places of one layer's tensors, by their names in it."""
    heads: dict[str, int] = {}
    if row.pairs:
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    start, less = f"model.layers.{layer}.", 1.0 if row.norm_offset else 0.0
    found: dict[str, tuple[Place, ...]] = {}
    for name, to in whole_names(tensors).items():
        order = heads.get(name.removesuffix(".weight"), 0)
        found[name] = places_at(start, to, config, order, less if "norm" in name else 0.0)
    for name in row.biases:
        module = tensors.get(name)
        if isinstance(module, str):
            bias = Place(f"{start}{module}.bias", heads.get(name, 0))
            found[f"{name}.bias"] = (bias,)
    return found


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
