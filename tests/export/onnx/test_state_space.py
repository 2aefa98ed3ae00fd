"""Mamba-2's recurrence in an artifact: operators, shapes, and its state after long texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from recurrent_artifacts import compare_with_pytorch, exported
from ssm_drift import FIRST_ALONE, drift
from tiny_mamba2 import tiny_bamba, tiny_falcon_h1, tiny_granite_h
from transformers import PreTrainedModel
from transformers.models.granitemoehybrid import modeling_granitemoehybrid

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.passes.rms_norm import FusedGatedNorm, fuse_rms_norms
from edgeinfinite.export.onnx.passes.state_space import fused_state_space
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

SHAPES = {
    "ends with an SSM": lambda: tiny_granite_h(FIRST_ALONE[::-1]),
    "with RoPE": lambda: tiny_granite_h(FIRST_ALONE, position_embedding_type="rope"),
    "one head of keys": lambda: tiny_granite_h(FIRST_ALONE, mamba_n_groups=1),
    "with experts": lambda: tiny_granite_h(
        FIRST_ALONE, num_local_experts=4, num_experts_per_tok=2, intermediate_size=16
    ),
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


def test_after_a_long_text_the_state_is_no_farther_off_than_transformers(tmp_path):
    errors = drift(tmp_path, 5_000)
    assert errors["artifact"] <= 2 * errors["transformers"] + 1e-6, errors
