"""Which keys `carry` rotates when they move."""

from __future__ import annotations

import pytest
import torch
import transformers

from edgeinfinite.models.recall.movement import rotary_tables

SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


@pytest.mark.parametrize(
    "model",
    [
        transformers.SmolLM3ForCausalLM(
            transformers.SmolLM3Config(**SIZES, pad_token_id=0, bos_token_id=1, eos_token_id=2)
        ),
        transformers.Exaone4ForCausalLM(
            transformers.Exaone4Config(**SIZES, sliding_window=7, sliding_window_pattern=4)
        ),
    ],
    ids=["SmolLM3", "Exaone4"],
)
def test_keys_of_layers_without_rope_are_not_rotated(model: transformers.PreTrainedModel) -> None:
    """Each has its own way to say that the fourth layer has none."""
    key, slots = torch.randn(1, 2, 3, 8), torch.tensor([5, 6, 7])
    moved = [table.shift_back(key, slots) for table in rotary_tables(model, 16)]
    assert [torch.equal(key, keys) for keys in moved] == [False, False, False, True]
