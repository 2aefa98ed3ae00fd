"""EdgeInfinite's attention behind transformers' attention interface.

The backbone is transformers' own modelling code. It calls the function registered here under
`ATTENTION_NAME` with Q, K, V after RoPE; the state is the keyword argument `STATE_ARGUMENT` of the
model's forward. If the gate needs the tokens' p (`gate.log_positions`), it is the keyword argument
`LOG_POSITION_ARGUMENT`. Letters: B batch, H query heads, K KV heads, T new tokens, L layers, C
capacity, D head dimension, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.attention.adapter import register_attention
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.memory.gate import log_positions
from edgeinfinite.models.recurrent_states import attention_of, states_of

ATTENTION_NAME = "edgeinfinite"
STATE_ARGUMENT = "edgeinfinite_state"
LOG_POSITION_ARGUMENT = "edgeinfinite_log_position"


class AttentionState(Protocol):
    """What a forward pass needs of the state: exact attention, and the memory to read.

    A `RecurrentState` also carries on what layers keep beside KV caches.

    Implementations: the reference in `models/state.py`, and one in `export/` for each set of
    operators.
    """

    has_memory: torch.Tensor
    """Float `[1]`: 0 before the first compression, then 1."""

    def positions(self, tokens: int) -> torch.Tensor:
        """Positions `[1, T]` int64 of the next T tokens: their slots in the cache."""
        ...

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Writes the new tokens' K and V into the cache and attends causally to the whole cache.

        A call that `reads_another` layer's cache writes nothing: that layer has done so in the same
        pass.

        Returns:
            A_dot `[B, H, T, D]`.
        """
        ...

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """M `[K, D, D]` and z `[K, D]` of a layer, float32."""
        ...


class RecurrentState(AttentionState, Protocol):
    """A state for models whose layers keep more than KV caches (`recurrent_states`)."""

    recurrent: list[torch.Tensor]
    """What each of these layers keeps."""

    def carry_on(self, tensors: list[torch.Tensor]) -> None:
        """Keeps what a pass has made of `recurrent`."""
        ...


def _attend(call: AttentionCall, module: nn.Module, others: dict[str, Any]) -> torch.Tensor:
    """Local attention, memory read, gate (Eq. 7-10); see `adapter.Attend`."""
    state: AttentionState = others[STATE_ARGUMENT]
    combined = state.attend(call)
    gate = getattr(module, "memory_gate", None)
    if gate is not None:
        memory, log_position = state.memory_of(call.layer), others.get(LOG_POSITION_ARGUMENT)
        combined = gate(call.query, *memory, combined, state.has_memory, log_position)
    return combined


register_attention(ATTENTION_NAME, _attend)


@contextmanager
def attention_implementation(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Inside the block, the model attends with the registered function of this name."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


def run_tokens(
    model: PreTrainedModel, tokens: torch.Tensor, state: AttentionState, *, logits_to_keep: int = 1
) -> torch.Tensor:
    """Runs an attached model over T tokens of one segment and updates the state.

    Args:
        model: a causal LM after `attach`.
        tokens: `[1, T]` int64.
        state: stores K and V and attends to them. The caller advances its lengths.
        logits_to_keep: number of last tokens to return logits for; 0 means all tokens.

    Returns:
        Logits `[1, logits_to_keep or T, V]`.
    """
    positions = state.positions(tokens.shape[1])
    first = next(filter(None, map(attention_of, model.get_decoder().layers)))
    gate = getattr(first, "memory_gate", None)
    by_place = getattr(gate, "opening", None) == "place"
    log_position = log_positions(positions[0]) if by_place else None  # once for all layers
    recurrent = states_of(model, getattr(state, "recurrent", []))
    with attention_implementation(model, ATTENTION_NAME):
        output = model(
            input_ids=tokens,
            position_ids=positions,
            use_cache=False,
            past_key_values=recurrent,
            logits_to_keep=logits_to_keep,
            **{STATE_ARGUMENT: state, LOG_POSITION_ARGUMENT: log_position},
        )
    if recurrent is not None:
        state.carry_on(recurrent.tensors)  # type: ignore[attr-defined]
    return output.logits
