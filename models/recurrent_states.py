"""Layers that don't attend: their state has a constant size and is read and written as it is.

Transformers gives such a layer its state through a `Cache`: the newest columns of a causal
convolution's input (`update_conv_state`), and what a gated delta rule remembers
(`update_recurrent_state`). So a cache of our own lets transformers' untouched modelling code run
over the state of a text, also while its graph is traced.

Letters: E channels, R columns of a convolution's state: its kernel's length less one. T tokens, U
heads of values, I dimensions of a key, J of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import Cache, PreTrainedModel

from edgeinfinite.artifact.tensors import CONV_STATE, RECURRENT_STATE, RecurrentTensor, Role
from edgeinfinite.errors import EdgeInfiniteError

RECURRENT_MIXERS = (
    *("Lfm2ShortConv", "Lfm2MoeShortConv", "Lfm3ShortConv"),
    *("Qwen3_5GatedDeltaNet", "Qwen3_5MoeGatedDeltaNet", "Qwen3NextGatedDeltaNet"),
)
"""Classes of the modules that are run so."""


@dataclass(frozen=True)
class RecurrentLayer:
    """The state of a layer that doesn't attend.

    Args:
        index: the layer's number in the backbone.
        tensors: what its state holds.
    """

    index: int
    tensors: tuple[RecurrentTensor, ...]


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

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The new keys and values alone."""
        return key_states, value_states

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor:
        """`[1, E, R]`; zeros before the first token, as a convolution is padded."""
        return self.tensors[self._places[layer_idx, CONV_STATE]]

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor:
        """`[1, U, I, J]`; zeros before the first token."""
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
        parts = [old.to(conv_states), conv_states]
        if (layer_idx, RECURRENT_STATE) in self._places:
            # Layers with a delta rule turn rows into columns for this alone. Rows joined to rows
            # spare a graph both turns.
            joined = torch.cat([part.transpose(1, 2) for part in parts], dim=1).transpose(1, 2)
        else:
            joined = torch.cat(parts, dim=-1)
        self.tensors[place] = joined[..., -old.shape[-1] :].to(old.dtype)
        return joined

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Keeps `[1, U, I, J]`, which is returned."""
        if state_idx:
            raise ValueError(f"its layer {layer_idx} has several recurrent states")
        place = self._places[layer_idx, RECURRENT_STATE]
        self.tensors[place] = recurrent_states.to(self.tensors[place].dtype)
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

    def __init__(self) -> None:
        super().__init__([], [])
        self.found: dict[int, dict[Role, RecurrentTensor]] = {}

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
        if conv_kernel_size < 2:
            raise ValueError(f"its layer {layer_idx} doesn't say how long its convolution is")
        columns = conv_kernel_size - 1
        self._note(CONV_STATE, layer_idx, state_idx, conv_states.shape[1], columns)
        return nn.functional.pad(conv_states, (columns, 0))

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, layer_idx: int, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Notes its sizes."""
        self._note(RECURRENT_STATE, layer_idx, state_idx, *recurrent_states.shape[1:])
        return recurrent_states

    def _note(self, role: Role, layer: int, state: int, *sizes: int) -> None:
        held = self.found.setdefault(layer, {})
        if state or role in held:
            kind = "convolutions" if role == CONV_STATE else "recurrent states"
            raise ValueError(f"its layer {layer} has several {kind}")
        held[role] = RecurrentTensor(role, (1, *sizes))


def is_recurrent(layer: nn.Module) -> bool:
    """Whether a decoder layer doesn't attend, and has a state that is understood."""
    if hasattr(layer, "self_attn"):
        return False
    return any(type(part).__name__ in RECURRENT_MIXERS for part in layer.children())


def recurrent_layers(model: PreTrainedModel) -> list[RecurrentLayer]:
    """The layers of a decoder that don't attend, collected on the first call.

    Raises:
        ValueError: says what of their states isn't understood.
    """
    known = getattr(model, "edgeinfinite_recurrent", None)
    if isinstance(known, list):
        return known
    wanted = [i for i, layer in enumerate(model.get_decoder().layers) if is_recurrent(layer)]
    found = _collected(model) if wanted else {}
    if sorted(found) != wanted:
        raise ValueError("its layers without attention don't hand their states to a cache")
    known = [RecurrentLayer(index, tuple(found[index].values())) for index in wanted]
    model.edgeinfinite_recurrent = known  # type: ignore[assignment]
    return known


def recurrent_tensors(model: PreTrainedModel) -> tuple[RecurrentTensor, ...]:
    """What the state holds of the layers that don't attend, in their order."""
    return tuple(tensor for layer in recurrent_layers(model) for tensor in layer.tensors)


def states_of(model: PreTrainedModel, tensors: Sequence[torch.Tensor]) -> RecurrentStates | None:
    """The cache for a pass over some tokens; None for a model whose layers all attend.

    Raises:
        EdgeInfiniteError: the tensors aren't those of the layers, so the pass would begin anew.
    """
    layers = recurrent_layers(model)
    if len(recurrent_tensors(model)) != len(tensors):
        raise EdgeInfiniteError(
            f"{type(model).__name__} has {len(layers)} layers with a state of their own, which "
            "this can't carry on; use a model whose layers all attend"
        )
    return RecurrentStates(layers, tensors) if layers else None


def _collected(model: PreTrainedModel) -> dict[int, dict[Role, RecurrentTensor]]:
    sizes, decoder = _Sizes(), model.get_decoder()
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
