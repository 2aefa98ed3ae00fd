"""A large LM head is several products: the same numbers, the same bytes, faults are found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from parity_faults import FaultCheck
from tiny_artifact import VOCABULARY, tiny_artifact
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from edgeinfinite.artifact.looked_up import LOOKED_UP, WEIGHTS_FILE, tables_of
from edgeinfinite.artifact.manifest import read_manifest, write_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.passes import split_head
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.mapped_tables import MappedTables

PARTS = 5
"""Four of 64 words and one of the last two."""


def model(*, tied: bool) -> PreTrainedModel:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=tied,
    )
    return LlamaForCausalLM(config)


@pytest.fixture(scope="module", params=["tied", "of its own"])
def artifacts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """One whose head is one product, as of every export so far, and one whose head is split."""
    folder = tmp_path_factory.mktemp("split")
    tied = request.param == "tied"
    whole = tiny_artifact(folder / "whole", "--quantize", "int4", model=model(tied=tied))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_head, "LARGE_BYTES", 8192)
        patch.setattr(split_head, "PART_BYTES", 4096)
        split = tiny_artifact(folder / "split", "--quantize", "int4", model=model(tied=tied))
    return whole, split


def graph(artifact: Path, name: str = "prefill_segment") -> onnx.GraphProto:
    return onnx.load(artifact / f"{name}.onnx", load_external_data=False).graph


def parts(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    return [n for n in graph.node if n.op_type == "MatMulNBits" and "lm_head" in n.input[1]]


@pytest.mark.parametrize("name", ["prefill_segment", "decode_step"])
def test_only_a_large_head_is_split(artifacts: tuple[Path, Path], name: str) -> None:
    whole, split = artifacts
    assert len(parts(graph(whole, name))) == 1
    assert len(parts(graph(split, name))) == PARTS
    last = parts(graph(split, name))[-1]
    (rows,) = [a.i for a in last.attribute if a.name == "N"]
    assert rows == VOCABULARY % 64


def test_the_logits_are_those_of_one_product_bit_for_bit(artifacts: tuple[Path, Path]) -> None:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, 21)
    made = []
    for artifact in artifacts:
        engine = load_engine(artifact, threads=1, every_graph=True)
        state = engine.new_state()
        logits = [engine.prefill_segment(tokens[None, :13], state)]
        state.length[...] += 13
        for token in tokens[13:]:
            logits.append(engine.decode_step(np.array([[token]]), state))
            state.length[...] += 1
        made.append(np.stack(logits))
    assert made[0].shape[1] == VOCABULARY and np.isfinite(made[0]).all()
    assert np.array_equal(*made)


def test_the_pages_of_a_large_embedding_are_given_back(
    artifacts: tuple[Path, Path], tmp_path: Path
) -> None:
    """The engine maps what is looked up; the test of the logits holds that it reads the same."""
    whole, split = (read_manifest(artifact) for artifact in artifacts)
    assert LOOKED_UP not in whole.details
    names = [table.name for table in tables_of(split.details)]
    assert names and all("embed_tokens" in name for name in names)
    # A copy, which no other test's engine maps.
    weights = str(shutil.copy(artifacts[1] / WEIGHTS_FILE, tmp_path))
    tables = MappedTables(onnxruntime, Path(weights), tables_of(split.details))
    kept = [tables._array(table).sum() for table in tables_of(split.details)]  # reads every page
    tables.looked_up(127)
    assert mapped_kilobytes(weights) > 0
    tables.looked_up(1)
    assert mapped_kilobytes(weights) == 0
    again = [tables._array(table).sum() for table in tables_of(split.details)]
    assert again == kept


def mapped_kilobytes(path: str) -> int:
    """Of a file, as this process holds it in memory."""
    if not Path("/proc/self/smaps").exists():
        pytest.skip("only Linux says what is mapped")
    found, here = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):
            here = line.endswith(path)
        elif here and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 10**9},
        {"offset": -1},
        {"shape": [10**6, 64]},
        {"shape": []},
        {"dtype": "complex64"},
        {"offset": 10**30},
        {"shape": [10**20, 64]},
        {"name": 3},
    ],
    ids=str,
)
def test_a_table_that_is_not_there_is_refused(
    artifacts: tuple[Path, Path], change: dict[str, object], tmp_path: Path
) -> None:
    broken = tmp_path / "artifact"
    shutil.copytree(artifacts[1], broken)
    manifest = read_manifest(broken)
    manifest.details[LOOKED_UP][0].update(change)
    write_manifest(broken, manifest)
    with pytest.raises(EdgeInfiniteError, match=r"again|can't be read"):
        load_engine(broken, threads=1)


def test_the_weights_take_no_more_bytes(artifacts: tuple[Path, Path]) -> None:
    whole, split = ((artifact / "weights.data").stat().st_size for artifact in artifacts)
    assert split <= whole


def test_the_parts_are_ranges_of_one_tensor(artifacts: tuple[Path, Path]) -> None:
    _, split = artifacts
    read = graph(split)
    stored = {tensor.name: tensor for tensor in read.initializer}
    ranges = []
    for node in parts(read)[:-1]:  # the last one is small enough for the graph's own file
        where = {entry.key: entry.value for entry in stored[node.input[1]].external_data}
        ranges.append((int(where["offset"]), int(where["length"])))
    assert all(start + size == ranges[i + 1][0] for i, (start, size) in enumerate(ranges[:-1]))


def test_a_sound_artifact_passes(artifacts: tuple[Path, Path]) -> None:
    _, split = artifacts
    checks = verify_artifact(split, model=f"{split}-checkpoint")
    assert {"parity:products", "parity:between_products"} <= {check.check for check in checks}
    assert all(check.passed for check in checks)


def another_part(graph: onnx.GraphProto) -> None:
    """Two parts change places."""
    (joined,) = [n for n in graph.node if n.op_type == "Concat" and "rows" in n.input[0]]
    joined.input[1], joined.input[2] = joined.input[2], joined.input[1]


def part_of_another(graph: onnx.GraphProto) -> None:
    """A part has the codes of the part before it."""
    nodes = parts(graph)
    nodes[2].input[1] = nodes[1].input[1]


def scales_of_another(graph: onnx.GraphProto) -> None:
    nodes = parts(graph)
    nodes[3].input[2] = nodes[0].input[2]


@pytest.mark.parametrize("change", [another_part, part_of_another, scales_of_another])
def test_a_fault_in_a_part_is_found(
    artifacts: tuple[Path, Path], change: Callable[[onnx.GraphProto], None]
) -> None:
    _, split = artifacts
    check = FaultCheck(split, f"{split}-checkpoint")
    assert check.passes(check.observed)

    def fault(graph: onnx.GraphProto, *_: object) -> str:
        change(graph)
        return "the head"

    assert check.finds(fault, np.random.default_rng(0)) == (True, "the head")
