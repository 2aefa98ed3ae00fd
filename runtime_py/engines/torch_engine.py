"""The reference engine: the attached transformers model itself, in PyTorch."""

from __future__ import annotations

import functools
import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import digest_of_model
from edgeinfinite.artifact.tensors import RECURRENT, SCORES, state_specs
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attention_layers,
    cache_scales_of,
    config_of,
    feature_maps,
    rank_rule_of,
    scored_layers,
)
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.checkpoint.loading import parameters_digest
from edgeinfinite.models.int8_cache.scales import scaled_caches
from edgeinfinite.models.recall.carry import carry_caches
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.state import TensorState, fold_oldest
from edgeinfinite.models.trained_file import modules_digest
from edgeinfinite.runtime_py.engines.base import Reader
from edgeinfinite.runtime_py.session.state import State


class TorchEngine:
    """See `Engine`. The state's arrays are shared with PyTorch, not copied.

    Args:
        model: a float32 causal LM on the CPU after `models.attach.attach`.

    Raises:
        EdgeInfiniteError: the cache is int8 and has no scales.
    """

    name = "torch"
    chunk_length = 256

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.geometry: Geometry = config_of(model).geometry
        facts = architecture_of(model)
        self.vocabulary = facts.vocabulary
        layers = attention_layers(model)
        self.reads_memory = layers[0].memory_gate is not None
        self._rule = rank_rule_of(model)
        self.scorers: list[Any] = [layer.retention_scorer for layer in layers]
        """The scorer of each layer; None where it has no recall slots."""
        self._scales = cache_scales_of(model)
        carries = self.geometry.policy == "carry"
        self._tables = rotary_tables(model, self.geometry.capacity) if carries else []
        self._specs = state_specs(
            len(layers),
            facts.kv_heads,
            self.geometry.capacities(len(layers)),
            facts.head_dim,
            memory=self.reads_memory,
            cache_type=config_of(model).cache_type,
            scored=scored_layers(model),
            recurrent=facts.recurrent,
            heads=facts.heads,
        )
        self._recurrent = [spec.name for spec in self._specs if spec.role in RECURRENT]

    @functools.cached_property
    def fingerprint(self) -> str:
        """See `Engine`. It is computed on first use, because hashing the weights takes time."""
        digest = hashlib.sha256(parameters_digest(self.model).encode())
        digest.update(self._rule.to_json().encode())
        return digest.hexdigest()

    @functools.cached_property
    def model_digest(self) -> str:
        """See `Engine`; the same as of an artifact that was exported from this model."""
        gates = [layer.memory_gate for layer in attention_layers(self.model)]
        gate = scorer = None
        if self.reads_memory:
            form = f"{gates[0].feature_map.name} {gates[0].opening}"
            gate = modules_digest(gates, form)
        if self.scorers[0] is not None:
            scorer = modules_digest(self.scorers, self._rule.to_json())
        return digest_of_model(parameters_digest(self.model, gates=False), gate, scorer)

    @property
    def cache_scales(self) -> str:
        """See `Engine`: no file has these scales, so no other engine's bytes are taken over."""
        return ""

    def new_state(self) -> State:
        return State(self._specs)

    def prefill_segment(self, tokens: np.ndarray, state: State) -> np.ndarray:
        with torch.inference_mode():
            ids = torch.from_numpy(tokens).to(self.model.device)
            logits = run_tokens(self.model, ids, self._shared(state))
        return logits[0, -1].float().cpu().numpy()

    def reading(self, tokens: int) -> AbstractContextManager[Reader | None]:
        return nullcontext()

    def decode_step(self, tokens: np.ndarray, state: State) -> np.ndarray:
        return self.prefill_segment(tokens, state)

    def compress_memory(self, state: State) -> None:
        shared = self._shared(state)
        length = shared.length.to(self.model.device)
        with torch.inference_mode():
            if self.reads_memory:
                memory, memory_norm = fold_oldest(
                    self.geometry,
                    shared.k_cache,
                    shared.v_cache,
                    shared.memory,
                    shared.memory_norm,
                    length if self._tables else None,
                    feature_maps=feature_maps(self.model),
                )
                shared.memory.copy_(memory)
                shared.memory_norm.copy_(memory_norm)
            if self._tables:  # the policy advances the lengths
                carry_caches(
                    self.geometry,
                    self._rule,
                    length,
                    shared.k_cache,
                    shared.v_cache,
                    self._tables,
                    self.scorers,
                    shared.scores,
                )

    def _shared(self, state: State) -> TensorState:
        held: dict[str, Any] = state.arrays  # a state on a GPU holds tensors
        arrays: dict[str, torch.Tensor] = {
            name: torch.from_numpy(array) if isinstance(array, np.ndarray) else array
            for name, array in held.items()
        }
        layers = range(len(state.length))
        nothing = torch.empty(0)
        k_cache, v_cache = scaled_caches(
            [arrays[f"k_cache_{layer}"] for layer in layers],
            [arrays[f"v_cache_{layer}"] for layer in layers],
            self._scales,
        )
        return TensorState(
            length=arrays["length"],
            k_cache=k_cache,
            v_cache=v_cache,
            memory=arrays.get("memory", nothing),
            memory_norm=arrays.get("memory_norm", nothing),
            has_memory=arrays["has_memory"].to(self.model.device),
            scores=[arrays.get(f"{SCORES}_{layer}") for layer in layers],
            longest_layer=self.geometry.longest_layer,
            recurrent=[arrays[name] for name in self._recurrent],
        )
