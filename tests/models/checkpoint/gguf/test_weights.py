"""The integers of a GGUF file, found again behind transformers' floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

gguf = pytest.importorskip("gguf")

from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter  # noqa: E402
from gguf.quants import dequantize, quantize  # noqa: E402

from edgeinfinite.export.onnx import quantize as onnx_quantize  # noqa: E402
from edgeinfinite.export.recipes import WeightFormat  # noqa: E402
from edgeinfinite.models.checkpoint.gguf.weights import read_gguf_weights  # noqa: E402
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone  # noqa: E402

ROWS, COLUMNS = 12, 512
KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
BITS = (4, 4, 5, 5, 8, 4, 5, 6)


def blocks(kind: str, seed: int = 0) -> np.ndarray:
    """A matrix as the file holds it; the K formats, which gguf can't make, from random bytes."""
    random = np.random.default_rng(seed)
    if not kind.endswith("K"):
        weight = random.standard_normal((ROWS, COLUMNS)).astype(np.float32)
        return quantize(weight, GGMLQuantizationType[kind])
    size, halves = {"Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}[kind]
    data = random.integers(0, 256, (ROWS * COLUMNS // 256, size), dtype=np.uint8)
    for start in halves:
        data[:, start : start + 2] = (
            random.uniform(0.001, 0.01, (len(data), 1)).astype(np.float16).view(np.uint8)
        )
    return data.reshape(ROWS, -1)


def write(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> Path:
    writer = GGUFWriter(path, "llama")
    for name, (kind, data) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def model_of(weights: dict[str, np.ndarray]) -> nn.Module:
    model = nn.Module()
    for name, weight in weights.items():
        model.register_parameter(name, nn.Parameter(torch.from_numpy(weight)))
    return model


@pytest.mark.parametrize(("kind", "bits"), list(zip(KINDS, BITS, strict=True)))
def test_every_format_is_read_exactly(kind, bits, tmp_path):
    data = blocks(kind)
    path = write(tmp_path / "m.gguf", {"blk.0.attn_q.weight": (kind, data)})
    weight = dequantize(data, GGMLQuantizationType[kind])
    found = read_gguf_weights(GGUFReader(path).tensors, model_of({"q": weight}))["q"]
    assert (found.bits, found.group) == (bits, 16 if kind == "Q6_K" else 32)
    assert int(found.codes.max()) < 2**bits and len(found.codes.unique()) > 2 ** (bits - 1)
    np.testing.assert_allclose(found.dequantized().numpy(), weight, rtol=1e-5, atol=1e-6)


def test_rows_of_q_and_k_are_found_in_the_order_that_transformers_gives_them(tmp_path):
    data = blocks("Q4_0")
    path = write(tmp_path / "m.gguf", {"blk.0.attn_q.weight": ("Q4_0", data)})
    order = np.random.default_rng(1).permutation(ROWS)
    weight = dequantize(data, GGMLQuantizationType.Q4_0)[order]
    found = read_gguf_weights(GGUFReader(path).tensors, model_of({"q": weight}))["q"]
    assert np.array_equal(found.dequantized().numpy(), weight)


def test_tensors_of_equal_shape_are_told_apart(tmp_path):
    tensors = {name: ("Q8_0", blocks("Q8_0", seed)) for seed, name in enumerate("abc")}
    path = write(tmp_path / "m.gguf", tensors)
    weights = {
        f"{name}_": dequantize(data, GGMLQuantizationType.Q8_0)
        for name, (_, data) in reversed(tensors.items())
    }
    found = read_gguf_weights(GGUFReader(path).tensors, model_of(weights))
    assert set(found) == set(weights)
    for name, weight in weights.items():
        assert np.array_equal(found[name].dequantized().numpy(), weight)


@pytest.mark.parametrize("second", ["Q4_0", "Q4_1", "Q8_0"])
def test_a_parameter_of_two_tensors_has_the_integers_of_both(second, tmp_path):
    """If they have one format; else it is rounded anew."""
    kinds = {"gate": "Q4_0", "up": second}
    data = {name: blocks(kind, seed) for seed, (name, kind) in enumerate(kinds.items())}
    path = write(tmp_path / "m.gguf", {name: (kinds[name], data[name]) for name in kinds})
    halves = [dequantize(data[name], GGMLQuantizationType[kind]) for name, kind in kinds.items()]
    model = model_of({"joined": np.concatenate(halves)})
    found = read_gguf_weights(GGUFReader(path).tensors, model)
    counted = read_gguf_weights(GGUFReader(path).tensors, model, codes=False)
    if second != "Q4_0":
        assert found == counted == {}
        return
    assert np.array_equal(found["joined"].dequantized().numpy(), np.concatenate(halves))
    assert torch.equal(counted["joined"].scales, found["joined"].scales)
    assert counted["joined"].codes.shape == found["joined"].codes.shape


def test_parameters_that_are_not_in_the_file_are_left_out(tmp_path):
    data = blocks("Q8_0")
    path = write(
        tmp_path / "m.gguf",
        {"a": ("Q8_0", data), "b": ("F32", np.ones((4, 64), np.float32))},
    )
    changed = dequantize(data, GGMLQuantizationType.Q8_0).copy()
    changed[-1] += 1
    model = model_of({"changed": changed, "plain": np.ones((4, 64), np.float32)})
    assert read_gguf_weights(GGUFReader(path).tensors, model) == {}


@pytest.mark.slow
def test_taking_over_the_demo_models_file_gives_what_rounding_its_floats_gave():
    """It lies on the groups of its file (Q4_1): its artifact is the same, bit for bit."""
    backbone = load_backbone(DEMO_MODEL)
    assert set(backbone.integers) == {
        n for n, p in backbone.model.named_parameters() if p.dim() == 2
    }
    form = WeightFormat(4, symmetric=False)
    for name in ("model.layers.0.self_attn.q_proj.weight", "model.layers.17.mlp.down_proj.weight"):
        taken = onnx_quantize.take_over(backbone.integers[name]).widened()
        rounded = onnx_quantize.quantize(
            backbone.model.get_parameter(name), form, offsets=True
        ).widened()
        for part in ("codes", "scales", "zeros"):
            assert torch.equal(getattr(taken, part), getattr(rounded, part))
