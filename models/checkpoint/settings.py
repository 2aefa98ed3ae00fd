"""What a checkpoint says beside its weights, to be judged before they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformers import (
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.utils.hub import cached_file

from edgeinfinite.models.checkpoint.layer_count import check_layers
from edgeinfinite.models.checkpoint.text_part import text_configuration

GENERATION_FILE = "generation_config.json"


@dataclass(frozen=True)
class CheckpointSettings:
    """What stands beside the weights.

    Args:
        config: the model's.
        tokenizer: of the same checkpoint.
        generation: how it generates.
        where: the file that says so, for errors.
    """

    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerBase
    generation: GenerationConfig
    where: str

    @property
    def vocabulary(self) -> int:
        """V, the number of the model's tokens."""
        return int(self.config.get_text_config().vocab_size)


Judge = Callable[[CheckpointSettings], None]
"""Called before the first weight is read; what it raises ends the loading."""


def read_settings(name: str, revision: str) -> CheckpointSettings:
    """Reads all that stands beside the weights of a folder or of a model on the hub.

    Args:
        name: a folder, or the id of a model on the hub.
        revision: of the hub's.

    Raises:
        EdgeInfiniteError: the configuration says that no text model can be loaded, and why.
        OSError, ValueError: the checkpoint isn't there, or a file can't be read. transformers
            itself would pass over a damaged `generation_config.json`.
    """
    check_layers(name, revision)
    config = AutoConfig.from_pretrained(name, revision=revision)
    text_configuration(config)
    tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
    own = cached_file(
        name, GENERATION_FILE, revision=revision, _raise_exceptions_for_missing_entries=False
    )
    if own is None:
        generation = GenerationConfig.from_model_config(config)
        return CheckpointSettings(config, tokenizer, generation, "config.json")
    try:
        generation = GenerationConfig.from_pretrained(name, revision=revision)
    except Exception as error:  # whatever a damaged file brings the library to
        raise ValueError(f"{GENERATION_FILE}: {error}") from error
    return CheckpointSettings(config, tokenizer, generation, GENERATION_FILE)
