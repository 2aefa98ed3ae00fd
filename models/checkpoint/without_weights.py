"""The model of a folder that has a configuration and no weights: enough to know every size."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from edgeinfinite.models.checkpoint.text_part import text_configuration
from edgeinfinite.models.experts import expert_modules

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json", "*.gguf")


def lacks_weights(folder: Path) -> bool:
    """Whether a folder holds a configuration and none of the files that weights are read from."""
    has_config = (folder / "config.json").is_file()
    return has_config and not any(True for kind in _WEIGHTS for _ in folder.glob(kind))


def shaped_model(config: PreTrainedConfig) -> PreTrainedModel:
    """A causal LM whose matrices have one random row each, as often as they have rows.

    So it takes the memory of its vectors alone, and its forward pass has shapes and no meaning.

    Args:
        config: of a text model, or of a model with one inside.

    Raises:
        EdgeInfiniteError: the configuration says that no text model can be loaded, and why.
        ValueError: it isn't a causal LM's.
    """
    config = text_configuration(config) or config
    with no_init_weights():  # memory that is never written takes none
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    random = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        row = torch.randn(parameter.shape[-1:], generator=random)
        parameter.data = (0.02 * row).expand(parameter.shape)
    for _, experts in expert_modules(model):  # other ways to run them want rows in memory
        experts.config._experts_implementation = "batched_mm"
    return model
