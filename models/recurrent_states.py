"""States of a constant size beside the KV caches: each call reads and replaces them whole.

Transformers gives such a layer its state through a `Cache`: the newest columns of a causal
convolution's input (`update_conv_state`), and what a gated delta rule or an SSM remembers
(`update_recurrent_state`). So a cache of our own lets transformers' untouched modelling code run
over the state of a text, also while its graph is traced. Most layers that keep such a state don't
attend; those of Falcon-H1 do both.

Mamba-2's recurrence (Dao and Gu 2024, arXiv 2405.21060) is linear attention with a decay: B is the
key, dt x the value, C the query. So its state is a matrix for each head as that of a delta rule,
in the same layout. Transformers holds it the other way round.

Letters: E channels, R columns of a convolution's state: its kernel's length less one. T tokens, U
heads of values, I dimensions of a key, J of a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import Cache, PreTrainedModel

from edgeinfinite.artifact.tensors import CONV_STATE, RECURRENT_STATE, RecurrentTensor, Role
from edgeinfinite.errors import EdgeInfiniteError

SSM_MIXERS = ("GraniteMoeHybridMambaLayer", "BambaMixer", "FalconH1Mixer")
"""Of them, Mamba-2's."""

RECURRENT_MIXERS = (
    *("Lfm2ShortConv", "Lfm2MoeShortConv", "Lfm3ShortConv"),
    *("Qwen3_5GatedDeltaNet", "Qwen3_5MoeGatedDeltaNet", "Qwen3NextGatedDeltaNet"),
    *SSM_MIXERS,
)
"""Classes of the modules that are run so."""


@dataclass(frozen=True)
class RecurrentLayer:
    """What a layer keeps beside KV caches.

    Args:
        index: the layer's number in the backbone.
        tensors: what its state holds.
        is_ssm: whether transformers has its recurrent state as `[1, U, J, I]`, and writes one
            token into it in place.
    """

    index: int
    tensors: tuple[RecurrentTensor, ...]
    is_ssm: bool = False


class RecurrentStates(Cache):
    """What transformers' layers see as their cache.

    Keys and values pass through: attention has its own state.

    Args:
        layers: of the model, in order.
        tensors: of their states, in order; replaced by what the layers leave, never written to.
    """

    def __init__(self, layers: Sequence[RecurrentLayer], tensors: Sequence[torch.Tensor]) -> None:
        super().__init__(layers=[])
        self.tensors = list(tensors)
        held = [(layer.index, tensor.role) for layer in layers for tensor in layer.tensors]
        self._places = {of: place for place, of in enumerate(held)}
        self._ssm = {layer.index for layer in layers if layer.is_ssm}

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The new keys and values alone."""
        return key_states, value_states

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor:
        """`[1, E, R]`; zeros before the first token, as a convolution is padded."""
        return self.tensors[self._places[layer_idx, CONV_STATE]]

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor:
        """`[1, U, I, J]`, of an SSM `[1, U, J, I]`; zeros before the first token."""
        place = self._places[layer_idx, RECURRENT_STATE]
        if not self.is_ssm(layer_idx):
            return self.tensors[place]
        self.tensors[place] = self.tensors[place].clone()  # one token is written into it
        return self.tensors[place].transpose(2, 3)

    def is_ssm(self, layer_idx: int) -> bool:
        """Whether a layer's recurrent state is an SSM's."""
        return layer_idx in self._ssm

    def recurrent_state_of(self, layer_idx: int) -> torch.Tensor:
        """`[1, U, I, J]` of any layer, as the state holds it."""
        return self.tensors[self._places[layer_idx, RECURRENT_STATE]]

    def is_recording_past(self, layer_idx: int) -> bool:
        """True: then one token takes the same way as many, which leaves the old state alone."""
        return True

    def update_conv_state(
        self, conv_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """The old columns and the new ones `[1, E, T]`, as `[1, E, R + T]`; keeps the last R."""
        if state_idx:
            raise ValueError(f"its layer {layer_idx} has several convolutions")
        place = self._places[layer_idx, CONV_STATE]
        old = self.tensors[place]
        parts, columns = [old.to(conv_states), conv_states], old.shape[-1]
        if (layer_idx, RECURRENT_STATE) in self._places:
            # Layers with a delta rule or an SSM turn rows into columns for this alone. Rows joined
            # to rows spare a graph both turns.
            rows = torch.cat([part.transpose(1, 2) for part in parts], dim=1)
            joined, kept = rows.transpose(1, 2), rows[:, -columns:].transpose(1, 2)
        else:
            joined = torch.cat(parts, dim=-1)
            kept = joined[..., -columns:]
        self.tensors[place] = kept.to(old.dtype)
        return joined

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Keeps `[1, U, I, J]`, of an SSM `[1, U, J, I]`, which is returned."""
        if state_idx:
            raise ValueError(f"its layer {layer_idx} has several recurrent states")
        place = self._places[layer_idx, RECURRENT_STATE]
        kept = recurrent_states.transpose(2, 3) if layer_idx in self._ssm else recurrent_states
        self.tensors[place] = kept.to(self.tensors[place].dtype)
        return recurrent_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """0: positions are given."""
        return 0

    def get_query_offset(self, layer_idx: int = 0) -> int:
        """0: attention's own state masks."""
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Of the new tokens alone."""
        return query_length, 0


class _Sizes(RecurrentStates):
    """Notes what each layer would keep."""

    def __init__(self, ssm: set[int]) -> None:
        super().__init__([], [])
        self.found: dict[int, dict[Role, RecurrentTensor]] = {}
        self._ssm = ssm

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> None:  # type: ignore[override]
        """None: nothing was read."""

    get_recurrent_state = get_conv_state  # type: ignore[assignment]

    def update_conv_state(
        self,
        conv_states: torch.Tensor,
        layer_idx: int,
        state_idx: int = 0,
        conv_kernel_size: int = 0,
        **_: Any,
    ) -> torch.Tensor:
        """Pads as before the first token."""
        if conv_kernel_size == 1:
            raise ValueError(f"its layer {layer_idx} has a convolution of length 1, without a past")
        if conv_kernel_size < 1:
            raise ValueError(f"its layer {layer_idx} doesn't say how long its convolution is")
        columns = conv_kernel_size - 1
        self._note(CONV_STATE, layer_idx, state_idx, conv_states.shape[1], columns)
        return nn.functional.pad(conv_states, (columns, 0))

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Notes its sizes."""
        heads, *sizes = recurrent_states.shape[1:]
        sizes = sizes[::-1] if layer_idx in self._ssm else sizes
        self._note(RECURRENT_STATE, layer_idx, state_idx, heads, *sizes)
        return recurrent_states

    def _note(self, role: Role, layer: int, state: int, *sizes: int) -> None:
        held = self.found.setdefault(layer, {})
        if state or role in held:
            kind = "convolutions" if role == CONV_STATE else "recurrent states"
            raise ValueError(f"its layer {layer} has several {kind}")
        held[role] = RecurrentTensor(role, (1, *sizes))


def attention_of(layer: nn.Module) -> nn.Module | None:
    """The attention of a decoder layer; None if it doesn't attend.

    Granite 4 H has the attribute in every layer, and None there.
    """
    found = getattr(layer, "self_attn", None)
    return found if isinstance(found, nn.Module) else None


def mixer_of(layer: nn.Module) -> nn.Module | None:
    """What of a decoder layer keeps a state that is understood; None if nothing does."""
    parts = (part for part in layer.children() if type(part).__name__ in RECURRENT_MIXERS)
    return next(parts, None)


def is_recurrent(layer: nn.Module) -> bool:
    """Whether a decoder layer doesn't attend, and has a state that is understood."""
    return attention_of(layer) is None and mixer_of(layer) is not None


def recurrent_layers(model: PreTrainedModel) -> list[RecurrentLayer]:
    """The layers of a decoder that keep a state beside KV caches, collected on the first call.

    Raises:
        ValueError: says what of their states isn't understood.
    """
    known = getattr(model, "edgeinfinite_recurrent", None)
    if isinstance(known, list):
        return known
    mixers = {i: mixer_of(layer) for i, layer in enumerate(model.get_decoder().layers)}
    wanted = [index for index, mixer in mixers.items() if mixer is not None]
    ssm = {index for index in wanted if type(mixers[index]).__name__ in SSM_MIXERS}
    for index in sorted(ssm):
        _check_time_steps(index, mixers[index])
    found = _collected(model, ssm) if wanted else {}
    if sorted(found) != wanted:
        raise ValueError("its layers without attention don't hand their states to a cache")
    known = [RecurrentLayer(i, tuple(found[i].values()), i in ssm) for i in wanted]
    model.edgeinfinite_recurrent = known  # type: ignore[assignment]
    return known


def recurrent_tensors(model: PreTrainedModel) -> tuple[RecurrentTensor, ...]:
    """What the state holds beside KV caches, in the order of the layers."""
    return tuple(tensor for layer in recurrent_layers(model) for tensor in layer.tensors)


def states_of(model: PreTrainedModel, tensors: Sequence[torch.Tensor]) -> RecurrentStates | None:
    """The cache for a pass over some tokens; None for a model that keeps KV caches alone.

    Raises:
        EdgeInfiniteError: the tensors aren't those of the layers, so the pass would begin anew.
    """
    layers = recurrent_layers(model)
    if len(recurrent_tensors(model)) != len(tensors):
        raise EdgeInfiniteError(
            f"{type(model).__name__} has {len(layers)} layers with a state of their own, which "
            "this can't carry on; use a model that keeps KV caches alone"
        )
    return RecurrentStates(layers, tensors) if layers else None


def _check_time_steps(index: int, mixer: Any) -> None:
    """Refuses limits of dt: transformers obeys them for many tokens at once, never for one."""
    low, high = mixer.time_step_limit or (0.0, math.inf)
    if low > 0 or high < math.inf:
        raise ValueError(
            f"the SSM of its layer {index} limits time steps to {low} to {high}, by which tokens "
            "read together differ from tokens read one by one in transformers"
        )


def _collected(model: PreTrainedModel, ssm: set[int]) -> dict[int, dict[Role, RecurrentTensor]]:
    sizes, decoder = _Sizes(ssm), model.get_decoder()
    training = model.training
    try:
        with torch.no_grad():
            decoder.eval()(
                input_ids=torch.tensor([[1, 2]], device=model.device),
                position_ids=torch.tensor([[0, 1]], device=model.device),
                past_key_values=sizes,
                use_cache=False,
            )
    finally:
        model.train(training)
    return sizes.found
