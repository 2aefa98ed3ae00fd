"""What is measured: the methods of a checkpoint in PyTorch, or an exported artifact as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.evaluation.artifact_reader import tokenizer_of, trained_parts
from edgeinfinite.evaluation.options import CheckpointOptions, Setting
from edgeinfinite.evaluation.placement import device_of
from edgeinfinite.export.default_text import default_text, first_tokens
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.int8_cache.measure import MEASURED_TOKENS
from edgeinfinite.runtime_py.engines import Engine, load_engine


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, loaded to its device, and what its methods are built from.

    Args:
        options: as given.
        backbone: in the dtype that was asked for; its model is attached again for every text.
        setting: geometry, trained parts and cache of the methods.
        notes: one sentence for each default that was chosen.
    """

    options: CheckpointOptions
    backbone: Backbone
    setting: Setting
    notes: tuple[str, ...] = ()

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The checkpoint's own."""
        return self.backbone.tokenizer

    @property
    def trained(self) -> list[str | None]:
        """Files of trained parts, which name their training texts."""
        return [self.setting.scorer, self.setting.gate, self.setting.zero_gate]

    @property
    def depends_on(self) -> dict[str, Any]:
        """Everything that rows depend on, apart from the texts."""
        setting = self.setting
        names = [f.name for f in fields(setting) if f.name != "scale_tokens"]
        found: dict[str, Any] = {name: getattr(setting, name) for name in names}
        found |= {"geometry": setting.geometry.to_dict()}
        found |= {"model": self.backbone.name, "dtype": self.options.dtype}
        if self.options.pre_tokenizer is not None:
            found["pre_tokenizer"] = self.options.pre_tokenizer
        if setting.cache_type == INT8_CACHE:  # rows of caches with a scale a vector are others
            found["cache_scales"] = "a channel"
        return found | {name: named_part(found[name]) for name in ("scorer", "gate", "zero_gate")}


def open_checkpoint(
    options: CheckpointOptions, tell: Callable[[str], None] = lambda _: None
) -> Checkpoint:
    """Loads a checkpoint and decides what its methods are built from.

    Args:
        options: see there.
        tell: called with one sentence for every default that was chosen.

    Raises:
        EdgeInfiniteError: it can't be loaded, the options don't go together or are no sizes, or
            there is no such device.
    """
    device = device_of(options.device)
    # Without a cache type the floats of the checkpoint are measured, with the slots of an export.
    plain = options.cache_type is None and options.geometry.state_mb is None
    asked = ModelOptions(
        options.geometry,
        options.gate,
        options.scorer,
        options.cache_type,
        quantized=False,
        slots_as=INT8_CACHE if plain else None,
    )
    backbone = load_backbone(options.model, pre_tokenizer=options.pre_tokenizer)
    resolved = resolve(backbone, asked)
    for sentence in resolved.notes:
        tell(sentence)
    config = resolved.config
    tokens: list[int] = []
    if config.cache_type == INT8_CACHE:
        tokens = first_tokens(backbone.tokenizer, default_text(), MEASURED_TOKENS)
    setting = Setting(
        config.geometry,
        options.gate,
        config.scorer,
        options.zero_gate,
        config.cache_type,
        tokens,
    )
    backbone.model.to(device)  # type: ignore[arg-type]  # transformers wraps it
    backbone.model.to(getattr(torch, options.dtype))
    return Checkpoint(options, backbone, setting, resolved.notes)


@dataclass(frozen=True)
class Artifact:
    """An exported artifact, opened as the runtime opens it.

    Args:
        folder: where it lies.
        engine: its own, on this machine.
        tokenizer: its own, for transformers.
    """

    folder: Path
    engine: Engine
    tokenizer: PreTrainedTokenizerBase

    @property
    def trained(self) -> list[str | None]:
        """See `Checkpoint.trained`."""
        return trained_parts(self.folder, read_manifest(self.folder))

    @property
    def depends_on(self) -> dict[str, Any]:
        """See `Checkpoint.depends_on`."""
        engine = self.engine
        return {"artifact": engine.fingerprint, "geometry": engine.geometry.to_dict()}


def open_artifact(folder: Path, threads: int | None = None) -> Artifact:
    """Opens an artifact.

    Args:
        folder: the artifact.
        threads: of its engine; None for the engine's default.

    Raises:
        EdgeInfiniteError: it is damaged, or its engine isn't installed.
    """
    return Artifact(folder, load_engine(folder, threads=threads), tokenizer_of(folder))


Source = Checkpoint | Artifact


def named_part(part: str | None) -> str | None:
    """Identifies a trained part by name and contents, not by its folder."""
    if part is None or not Path(part).is_file():
        return part
    return f"{Path(part).name} sha256 {hashlib.sha256(Path(part).read_bytes()).hexdigest()}"
