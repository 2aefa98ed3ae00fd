"""Loading a safetensors checkpoint with its weights as they are stored, mapped from its files.

transformers' own loading to float32 makes 12 GB of a file of 6. Here the weights of linear layers
and embeddings stay in bfloat16 or float16 (`weights/row_modules.py`): memory that the system
may take back, since it is on disk. What else a model has becomes float32.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file

from edgeinfinite.models.weights.row_modules import (
    StoredEmbedding,
    StoredLinear,
    embedding_factor,
    is_linear,
)

_HALVES = {torch.bfloat16, torch.float16}


def load_stored(name: str, revision: str) -> PreTrainedModel | None:
    """A causal LM that computes in float32 over weights in half precision.

    Args:
        name: a folder, or the id of a model on the hub.
        revision: of the hub's.

    Returns:
        None if the checkpoint isn't one to be loaded so: it isn't safetensors, holds no matrix in
        half precision, is quantized, or its tensors aren't the model's own one by one.

    Raises:
        OSError, ValueError, SafetensorError: the checkpoint isn't there or can't be read.
    """
    where = tensor_files(name, revision)
    config = AutoConfig.from_pretrained(name, revision=revision)
    if not where or getattr(config, "quantization_config", None) is not None:
        return None
    with no_init_weights():  # memory that is never written takes none
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    weights = dict(model.named_parameters())
    named = set(dict(model.named_parameters(remove_duplicate=False)))
    buffers = {key: held for key, held in model.state_dict().items() if key not in named}
    own = weights | buffers
    if not _unused_ones(model, set(where) - set(own)):
        return None
    where = {key: file for key, file in where.items() if key in own}
    mapped = _mapped(where)
    if set(mapped) != set(own) or any(mapped[key].shape != held.shape for key, held in own.items()):
        return None
    if not any(tensor.dtype in _HALVES and tensor.dim() == 2 for tensor in mapped.values()):
        return None
    for key, weight in weights.items():
        weight.data = mapped[key]
    for key, held in buffers.items():
        held.copy_(mapped[key])
    _keep_halves(model)
    model.edgeinfinite_tensor_files = {key: where[key] for key in weights}
    with suppress(OSError):  # the file is optional
        model.generation_config = GenerationConfig.from_pretrained(name, revision=revision)
    return model


def _unused_ones(model: PreTrainedModel, names: set[str]) -> bool:
    """Whether the model itself says that it needs none of these tensors of its checkpoint.

    Gemma 3n's and 4's files hold K and V for layers that read those of others.
    """
    decoder = model.get_decoder()
    patterns = [
        *(model._keys_to_ignore_on_load_unexpected or []),
        *(decoder._keys_to_ignore_on_load_unexpected or []),
    ]
    return all(any(re.search(pattern, name) for pattern in patterns) for name in names)


def release_stored(model: PreTrainedModel) -> None:
    """Maps the files of a model from `load_stored` anew.

    What was read of them no longer counts as this process's memory; weights that are needed again
    are read again.

    Args:
        model: attached or not; of any other loading, it is left as it is.
    """
    where: dict[str, str] = getattr(model, "edgeinfinite_tensor_files", {})
    weights = dict(model.named_parameters())
    stored = {name: file for name, file in where.items() if weights[name].dtype in _HALVES}
    for name, tensor in _mapped(stored).items():
        weights[name].data = tensor


def _mapped(where: dict[str, str]) -> dict[str, torch.Tensor]:
    """Tensors over their files' memory, which is read when it is needed."""
    found = {}
    for file in sorted(set(where.values())):
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a dict)
                if where.get(name) == file:
                    found[name] = tensors.get_tensor(name)
    return found


def tensor_files(name: str, revision: str) -> dict[str, str]:
    """The path of each tensor's file; empty if there are no safetensors."""
    index = _file(name, SAFE_WEIGHTS_INDEX_NAME, revision)
    if index is not None:
        names: dict[str, str] = json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"]
        files = {file: _file(name, file, revision) for file in sorted(set(names.values()))}
        return {key: path for key, file in names.items() if (path := files[file]) is not None}
    whole = _file(name, SAFE_WEIGHTS_NAME, revision)
    if whole is None:
        return {}
    with safe_open(whole, "pt") as tensors:
        return dict.fromkeys(tensors.keys(), whole)


def _file(name: str, file: str, revision: str) -> str | None:
    """The path of a checkpoint's file, downloaded if it isn't there; None if it has none."""
    path: str | None = cached_file(
        name, file, revision=revision, _raise_exceptions_for_missing_entries=False
    )
    return path


def _keep_halves(model: PreTrainedModel) -> None:
    """Puts modules that widen rows in the place of those that can; widens every other weight."""
    owners: dict[int, list[tuple[nn.Module, str, nn.Module]]] = defaultdict(list)
    for parent in model.modules():
        for name, module in parent.named_children():
            if isinstance(weight := getattr(module, "weight", None), torch.Tensor):
                owners[id(weight)].append((parent, name, module))
    for parameter in model.parameters():
        if parameter.dtype == torch.float32:
            continue
        of_it = owners[id(parameter)]
        factors = [embedding_factor(module) for _, _, module in of_it]
        replaceable = [
            is_linear(module) or factor is not None
            for (_, _, module), factor in zip(of_it, factors, strict=True)
        ]
        if not of_it or not all(replaceable):
            parameter.data = parameter.data.float()
            continue
        for (parent, name, module), factor in zip(of_it, factors, strict=True):
            setattr(parent, name, _stored(module, factor))


def _stored(module: nn.Module, factor: float | None) -> nn.Module:
    if isinstance(module, nn.Embedding):
        assert factor is not None
        return StoredEmbedding(module, factor).train(module.training)
    assert isinstance(module, nn.Linear)
    return StoredLinear(module).train(module.training)
