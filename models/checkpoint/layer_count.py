"""A configuration that asks for more layers than any model has is refused before one is built."""

from __future__ import annotations

from transformers import PreTrainedConfig

from edgeinfinite.errors import EdgeInfiniteError

_MOST = 1024
"""Layers of a decoder; the deepest that are known have 126."""


def check_layers(name: str, revision: str) -> None:
    """Reads a checkpoint's configuration, before transformers does.

    Args:
        name: a folder, or the id of a model on the hub.
        revision: of the hub's.

    Raises:
        EdgeInfiniteError: the number of layers can't be meant.
        OSError, ValueError: the configuration can't be read.
    """
    # As it stands in the file: a configuration object makes lists as long as the layers.
    settings, _ = PreTrainedConfig.get_config_dict(name, revision=revision)
    for part in [settings, *(value for value in settings.values() if isinstance(value, dict))]:
        layers = part.get("num_hidden_layers")
        if isinstance(layers, int) and not 0 < layers <= _MOST:
            raise EdgeInfiniteError(
                f"model {name}: num_hidden_layers of its config.json is {layers}; EdgeInfinite "
                f"reads decoders of 1 to {_MOST:,} layers"
            )
