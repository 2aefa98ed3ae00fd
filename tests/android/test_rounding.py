from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import rounding
import sessions
from byte_checkpoints import byte_checkpoint

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["reencode-int4", "reencode-int8"])
def recorded(request, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("rounding")
    fixture = next(one for one in sessions.fixtures() if one.name == request.param)
    checkpoint = byte_checkpoint(scratch / "tiny")
    sessions._write(fixture, checkpoint, scratch / fixture.name, scratch)
    return scratch / fixture.name


def test_the_same_kernels_stay_far_below_the_fixtures_tolerance(recorded):
    limit = json.loads((recorded / "steps.json").read_text(encoding="utf-8"))["tolerance"]
    assert rounding.largest_difference(recorded, recorded / "artifact") < limit / 10


@pytest.mark.parametrize("layer", ["self_attn.q_proj", "mlp.gate_proj"])
def test_scales_wrong_by_five_percent_are_not_taken_for_rounding(recorded, layer, tmp_path):
    limit = json.loads((recorded / "steps.json").read_text(encoding="utf-8"))["tolerance"]
    wrong = tmp_path / "wrong"
    shutil.copytree(recorded / "artifact", wrong)
    for file in (wrong / "prefill_segment.onnx", wrong / "decode_step.onnx"):
        model = onnx.load(file)
        name = f"model.model.layers.0.{layer}.scales_merged_half"
        (scales,) = (one for one in model.graph.initializer if one.name == name)
        values = (onnx.numpy_helper.to_array(scales) * 1.05).astype(np.float32)
        scales.CopyFrom(onnx.numpy_helper.from_array(values, name))
        onnx.save(model, file)
        rounding.renew_checksum(wrong, file)
    assert rounding.largest_difference(recorded, wrong) > limit
