"""The gated delta rule in an artifact: operators, shapes, and its state after long texts."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from recurrent_artifacts import compare_with_pytorch, export, exported
from tiny_artifact import VOCABULARY, tiny_checkpoint
from tiny_qwen3_5 import LAYERS, tiny_qwen3_5, tiny_qwen3_next
from torch.nn.functional import conv1d, pad, silu, softplus
from transformers import (
    DynamicCache,
    PreTrainedModel,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)
from transformers.models.qwen3_5 import modeling_qwen3_5

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.passes.delta_rule import fused_delta_rule
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

FIRST_ALONE = ("linear_attention", "full_attention")
"""What the first layer keeps depends on the tokens alone, whatever is evicted after it."""


@pytest.mark.parametrize(
    "model",
    [tiny_qwen3_next, lambda: tiny_qwen3_5(value_heads=2), lambda: tiny_qwen3_5(FIRST_ALONE[::-1])],
    ids=["qwen3_next", "as many heads of keys", "ends with a delta rule"],
)
def test_other_shapes_are_what_pytorch_computes(model, tmp_path):
    if model is tiny_qwen3_next or model().config.num_hidden_layers == len(LAYERS):
        compare_with_pytorch(exported(model(), tmp_path), model())
        return
    engine, wanted = exported(model(), tmp_path), model()
    tokens = random_tokens(40)
    with torch.no_grad():
        logits = wanted(torch.tensor([tokens])).logits[0, -1].numpy()
    np.testing.assert_allclose(Session(engine).append(tokens), logits, atol=1e-4)


def test_a_layer_is_one_operator_and_no_convolution(tmp_path):
    exported(tiny_qwen3_5(), tmp_path)
    details = load_manifest(tmp_path / "artifact").details
    operators = details["operators"]["prefill_segment"]
    assert operators["LinearAttention"] == details["passes"]["delta_rule"] == 4
    assert not {"Conv", "ScatterND", "Loop", "Scan", "CumSum"} & set(operators)


def test_a_rule_that_differs_is_refused(monkeypatch):
    known = modeling_qwen3_5.torch_chunk_gated_delta_rule

    def without_norms(*given, **more):
        return known(*given, **more | {"use_qk_l2norm_in_kernel": False})

    with monkeypatch.context() as patched:
        patched.setattr(modeling_qwen3_5, "torch_chunk_gated_delta_rule", without_norms)
        assert_refused(tiny_qwen3_5())
    model = tiny_qwen3_5()
    model.model.layers[0].linear_attn.activation = "gelu"
    assert_refused(model)


def assert_refused(model: PreTrainedModel) -> None:
    refused = pytest.raises(EdgeInfiniteError, match="isn't the gated delta rule behind silu")
    with refused, fused_delta_rule(model):
        pass


def test_the_rule_goes_with_experts(tmp_path):
    config = Qwen3NextConfig(**tiny_qwen3_next().config.to_dict() | {"mlp_only_layers": []})
    config.num_experts, config.num_experts_per_tok, config.moe_intermediate_size = 4, 2, 16
    model = Qwen3NextForCausalLM(config)
    checkpoint = tiny_checkpoint(tmp_path / "experts", model=model)
    assert export(checkpoint, tmp_path / "artifact") == 0
    passes = load_manifest(tmp_path / "artifact").details["passes"]
    assert passes["delta_rule"] and passes["experts"]


def test_the_text_part_of_a_checkpoint_that_reads_images(tmp_path):
    """Its logits are those of the whole, untouched, for text."""
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2}
    vision |= {"out_hidden_size": 64, "patch_size": 4, "num_position_embeddings": 16}
    text = tiny_qwen3_5().config.to_dict() | {"initializer_range": 0.2}
    torch.manual_seed(0)
    whole = Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=text, vision_config=vision))
    engine = exported(whole.to(torch.bfloat16), tmp_path)
    made = Qwen3_5ForConditionalGeneration.from_pretrained
    whole = made(tmp_path / "checkpoint", dtype=torch.float32).eval()
    tokens = random_tokens(40)
    with torch.no_grad():
        wanted = whole(torch.tensor([tokens])).logits[0, -1].numpy()
    assert len(wanted) == VOCABULARY
    np.testing.assert_allclose(Session(engine).append(tokens), wanted, atol=1e-4)
    config = json.loads((tmp_path / "checkpoint" / "config.json").read_text("utf-8"))
    assert config["model_type"] == "qwen3_5"
    assert "visual" not in dict(load_backbone(str(tmp_path / "checkpoint")).model.named_modules())


def test_after_a_long_text_the_state_is_no_farther_off_than_transformers(tmp_path):
    errors = drift(tmp_path, 20_000)
    assert errors["artifact"] <= 2 * errors["transformers"] + 1e-6, errors


def drift(folder, count: int) -> dict[str, float]:
    """The relative error of what the first layer keeps after a text, against float64."""
    engine = exported(tiny_qwen3_5(FIRST_ALONE), folder)
    tokens, session = random_tokens(count), Session(engine)
    session.append(tokens)
    model = tiny_qwen3_5(FIRST_ALONE)
    layer = model.model.layers[0]
    with torch.no_grad():
        rows = layer.input_layernorm(model.model.embed_tokens(torch.tensor([tokens])))
        cache = DynamicCache(config=model.config)
        for at in range(count):
            layer.linear_attn(rows[:, at : at + 1], cache_params=cache)
        wanted = exactly_kept(layer.linear_attn.double(), rows[0].double())
    found = {
        "artifact": torch.from_numpy(session.state.arrays["recurrent_state_0"]),
        "transformers": cache.layers[0].recurrent_states[0],
    }
    return {
        name: float((t[0] - wanted).abs().max() / wanted.abs().max()) for name, t in found.items()
    }


def exactly_kept(mixer: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """The rule as it is defined, in float64; transformers computes it in float32 always."""
    mixed = pad(mixer.in_proj_qkv(rows).T, (mixer.conv_kernel_size - 1, 0))
    mixed = silu(conv1d(mixed[None], mixer.conv1d.weight, groups=mixer.conv_dim))[0].T
    sizes = mixer.key_dim, mixer.key_dim, mixer.value_dim
    _, keys, values = mixed.split(sizes, dim=1)
    keys = keys.unflatten(1, (mixer.num_k_heads, -1))
    keys = keys / (keys.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    keys = keys.repeat_interleave(mixer.num_v_heads // mixer.num_k_heads, dim=1)
    values = values.unflatten(1, (mixer.num_v_heads, -1))
    rates = mixer.in_proj_b(rows).sigmoid()
    decays = -mixer.A_log.exp() * softplus(mixer.in_proj_a(rows) + mixer.dt_bias)
    state = torch.zeros(mixer.num_v_heads, mixer.head_k_dim, mixer.head_v_dim, dtype=rows.dtype)
    for key, value, rate, decay in zip(keys, values, rates, decays.exp(), strict=True):
        state = state * decay[:, None, None]
        known = torch.einsum("uij,ui->uj", state, key)
        state = state + torch.einsum("ui,uj->uij", key, (value - known) * rate[:, None])
    return state
