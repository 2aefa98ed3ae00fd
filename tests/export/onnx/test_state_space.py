"""Mamba-2's recurrence in an artifact: operators, shapes, and its state after long texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from recurrent_artifacts import compare_with_pytorch, export, exported
from tiny_artifact import tiny_checkpoint
from tiny_mamba2 import tiny_bamba, tiny_falcon_h1, tiny_granite_h
from torch.nn.functional import conv1d, pad, silu, softplus
from transformers import DynamicCache, PreTrainedModel
from transformers.models.granitemoehybrid import modeling_granitemoehybrid

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.passes.rms_norm import FusedGatedNorm, fuse_rms_norms
from edgeinfinite.export.onnx.passes.state_space import fused_state_space
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

FIRST_ALONE = ("linear_attention", "full_attention")
"""What the first layer keeps depends on the tokens alone, whatever is evicted after it."""

SHAPES = {
    "ends with an SSM": lambda: tiny_granite_h(FIRST_ALONE[::-1]),
    "with RoPE": lambda: tiny_granite_h(FIRST_ALONE, position_embedding_type="rope"),
    "one head of keys": lambda: tiny_granite_h(FIRST_ALONE, mamba_n_groups=1),
    "no bias": lambda: tiny_granite_h(FIRST_ALONE, mamba_conv_bias=False),
    "norm, then gate": lambda: tiny_falcon_h1(mamba_rms_norm=True, mamba_norm_before_gate=True),
    "gate, then norm": lambda: tiny_falcon_h1(mamba_rms_norm=True, mamba_norm_before_gate=False),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes_are_what_transformers_computes(shape, tmp_path):
    """Within the cache, from the untouched model; evictions are compared in the parity check."""
    tokens, session = random_tokens(40), Session(exported(SHAPES[shape](), tmp_path))
    with torch.no_grad():
        wanted = SHAPES[shape]()(torch.tensor([tokens])).logits[0].numpy()
    for start, end in ((0, 1), (1, 30), (30, 31), (31, 40)):
        found = session.append(tokens[start:end])
        np.testing.assert_allclose(found, wanted[end - 1], atol=1e-4)


@pytest.mark.parametrize("made", [tiny_granite_h, tiny_bamba, tiny_falcon_h1])
def test_recall_slots_and_states_go_together(made, tmp_path):
    options = ("--recall-slots", "16", "--scorer", UNTRAINED_SCORER)
    compare_with_pytorch(exported(made(), tmp_path, *options), made(), UNTRAINED_SCORER)


def test_an_ssm_is_one_operator_and_no_convolution(tmp_path):
    exported(tiny_granite_h(), tmp_path)
    details = load_manifest(tmp_path / "artifact").details
    operators = details["operators"]["prefill_segment"]
    assert operators["LinearAttention"] == details["passes"]["state_space"] == 4
    assert operators["Softplus"] == 4  # without the comparison of PyTorch's
    assert not {"Conv", "ScatterND", "Loop", "Scan", "CumSum", "Where", "Pow"} & set(operators)


@pytest.mark.parametrize(
    ("made", "first", "groups"),
    [
        (tiny_granite_h, True, 2),
        (lambda: tiny_granite_h(mamba_n_groups=1), True, 1),
        (lambda: tiny_falcon_h1(mamba_rms_norm=True), False, 2),
        (lambda: tiny_falcon_h1(mamba_rms_norm=True, mamba_norm_before_gate=False), True, 2),
    ],
)
def test_a_norm_with_a_gate_is_found_by_what_it_computes(made, first, groups):
    model = made()
    fuse_rms_norms(model)
    found = [part for part in model.modules() if isinstance(part, FusedGatedNorm)]
    assert found and {(part.gate_first, part.groups) for part in found} == {(first, groups)}


def test_a_recurrence_that_differs_is_refused(monkeypatch):
    known = modeling_granitemoehybrid.mamba2_chunk_scan

    def without_skip(*given, **more):
        return known(*given, **more | {"D": None})

    with monkeypatch.context() as patched:
        patched.setattr(modeling_granitemoehybrid, "mamba2_chunk_scan", without_skip)
        assert_refused(tiny_granite_h())
    model = tiny_granite_h()
    model.model.layers[0].mamba.activation = "gelu"
    assert_refused(model)


def assert_refused(model: PreTrainedModel) -> None:
    refused = pytest.raises(EdgeInfiniteError, match="isn't Mamba-2's recurrence behind silu")
    with refused, fused_state_space(model):
        pass


def refusal(model: PreTrainedModel, folder, capsys, *options: str) -> str:
    checkpoint = tiny_checkpoint(folder / "checkpoint", model=model)
    assert export(checkpoint, folder / "artifact", *options) == 2
    assert not (folder / "artifact").exists()
    return capsys.readouterr().err.splitlines()[-1]


def test_experts_stay_refused_by_name(tmp_path, capsys):
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 16}
    said = refusal(tiny_granite_h(**experts), tmp_path, capsys)
    assert "its layers have experts (GraniteMoeHybridExperts)" in said


@pytest.mark.parametrize("made", [tiny_granite_h, tiny_falcon_h1])
def test_executorch_refuses_the_state_by_name(made, tmp_path, capsys):
    said = refusal(made(), tmp_path, capsys, "--backend", "executorch")
    assert "can't carry on the recurrent_state" in said and "use --backend onnx" in said


def test_after_a_long_text_the_state_is_no_farther_off_than_transformers(tmp_path):
    errors = drift(tmp_path, 5_000)
    assert errors["artifact"] <= 2 * errors["transformers"] + 1e-6, errors


def drift(folder, count: int) -> dict[str, float]:
    """The relative error of what the first layer keeps after a text, against float64."""
    tokens, session = random_tokens(count), Session(exported(tiny_granite_h(FIRST_ALONE), folder))
    session.append(tokens)
    model = tiny_granite_h(FIRST_ALONE)
    layer = model.model.layers[0]
    with torch.no_grad():
        rows = model.model.embed_tokens(torch.tensor([tokens])) * model.config.embedding_multiplier
        rows = layer.input_layernorm(rows)
        cache = DynamicCache(config=model.config)
        for at in range(count):
            layer.mamba(rows[:, at : at + 1], cache_params=cache)
        wanted = exactly_kept(layer.mamba.double(), rows[0].double())
    found = {
        "artifact": torch.from_numpy(session.state.arrays["recurrent_state_0"]),
        "transformers": cache.layers[0].recurrent_states[0].transpose(2, 3),
    }
    return {
        name: float((t[0] - wanted).abs().max() / wanted.abs().max()) for name, t in found.items()
    }


def exactly_kept(mixer: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """`[U, I, J]` by the recurrence as it is defined, in float64; transformers keeps float32."""
    sizes = mixer.intermediate_size, mixer.conv_dim, mixer.num_heads
    _, mixed, steps = mixer.in_proj(rows).split(sizes, dim=1)
    mixed = pad(mixed.T, (mixer.conv_kernel_size - 1, 0))[None]
    mixed = conv1d(mixed, mixer.conv1d.weight, mixer.conv1d.bias, groups=mixer.conv_dim)
    of_key = mixer.n_groups * mixer.ssm_state_size
    values, keys, _ = silu(mixed)[0].T.split((mixer.intermediate_size, of_key, of_key), dim=1)
    steps = softplus(steps + mixer.dt_bias)
    decays = (-mixer.A_log.exp() * steps).exp()
    values = values.unflatten(1, (mixer.num_heads, -1)) * steps.unsqueeze(-1)
    keys = keys.unflatten(1, (mixer.n_groups, -1))
    keys = keys.repeat_interleave(mixer.num_heads // mixer.n_groups, dim=1)
    state = torch.zeros(mixer.num_heads, mixer.ssm_state_size, mixer.head_dim, dtype=rows.dtype)
    for key, value, decay in zip(keys, values, decays, strict=True):
        state = state * decay[:, None, None] + key.unsqueeze(-1) * value.unsqueeze(1)
    return state
