"""Mini-sequences: the same logits, in chunks of any size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from architectures import ARCHITECTURES

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.mini_sequence import apply_mini_sequence
from edgeinfinite.models.mom.row_rounding import like_many
from tiny import MORE_FAMILIES, VOCABULARY, assert_close, tiny_family, tiny_llama


def tokens_of(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", (*ARCHITECTURES, *MORE_FAMILIES))
@pytest.mark.parametrize(("batch", "length", "size"), [(1, 29, 8), (3, 16, 5), (2, 7, 9)])
def test_the_last_tokens_logits_are_those_of_the_model(
    name: str, batch: int, length: int, size: int
) -> None:
    model, tokens = tiny_family(name), tokens_of(batch, length)
    with torch.no_grad():
        expected = model(tokens).logits
        with apply_mini_sequence(model, size):
            logits = model(tokens).logits
        with apply_mini_sequence(model, size, last_token_only=False):
            whole = model(tokens).logits
        again = model(tokens).logits
    assert_close(logits, expected[:, -1:], 4e-6)
    assert_close(whole, expected, 4e-6)
    assert torch.equal(again, expected), "the model has its own forward pass back"


@pytest.mark.parametrize("name", (*ARCHITECTURES, *MORE_FAMILIES))
def test_generate_gives_the_same_tokens_also_for_a_batch_padded_on_the_left(name: str) -> None:
    model, tokens = tiny_family(name), tokens_of(2, 21)
    mask = torch.ones_like(tokens)
    mask[1, :6], tokens[1, :6] = 0, 0
    options: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "attention_mask": mask}
    expected = model.generate(tokens, **options)
    with apply_mini_sequence(model, 4):
        assert torch.equal(model.generate(tokens, **options), expected)


def test_no_mlp_sees_more_tokens_than_a_chunk_and_the_last_one_as_few_as_round_alike() -> None:
    model, seen = tiny_llama(), []
    with apply_mini_sequence(model, 64), torch.no_grad():
        for layer in model.get_decoder().layers:
            layer.mlp.gate_proj.register_forward_pre_hook(lambda _, x: seen.append(x[0].shape[1]))
        model(tokens_of(1, 150))
    assert seen == [64, 64, 22, like_many(150)]


def test_gradients_are_the_same() -> None:
    model, tokens = tiny_llama(), tokens_of(1, 11)
    weight = model.get_decoder().layers[0].mlp.up_proj.weight
    (expected,) = torch.autograd.grad(model(tokens).logits[:, -1].square().sum(), weight)
    with apply_mini_sequence(model, 3):
        (gradient,) = torch.autograd.grad(model(tokens).logits[:, -1].square().sum(), weight)
    assert_close(gradient, expected, 1e-5)


@pytest.mark.parametrize(
    ("config", "lack"),
    [
        (transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=50), "no list"),
        (transformers.MambaConfig(hidden_size=16, num_hidden_layers=1, vocab_size=50), "no MLP"),
        (
            transformers.OPTConfig(
                hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=8, vocab_size=50
            ),
            "no MLP",
        ),
    ],
    ids=["gpt2", "mamba", "opt"],
)
def test_a_model_without_mlps_is_refused_by_name(config: Any, lack: str) -> None:
    model = transformers.AutoModelForCausalLM.from_config(config)
    with pytest.raises(EdgeInfiniteError, match=rf"{type(model).__name__} can't .*{lack}"):
        apply_mini_sequence(model, 8)


def test_a_size_below_one_and_a_second_application_are_refused() -> None:
    model = tiny_llama()
    with pytest.raises(EdgeInfiniteError, match="size is 0"):
        apply_mini_sequence(model, 0)
    with apply_mini_sequence(model, 2), pytest.raises(EdgeInfiniteError, match="already"):
        apply_mini_sequence(model, 2)
    apply_mini_sequence(model, 2).remove()
