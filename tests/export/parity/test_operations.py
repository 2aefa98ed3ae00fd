"""The check operation by operation: a sound artifact passes, small faults of any layer don't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from parity_faults import FAULTS, FaultCheck
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.observe import ObservedGraph
from edgeinfinite.export.parity.operations import (
    ATTENTION_LIMIT,
    Product,
    checks_of,
    operation_error,
)
from edgeinfinite.export.recipes import RECIPES, Rule, WeightFormat
from edgeinfinite.export.verify import verify_artifact
from edgeinfinite.runtime_py.session.state import State
from tiny import tiny_family


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operations")
    return tiny_artifact(folder / "int4", "--quantize", "int4", layers=3)


@pytest.fixture(scope="module")
def check(artifact: Path) -> FaultCheck:
    return FaultCheck(artifact, str(artifact.with_name("int4-checkpoint")))


def test_a_sound_artifact_is_far_within_the_limits(artifact: Path) -> None:
    checkpoint = str(artifact.with_name("int4-checkpoint"))
    checks = {check.check: check for check in verify_artifact(artifact, model=checkpoint)}
    for name in ("parity:between_products", "parity:products"):
        assert checks[name].passed and checks[name].limit is not None
        assert checks[name].value < checks[name].limit / 2


@pytest.mark.parametrize("apart", ["q_proj", "k_proj", "v_proj"])
def test_layers_that_are_computed_at_once_need_not_stand_side_by_side(
    apart: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q and V of one format are one product, though K of another stands between them."""
    rules = (Rule(apart, WeightFormat(8)), Rule("[qkv]_proj", WeightFormat(4)))
    mixed = replace(RECIPES["int4"], rules=(*rules, *RECIPES["int4"].rules))
    monkeypatch.setitem(RECIPES, "int4", mixed)
    folder = tiny_artifact(tmp_path / "mixed", "--quantize", "int4", layers=1, anew=True)
    manifest = load_manifest(folder)
    graph = ObservedGraph(folder, manifest)
    products = graph.run(np.array([[1, 2, 3]]), State(manifest.state))
    names = {product.name.rpartition(".")[2] for product in products}
    assert apart in names and len(names & {"q_proj", "k_proj", "v_proj"}) == 2


@pytest.mark.parametrize("family", ["Phi3", "Cohere"])
def test_layers_in_another_order_or_beside_attention_are_compared(
    family: str, tmp_path: Path
) -> None:
    """Phi-3 lists its output projection first; Cohere's MLP reads what its attention reads."""
    sizes = {"num_hidden_layers": 1, "vocab_size": VOCABULARY, "max_position_embeddings": 512}
    model = tiny_family(family, **sizes, initializer_range=0.1)
    folder = tiny_artifact(tmp_path / "int4", "--quantize", "int4", model=model)
    assert load_manifest(folder).parity["parity:between_products"] < ATTENTION_LIMIT / 10


@pytest.mark.parametrize("kind", list(FAULTS))
def test_every_kind_of_fault_is_found(check: FaultCheck, kind: str) -> None:
    random = np.random.default_rng(0)
    results = [check.finds(FAULTS[kind], random) for _ in range(3)]
    known = [result for result in results if result is not None]
    assert known, "the graph has no place for it"
    assert all(found for found, _ in known), known


def test_nan_is_an_error_and_equal_zeros_are_none() -> None:
    zeros, ones = torch.zeros(1, 3, 4), torch.ones(1, 3, 4)
    assert operation_error(zeros, zeros) == 0
    assert np.isnan(operation_error(ones, zeros))
    assert np.isnan(operation_error(ones * torch.nan, ones))
    # One channel of four that is lost: half of everything, more than an eighth of the channel.
    lost = ones * torch.tensor([1.0, 1.0, 1.0, 0.0])
    assert operation_error(lost, ones) == pytest.approx(0.5)


def test_no_products_are_no_checks() -> None:
    assert checks_of([]) == []


def test_a_product_of_no_layer_is_refused(check: FaultCheck) -> None:
    assert isinstance(check.observed, ObservedGraph)
    products = check.observed.run(np.array([[1, 2, 3]]), check.reference.new_state())

    class Odd:
        """Calls one of the products by another name."""

        def run(self, *_: object) -> list[Product]:
            first = products[0]
            return [Product("model.other", first.given, first.made), *products[1:]]

    with pytest.raises(EdgeInfiniteError, match=r"product model\.other gives"):
        check.passes(Odd())  # type: ignore[arg-type]
