"""Each pass of the ONNX back end is applied, and changes no number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.graphs.state import cache_outputs
from edgeinfinite.export.graphs.tokens import PrefillSegment
from edgeinfinite.export.onnx.files import WeightsFile
from edgeinfinite.export.onnx.passes import shared_copy
from edgeinfinite.export.onnx.passes.half_precision import halve_constants, halve_scales
from edgeinfinite.export.onnx.passes.last_token import last_token_only
from edgeinfinite.export.onnx.passes.memory_gate import absorb_gates
from edgeinfinite.export.onnx.passes.merge_linears import merge_linears
from edgeinfinite.export.onnx.passes.narrow_codes import narrow_codes
from edgeinfinite.export.onnx.passes.quantized_weights import quantize_weights, swap_quantized
from edgeinfinite.export.onnx.passes.rms_norm import FusedRmsNorm, fuse_rms_norms
from edgeinfinite.export.onnx.passes.rotary import fused_rotary
from edgeinfinite.export.onnx.passes.simplify_shapes import simplify_shapes
from edgeinfinite.export.onnx.passes.skip_norm import fuse_skip_norms
from edgeinfinite.export.onnx.passes.split_head import split_head
from edgeinfinite.export.onnx.passes.tied_head import UntransposedLinear, untransposed_head
from edgeinfinite.export.onnx.state import OnnxState
from edgeinfinite.export.onnx.trace import trace
from edgeinfinite.export.recipes import Recipe, Rule, WeightFormat, recipe_named
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.state import TensorState
from tiny import attached

GEOMETRY = Geometry(segment_length=16, sink_length=4, window_length=4)
LENGTH, TOKENS = 5, 6


def traced(model: PreTrainedModel, prepare: Callable[[PreTrainedModel], object]) -> ir.Model:
    """The graph of a model with one thing changed."""
    swapped = shared_copy(model)
    gates = absorb_gates(swapped)
    prepare(swapped)
    state = ModelShape.of(model).state()
    new_state = partial(OnnxState, gates=gates)
    return trace(PrefillSegment(swapped, new_state, state, cache_outputs(state)).eval())


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return attached(GEOMETRY, layers=2)


@pytest.fixture(scope="module")
def inputs(model) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {"tokens": random.integers(3, 90, (1, TOKENS))}
    for spec in ModelShape.of(model).state():
        shape = tuple(int(size) for size in spec.shape)
        arrays[spec.name] = np.abs(random.standard_normal(shape)).astype(spec.dtype)
    arrays["length"][:], arrays["has_memory"][:] = LENGTH, 1.0
    return arrays


@pytest.fixture(scope="module")
def wanted(model, inputs) -> dict[str, np.ndarray]:
    """What PyTorch computes."""
    return in_pytorch(model, inputs)


def in_pytorch(model: PreTrainedModel, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    tensors = {name: torch.from_numpy(array.copy()) for name, array in inputs.items()}
    caches = {kind: [tensors[f"{kind}_cache_{i}"] for i in range(2)] for kind in "kv"}
    counters = tensors["memory"], tensors["memory_norm"], tensors["has_memory"]
    state = TensorState(tensors["length"], caches["k"], caches["v"], *counters)
    with torch.no_grad():
        logits = run_tokens(model, tensors["tokens"], state)
    names = [f"{kind}_cache_{i}" for kind in "kv" for i in range(2)]
    return {"logits": logits[0].numpy()} | {f"{name}_out": tensors[name].numpy() for name in names}


def in_onnxruntime(
    graph: ir.Model, inputs: dict[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray]:
    ir.save(graph, folder / "graph.onnx")
    options = onnxruntime.SessionOptions()
    # The least that folds constants: MatMulNBits takes scales only as constants.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(folder / "graph.onnx", options)
    feeds = {value.name: inputs[value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def assert_equal(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert found.keys() == wanted.keys()
    used = LENGTH + TOKENS
    for name, array in found.items():
        slots = np.s_[:, :, :used] if "cache" in name else np.s_[:]
        np.testing.assert_allclose(array[slots], wanted[name][slots], atol=3e-5, rtol=1e-4)


def operators(graph: ir.Model) -> list[str]:
    return [node.op_type for node in graph.graph]


def test_flat_gates_alone_compute_what_pytorch_computes(model, inputs, wanted, tmp_path):
    assert_equal(in_onnxruntime(traced(model, lambda _: None), inputs, tmp_path), wanted)


@pytest.mark.parametrize("has_memory", [0.0, 1.0])
def test_rms_norms_become_one_node_each(model, inputs, tmp_path, has_memory):
    given = inputs | {"has_memory": np.array([has_memory], np.float32)}
    graph = traced(model, fuse_rms_norms)
    assert operators(graph).count("SimplifiedLayerNormalization") == 5
    assert "ReduceMean" not in operators(graph)
    assert_equal(in_onnxruntime(graph, given, tmp_path), in_pytorch(model, given))


def test_a_norm_that_adds_one_to_its_weight_is_known_by_its_numbers():
    class GemmaRMSNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.eps = torch.nn.Parameter(torch.randn(8)), 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)

    holder = torch.nn.ModuleDict({"norm": GemmaRMSNorm()})
    factor = 1 + holder["norm"].weight
    assert fuse_rms_norms(holder) == 1
    assert isinstance(holder["norm"], FusedRmsNorm)
    torch.testing.assert_close(holder["norm"].weight, factor)


def test_a_norm_that_does_something_else_is_left_alone():
    class OddRMSNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.eps = torch.nn.Parameter(torch.ones(8)), 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    holder = torch.nn.ModuleDict({"norm": OddRMSNorm()})
    assert fuse_rms_norms(holder) == 0


def test_rotary_embedding_becomes_one_node_for_q_and_one_for_k(model, inputs, wanted, tmp_path):
    with fused_rotary(model) as fused:
        graph = traced(model, lambda _: None)
    assert fused
    assert operators(graph).count("RotaryEmbedding") == 4
    assert "Neg" not in operators(graph)
    assert_equal(in_onnxruntime(graph, inputs, tmp_path), wanted)


def test_the_last_mlp_runs_for_the_last_token_only(model, inputs, wanted, tmp_path):
    graph = traced(model, last_token_only)
    assert_equal(in_onnxruntime(graph, inputs, tmp_path), wanted)
    rows = [value.shape[1] for node in graph.graph for value in node.outputs if _is_mlp(value)]
    assert rows[-1] == 1
    assert rows[0] != 1


def _is_mlp(value: ir.Value) -> bool:
    return value.shape is not None and len(value.shape) == 3 and value.shape[2] == 48


def test_a_tied_float_head_shares_the_embeddings_table(inputs, tmp_path):
    model = attached(GEOMETRY)
    model.lm_head.weight = model.model.embed_tokens.weight
    graph = traced(model, untransposed_head)
    tables = [v for v in graph.graph.initializers.values() if v.const_value.size == 97 * 32]
    assert len(tables) == 1
    assert_equal(in_onnxruntime(graph, inputs, tmp_path), in_pytorch(model, inputs))
    assert isinstance(UntransposedLinear(model.lm_head), torch.nn.Module)


def test_rewrites_of_the_finished_graph_change_no_number(model, inputs, tmp_path):
    """Shapes, residual additions with their norms, merged linears, half scales: one by one."""
    weights = quantize_weights(model, recipe_named("int4"))

    def prepare(swapped: PreTrainedModel) -> None:
        swap_quantized(swapped, weights)
        fuse_rms_norms(swapped)

    with fused_rotary(model):
        graph = traced(model, prepare)
    before = in_onnxruntime(graph, inputs, tmp_path)
    for rewrite in (simplify_shapes, fuse_skip_norms, merge_linears, halve_scales):
        assert rewrite(graph) > 0, rewrite.__name__
        assert_equal(in_onnxruntime(graph, inputs, tmp_path), before)
    assert "Transpose" not in operators(graph)
    # V has more bits than Q and K; down_proj has 48 inputs: no group.
    assert operators(graph).count("MatMulNBits") == 2 * 4 + 1


def test_constants_that_half_precision_holds_exactly_are_stored_in_it(tmp_path):
    random = np.random.default_rng(0)
    inexact = random.standard_normal((64, 64)).astype(np.float32)
    constants = {"inexact": inexact, "exact": inexact.astype(np.float16).astype(np.float32)}
    graph = ir.from_onnx_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[3, 64] x) => (float[3, 64] y, float[3, 64] z) {
            once = MatMul(x, exact)
            y = MatMul(once, exact)
            z = MatMul(x, inexact)
        }""",
        initializers=[ir.tensor(array, name=name) for name, array in constants.items()],
    )
    inputs = {"x": random.standard_normal((3, 64)).astype(np.float32)}
    before = in_onnxruntime(graph, inputs, tmp_path)
    assert halve_constants(graph) == 1
    assert operators(graph).count("Cast") == 1
    types = {value.const_value.dtype for value in graph.graph.initializers.values()}
    assert types == {ir.DataType.FLOAT16, ir.DataType.FLOAT}
    after = in_onnxruntime(graph, inputs, tmp_path)
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("bits", [5, 6])
@pytest.mark.parametrize("symmetric", [True, False])
def test_codes_of_5_and_6_bits_are_stored_so_and_give_the_same_numbers(
    model, inputs, tmp_path, bits, symmetric
):
    rules = (Rule("gate\\.|norm|embed|head", None), Rule("w", WeightFormat(bits, 32, symmetric)))
    weights = quantize_weights(model, Recipe("test", rules))
    graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
    before = in_onnxruntime(graph, inputs, tmp_path)
    assert narrow_codes(graph) == len(weights) == 2 * 6
    after = in_onnxruntime(graph, inputs, tmp_path)
    assert all(np.array_equal(after[name], before[name]) for name in before)
    sizes = {name: v.const_value.nbytes for name, v in graph.graph.initializers.items()}
    planes = sum(size for name, size in sizes.items() if name.endswith(("_low", "_high")))
    codes = sum(weight.codes.numel() for weight in weights.values())
    assert planes == codes * bits // 8


@pytest.mark.parametrize("bits", [5, 6])
def test_a_narrow_embedding_shares_its_bytes_with_the_tied_head(inputs, tmp_path, bits):
    model = attached(GEOMETRY)
    model.lm_head.weight = model.model.embed_tokens.weight
    weights = quantize_weights(model, Recipe("test", (Rule("embed", WeightFormat(bits)),)))
    graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
    for node in graph.graph:
        if node.op_type == "MatMulNBits":
            node.attributes["accuracy_level"] = ir.AttrInt64("accuracy_level", 1)
    halve_scales(graph)
    narrow_codes(graph)
    table = torch.nn.Parameter(next(iter(weights.values())).dequantized())
    reference = shared_copy(model, {id(model.lm_head.weight): table})
    assert_equal(in_onnxruntime(graph, inputs, tmp_path), in_pytorch(reference, inputs))
    stored = {name: v.const_value.tobytes() for name, v in graph.graph.initializers.items()}
    for plane in ("_low", "_high"):  # the file holds equal bytes once
        head = next(data for name, data in stored.items() if name.endswith(plane))
        assert list(stored.values()).count(head) == 2


@pytest.mark.parametrize("bits", [4, 5, 6, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_head_in_parts_gives_the_same_bits_and_reads_the_same_bytes(
    inputs, tmp_path, monkeypatch, bits, symmetric
):
    monkeypatch.setattr("edgeinfinite.export.onnx.passes.split_head.LARGE_BYTES", 1000)
    monkeypatch.setattr("edgeinfinite.export.onnx.passes.split_head.PART_BYTES", 1000)
    model = attached(GEOMETRY)
    rules = (Rule("lm_head", WeightFormat(bits, 32, symmetric)),)
    weights = quantize_weights(model, Recipe("test", rules))
    graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
    halve_scales(graph)
    narrow_codes(graph)
    sizes = []
    for name in ("whole", "split"):
        (tmp_path / name).mkdir()
        before = in_onnxruntime(graph, inputs, tmp_path / name)
        with WeightsFile(tmp_path / name) as file:
            file.save(graph.clone(), "stored.onnx")
        sizes.append((tmp_path / name / "weights.data").stat().st_size)
        if name == "whole":
            wanted = before
            assert split_head(graph) == 2
            RemoveUnusedNodesPass()(graph)
    assert all(np.array_equal(before[name], wanted[name]) for name in wanted)
    assert operators(graph).count("MatMulNBits") == 2
    assert sizes[1] <= sizes[0]


def test_a_large_embedding_looks_up_what_gather_block_quantized_looks_up(
    model, inputs, tmp_path, monkeypatch
):
    weights = quantize_weights(model, Recipe("test", (Rule("embed", WeightFormat(8)),)))
    found = []
    for limit in (2**30, 0):
        monkeypatch.setattr("edgeinfinite.export.onnx.passes.split_head.LARGE_BYTES", limit)
        graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
        assert ("GatherBlockQuantized" in operators(graph)) == (limit > 0)
        found.append(in_onnxruntime(graph, inputs, tmp_path))
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_codes_that_use_all_8_bits_stay_as_they_are(model):
    rules = (Rule("gate\\.|norm|embed|head", None), Rule("weight", WeightFormat(8)))
    weights = quantize_weights(model, Recipe("test", rules))
    graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
    before = operators(graph)
    assert narrow_codes(graph) == 0
    assert operators(graph) == before and graph.graph.opset_imports[""] == 20


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_quantized_graphs_compute_with_the_dequantized_weights(
    model, inputs, tmp_path, bits, symmetric
):
    """With exact activations (accuracy level 1) nothing but float rounding is left."""
    rules = (Rule("gate\\.|norm", None), Rule("weight", WeightFormat(bits, 32, symmetric)))
    weights = quantize_weights(model, Recipe("test", rules))
    assert len(weights) == 2 * 6 + 2
    graph = traced(model, lambda swapped: swap_quantized(swapped, weights))
    for node in graph.graph:
        if node.op_type == "MatMulNBits":
            node.attributes["accuracy_level"] = ir.AttrInt64("accuracy_level", 1)
    dequantized = {
        id(model.get_parameter(name)): torch.nn.Parameter(weight.dequantized())
        for name, weight in weights.items()
    }
    reference = in_pytorch(shared_copy(model, dequantized), inputs)
    assert_equal(in_onnxruntime(graph, inputs, tmp_path), reference)
