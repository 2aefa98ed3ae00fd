"""What the methods read with: a state with recall slots, and a cache of the newest tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedTokenizerBase

from edgeinfinite.artifact.manifest import Manifest, read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.artifact_reader import ArtifactReader
from edgeinfinite.evaluation.methods import Reader, configuration
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.questions.prompts import Prompt
from edgeinfinite.evaluation.questions.systems import model_system
from edgeinfinite.evaluation.sources import Artifact
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.runtime_py.answer.sampling_defaults import DEFAULTS, conversation_sampling
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

_MOST_DIFFERENCE = 0.02
"""Of the bytes of two states that are called the same."""


@dataclass(frozen=True)
class ChatSystem:
    """A model with a state of fixed size, and a cache of as many bytes.

    Args:
        open_state: opens a reader with recall slots.
        open_cache: opens a reader with StreamingLLM's cache; a text of up to `window` tokens stays
            in it whole, which is full attention.
        window: tokens.
        tokenizer: of both.
        stop_ids: tokens that end an answer.
        sampling: how the model writes a summary, as a chat samples.
    """

    open_state: Callable[[], ArtifactReader | Reader]
    open_cache: Callable[[], ArtifactReader | Reader]
    window: int
    tokenizer: PreTrainedTokenizerBase
    stop_ids: frozenset[int]
    sampling: dict[str, Any] = field(default_factory=lambda: dict(DEFAULTS))


def of_artifacts(state: Artifact, cache: Artifact) -> ChatSystem:
    """Two artifacts of one checkpoint.

    Args:
        state: what `export` makes.
        cache: the same without recall slots and with as many bytes.

    Raises:
        EdgeInfiniteError: they aren't such a pair.
    """
    _check_pair(read_manifest(state.folder), read_manifest(cache.folder))
    held, beside = (ArtifactReader(one.engine).state_bytes for one in (state, cache))
    if abs(beside - held) > _MOST_DIFFERENCE * held:
        raise EdgeInfiniteError(
            f"the states have {held / 1e6:.1f} and {beside / 1e6:.1f} MB, so they can't be "
            "compared; export --streaming with another --window-length"
        )
    return ChatSystem(
        lambda: ArtifactReader(state.engine),
        lambda: ArtifactReader(cache.engine),
        cache.engine.geometry.capacity,
        state.tokenizer,
        load_tokenizer(state.folder).stop_ids,
        conversation_sampling(state.folder),
    )


def of_model(backbone: Backbone, setting: Setting) -> ChatSystem:
    """A checkpoint in PyTorch; the cache has as many slots as the state has in an average layer.

    Raises:
        EdgeInfiniteError: the policy isn't `carry`.
    """
    if setting.geometry.policy != "carry":
        raise EdgeInfiniteError(
            "a cut text is read by a cache of policy carry; give --policy carry"
        )
    system = model_system(backbone, setting, ("edgeinfinite", "streaming"))

    def opens(method: str) -> Callable[[], Reader]:
        return lambda: system.open(method, Prompt([], 0), 2)  # type: ignore[return-value]

    window = configuration("streaming", setting, 2).geometry.capacity
    return ChatSystem(
        opens("edgeinfinite"), opens("streaming"), window, system.tokenizer, system.stop_ids
    )


def _check_pair(state: Manifest, cache: Manifest) -> None:
    if state.backbone != cache.backbone:
        raise EdgeInfiniteError("--streaming is of another checkpoint than --artifact")
    if cache.geometry.most_slots or cache.geometry.policy != "carry":
        raise EdgeInfiniteError(
            "--streaming isn't StreamingLLM's cache: export it with --policy carry "
            "--recall-slots 0 and as large a --window-length as has the same bytes"
        )
