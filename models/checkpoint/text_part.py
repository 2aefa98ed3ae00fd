"""The text model inside a checkpoint that also reads images or sounds, loaded alone.

Such a checkpoint has a configuration for its text model, and that model's weights under names that
begin otherwise. What reads images isn't loaded.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.stored_loading import tensor_files

_READS_BOTH_WAYS = {"paligemma", "shieldgemma2", "pi0", "diffusion_gemma"}
"""Their text models see a whole prompt at once, later tokens too."""

_SCALES_OTHERWISE = {"aya_vision", "cohere2_vision"}
"""transformers scales the logits of their text models only where these stand alone."""

_EMBEDDING = re.compile(r"(?P<before>(.*\.)?)embed_tokens\.weight")
_HEAD = re.compile(r"(?P<before>(.*\.)?)lm_head\.weight")


def load_text_part(name: str, revision: str) -> PreTrainedModel | None:
    """The text model of a checkpoint with other parts, in float32.

    Args:
        name: a folder, or the id of a model on the hub.
        revision: of the hub's.

    Returns:
        None if the checkpoint is a text model as a whole, or transformers takes its text part by
        itself.

    Raises:
        EdgeInfiniteError: its text part is no causal LM of transformers, or its weights aren't
            there.
        OSError, ValueError: the checkpoint can't be read.
    """
    config = AutoConfig.from_pretrained(name, revision=revision)
    text = text_configuration(config)
    if text is None:
        return None
    names = sorted(tensor_files(name, revision))
    mapping = _mapping(names)
    if mapping is None:
        raise _unsupported(config, "its files name no embedding of a text model")
    tie_as_the_whole(config, names)
    made: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(text)]
    model, about = made.from_pretrained(
        name,
        revision=revision,
        config=text,
        key_mapping=mapping,
        dtype=torch.float32,
        output_loading_info=True,
    )
    lost = sorted(about["missing_keys"]) + [str(key) for key in about["mismatched_keys"]]
    if lost:
        raise _unsupported(config, f"its files lack {lost[0]} of the text model")
    loaded: PreTrainedModel = model
    return loaded


def tie_as_the_whole(config: PreTrainedConfig, names: list[str]) -> None:
    """Ties the text model's head to its embedding where the whole's configuration alone says so.

    Args:
        config: of the checkpoint; its text part's is changed.
        names: of the checkpoint's tensors; with a head among them nothing is tied.
    """
    if names and config.tie_word_embeddings and not any(map(_HEAD.fullmatch, names)):
        config.get_text_config(decoder=True).tie_word_embeddings = True


def text_configuration(config: PreTrainedConfig) -> PreTrainedConfig | None:
    """The configuration of the text model inside, that a causal LM of transformers has.

    Returns:
        None where there is nothing to take apart, see `load_text_part`.

    Raises:
        EdgeInfiniteError: the configuration says that no text model can be loaded, and why.
    """
    if config.is_encoder_decoder:
        raise _unsupported(config, "it is an encoder-decoder")
    text = config.get_text_config(decoder=True)
    whole: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if text is config and whole is None:
        raise _unsupported(config, "it is no causal LM of transformers")
    if text is config:
        return None
    shared = getattr(text, "num_kv_shared_layers", None) or 0
    if shared and shared >= text.num_hidden_layers:
        raise _unsupported(config, "all its layers read the KV caches of another model")
    if whole is not None and whole.config_class is not type(config):
        return None  # transformers hands the text's configuration on
    if config.model_type in _READS_BOTH_WAYS:
        raise _unsupported(config, "its text model sees later tokens (its mask isn't causal)")
    if config.model_type in _SCALES_OTHERWISE:
        raise _unsupported(config, "its text model scales logits in another way alone")
    if type(text) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise _unsupported(
            config, f"its text part ({text.model_type}) is no causal LM of transformers by itself"
        )
    return text


def _mapping(names: list[str]) -> dict[str, str] | None:
    """Regular expressions for names of the checkpoint, and what the text model calls them."""
    embeddings = [found["before"] for name in names if (found := _EMBEDDING.fullmatch(name))]
    if len(embeddings) != 1:
        return None
    heads = [found["before"] for name in names if (found := _HEAD.fullmatch(name))]
    mapping = {f"^{re.escape(embeddings[0])}": "model."}
    if len(heads) == 1:
        mapping[f"^{re.escape(heads[0])}lm_head\\."] = "lm_head."
    return mapping


def _unsupported(config: PreTrainedConfig, lacks: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{config.model_type} isn't supported: {lacks}; give a checkpoint of a text model"
    )
