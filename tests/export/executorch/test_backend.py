"""What the back end writes: partitions, the report, no bytes twice, both ways of lowering."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from executorch.exir.lowered_backend_module import LoweredBackendModule
from tiny_artifact import VOCABULARY, tiny_artifact
from torch.export.graph_signature import OutputKind

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND
from edgeinfinite.export.executorch.backend import _trace
from edgeinfinite.export.executorch.graphs import graphs_of, state_of
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.passes.rope_tables import rope_tables
from edgeinfinite.export.executorch.report import _name
from edgeinfinite.export.executorch.sharing import share_segments
from edgeinfinite.export.graphs.shape import ModelShape
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from tiny import attached, tiny_family, tiny_llama

LAYERS = 2
ROW = 2 * 8
"""K D: the numbers of one slot of a cache."""


@pytest.fixture(scope="module", params=["none", "int8", "int4"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("executorch") / request.param
    return tiny_artifact(place, "--backend", "executorch", "--quantize", request.param)


def test_a_method_is_one_or_two_partitions(folder: Path) -> None:
    manifest = load_manifest(folder)
    partitions = {name: manifest.details[name]["partitions"] for name in manifest.graphs}
    assert partitions == {"prefill_segment": 2, "decode_step": 1, "compress_memory": 1}


def test_the_residual_stream_is_turned_for_weights_of_8_bits(folder: Path) -> None:
    manifest = load_manifest(folder)
    assert manifest.details.get("turned", False) == (folder.name == "int8")


def test_a_turned_model_whose_head_is_its_embedding_verifies(tmp_path: Path) -> None:
    model = tiny_family("Llama 3.2", vocab_size=VOCABULARY, max_position_embeddings=512)
    options = ("--backend", "executorch", "--quantize", "int8")
    folder = tiny_artifact(tmp_path / "tied", *options, model=model)
    manifest = load_manifest(folder)
    assert "model.norm.turn.weight" in manifest.quantization.unquantized
    assert manifest.details["prefill_segment"]["partitions"] == 2
    checks = verify_artifact(folder, model=str(tmp_path / "tied-checkpoint"))
    assert [check for check in checks if not check.passed] == []


def test_the_report_names_what_xnnpack_took_and_what_it_did_not(folder: Path) -> None:
    manifest = load_manifest(folder)
    details = {name: manifest.details[name] for name in manifest.graphs}
    for name in ("prefill_segment", "decode_step"):
        assert details[name]["delegated"]["aten.linear"] > 7 * LAYERS
        assert details[name]["delegated"]["aten._softmax"] == LAYERS
        assert details[name]["undelegated"]["llama.update_cache"] == 2 * LAYERS
        left = set(details[name]["undelegated"])
        assert not left & {"aten.linear", "aten.mul", "aten.view_copy", "aten.permute_copy"}
    assert details["compress_memory"]["undelegated"] == {}
    assert all(method["only_packed_constants"] for method in details.values())


@pytest.fixture(scope="module")
def lowered() -> dict[str, torch.export.ExportedProgram]:
    """The methods' programs before they are written."""
    model = attached(Geometry(sink_length=4, segment_length=32, window_length=8))
    programs = {}
    with rope_tables(model, 44):
        for graph in graphs_of(model, state_of(ModelShape.of(model))):
            programs[graph.name] = _trace(graph)
            run_passes(programs[graph.name])
    manager = lower(programs)
    return {name: manager.exported_program(name) for name in programs}


def test_caches_are_written_where_they_are_and_read_by_attention_alone(
    lowered: dict[str, torch.export.ExportedProgram],
) -> None:
    """Nothing copies a cache: the inputs themselves are what the operators write and read."""
    for name, program in lowered.items():
        caches = [n for n in program.graph.nodes if n.op == "placeholder" and "_cache_" in n.name]
        assert len(caches) == 2 * LAYERS
        written = ["llama.update_cache"] if name != "compress_memory" else []
        for cache in caches:
            users = [_name(user.target) for user in cache.users if "sym_size" not in str(user)]
            assert sorted(users) == ["executorch_call_delegate", *written]
        kinds = {spec.kind for spec in program.graph_signature.output_specs}
        assert kinds == {OutputKind.USER_OUTPUT}


def test_decode_has_no_operator_that_makes_something_as_large_as_a_cache(
    lowered: dict[str, torch.export.ExportedProgram],
) -> None:
    """Also within XNNPACK's part: what has a row for every slot are views, scores and masks."""
    modules = lowered["decode_step"].graph_module.named_modules()
    graphs = [m.original_module.graph for _, m in modules if isinstance(m, LoweredBackendModule)]
    per_slot: Counter[str] = Counter()
    for node in (*lowered["decode_step"].graph.nodes, *graphs[0].nodes):
        shape = getattr(node.meta.get("val"), "shape", ())
        fixed = math.prod(size for size in shape if isinstance(size, int))
        if node.op == "call_function" and len(shape) > fixed_axes(shape) and fixed >= ROW:
            per_slot[_name(node.target)] += 1
    assert per_slot == {"aten.view_copy": 2 * LAYERS}


def fixed_axes(shape: torch.Size) -> int:
    return sum(isinstance(size, int) for size in shape)


def test_the_memory_that_a_method_plans_has_no_room_for_a_cache(tmp_path: Path) -> None:
    slots = 20_000
    geometry = Geometry(sink_length=4, segment_length=slots, window_length=8)
    model = tiny_llama()
    model.config.max_position_embeddings = 2 * slots
    attach(model, EdgeInfiniteConfig(geometry))
    programs = {}
    with rope_tables(model, geometry.capacity):
        for graph in graphs_of(model, state_of(ModelShape.of(model))):
            programs[graph.name] = _trace(graph)
            run_passes(programs[graph.name])
    written = write_program(lower(programs), tmp_path / "model.pte")
    plans = {plan.name: plan for plan in written.executorch_program.execution_plan}
    for name in ("decode_step", "prefill_segment"):
        assert sum(plans[name].non_const_buffer_sizes) < slots * ROW * 4


def test_the_manifest_names_quantized_and_unquantized_weights(folder: Path) -> None:
    info = load_manifest(folder).quantization
    kinds = Counter(kind.split(",")[0] for kind in info.quantized.values())
    wanted = {
        "none": {},
        "int8": {"int8 symmetric": 7 * LAYERS + 2},
        # 6 bits, which v_proj and down_proj are to get, become 8.
        "int4": {"int4 symmetric g32": 5 * LAYERS, "int8 symmetric": 2 * LAYERS + 2},
    }
    assert kinds == wanted[info.recipe]
    assert not set(info.quantized) & set(info.unquantized)
    assert "model.norm.weight" in info.unquantized


def test_verify_repeats_the_parity_check(folder: Path) -> None:
    checkpoint = folder.with_name(f"{folder.name}-checkpoint")
    checks = {check.check: check for check in verify_artifact(folder, model=str(checkpoint))}
    assert all(check.passed for check in checks.values()), checks
    assert {"io:prefill_segment", "io:decode_step", "io:compress_memory"} <= set(checks)
    if load_manifest(folder).quantization.recipe == "none":
        assert checks["parity:logits"].value < 1e-4


def test_executorchs_own_way_of_lowering_gives_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowering: Any = importlib.import_module("edgeinfinite.export.executorch.lowering")
    monkeypatch.setattr(lowering, "unknown_operators", lambda _: {"aten.something.default"})
    artifact = tiny_artifact(tmp_path / "slow", "--backend", "executorch", layers=1, anew=True)
    assert load_manifest(artifact).parity["parity:logits"] < 1e-4


def test_equal_bytes_are_stored_once(folder: Path) -> None:
    before = (folder / "model.pte").read_bytes()
    assert share_segments(folder / "model.pte") == 0  # the tiny model has nothing to share
    assert (folder / "model.pte").read_bytes() == before


def test_a_program_that_has_no_constants_of_its_own_is_written_as_it_is(tmp_path: Path) -> None:
    class Layer(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x)

    layer = Layer(600, 600).requires_grad_(False)
    program = torch.export.export(layer, (torch.randn(1, 600),), strict=False)
    write_program(lower({"part": program}), tmp_path / "part.pte")
    assert share_segments(tmp_path / "part.pte") == 0
    assert (tmp_path / "part.pte").stat().st_size > 600 * 600 * 4


def test_a_tied_embedding_in_int8_is_stored_once(tmp_path: Path) -> None:
    """1.5 MB of embedding: once, and the program computes as before."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=24_000, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
        max_position_embeddings=64,
    )  # fmt: skip
    geometry = Geometry(sink_length=2, segment_length=8, window_length=4)
    model = attach(LlamaForCausalLM(config).eval(), EdgeInfiniteConfig(geometry))
    BACKEND.export_graphs(
        WeightRequest(model, recipe_named("int8")), tmp_path, "cpu", lambda *_: None
    )
    size = (tmp_path / "model.pte").stat().st_size
    assert 24_000 * 64 < size < 1.3 * 24_000 * 64
    assert _loads(tmp_path / "model.pte")


def _loads(path: Path) -> bool:
    from edgeinfinite.runtime_py.engines.executorch_engine import _executorch

    _, runtime = _executorch()
    program = runtime._load_program(str(path))
    decode = program.load_method("decode_step")
    cache = [torch.zeros(1, 14, 1, 32) for _ in range(2)]
    memory = [torch.zeros(1, 1, 32, 32), torch.zeros(1, 1, 32), torch.zeros(1)]
    logits = decode.call([torch.tensor([[5]]), torch.tensor([0]), *cache, *memory])[0]
    return bool(np.isfinite(logits.numpy()).all() and logits.abs().sum() > 0)


def test_the_model_is_restored_after_the_export(tmp_path: Path) -> None:
    model = attached(Geometry(sink_length=2, segment_length=8, window_length=4))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    rotary = model.get_decoder().rotary_emb
    BACKEND.export_graphs(
        WeightRequest(model, recipe_named("int4")), tmp_path, "cpu", lambda *_: None
    )
    assert model.get_decoder().rotary_emb is rotary
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
