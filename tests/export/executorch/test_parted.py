"""More bits for a weight's first inputs, and offsets of its groups, in one partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from executorch.exir._serialize._program import deserialize_pte_binary
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.executorch import BACKEND, sharing
from edgeinfinite.export.executorch.backend import ExecuTorchBackend
from edgeinfinite.export.executorch.layers import (
    PartedEmbedding,
    PartedLinear,
    RefinedLinear,
    unrounded_inputs,
)
from edgeinfinite.export.executorch.quantize import quantized, stored_bytes
from edgeinfinite.export.mixing.rounding import inverse_factor, round_by_inputs
from edgeinfinite.export.recipes import WeightFormat, exact_recipe
from edgeinfinite.export.verify import verify_artifact
from tiny import wide_llama


def made(folder: Path, *options: str) -> Path:
    """An artifact in 4 bits."""
    options = ("--backend", "executorch", "--quantize", "int4", *options)
    return tiny_artifact(folder, *options, model=wide_llama(vocabulary=VOCABULARY))


@pytest.fixture(scope="module", params=["first inputs", "offsets"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A mix: some weights of it are divided; or all of 4 bits have offsets, and some are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "offsets":
            formats = WeightFormat(4, offsets=True), WeightFormat(8)
            menu = replace(ExecuTorchBackend.menu, formats=formats)
            patch.setattr(ExecuTorchBackend, "menu", menu)
        yield made(tmp_path_factory.mktemp("parted") / "mix", "--max-loss", "0.01")


def test_a_mix_has_divided_weights_and_computes_what_pytorch_computes(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    manifest = load_manifest(folder)
    formats = [WeightFormat.parse(name) for name in manifest.quantization.quantized.values()]
    leading = {form.leading for form in formats}
    assert len(leading) > 1 and leading <= set(range(0, 256, 32))
    assert all(form.bits == 4 for form in formats if form.leading or form.offsets)
    with_offsets = {form.offsets for form in formats if form.bits == 4}
    assert with_offsets == {request.node.callspec.params["folder"] == "offsets"}
    model = str(folder.with_name("mix-checkpoint"))
    checks = verify_artifact(folder, model=model)
    assert [check for check in checks if not check.passed] == []


def test_slices_make_no_partitions_and_leave_one_token_to_the_last_layer(
    folder: Path, tmp_path: Path
) -> None:
    plain, divided = load_manifest(made(tmp_path / "plain")), load_manifest(folder)
    for graph in ("prefill_segment", "decode_step"):
        before, after = plain.details[graph], divided.details[graph]
        assert after["partitions"] == before["partitions"]
        assert after["undelegated"] == before["undelegated"]
        for operator in ("aten.slice_copy", "aten.cat"):
            assert after["delegated"][operator] > before["delegated"].get(operator, 0)


@pytest.mark.parametrize(
    "form",
    [
        WeightFormat(4),
        WeightFormat(4, leading=96),
        WeightFormat(4, offsets=True),
        WeightFormat(4, leading=96, offsets=True),
        WeightFormat(8),
    ],
    ids=str,
)
def test_a_divided_layer_has_both_parts_and_the_bytes_that_were_counted(form: WeightFormat) -> None:
    model, name = wide_llama(), "model.layers.0.mlp.down_proj.weight"
    recipe = exact_recipe("int4", {name: form})
    without = stored_bytes(model, exact_recipe("int4", {}))
    weight = model.get_parameter(name)
    values, size = BACKEND.rounded(weight, form, embedding=False)
    assert stored_bytes(model, recipe) == without - 4 * weight.numel() + size
    twin, info = quantized(model, recipe)
    layer = twin.model.layers[0].mlp.down_proj
    assert isinstance(layer, RefinedLinear) == (form.offsets or bool(form.leading))
    known = WeightFormat.parse(info.quantized[name])
    assert (known.leading, known.offsets) == (form.leading, form.offsets)
    x = torch.randn(1, 5, 256)
    computed = (
        BACKEND.quantized_reference(WeightRequest(model, recipe)).model.layers[0].mlp.down_proj
    )
    with unrounded_inputs(computed):
        torch.testing.assert_close(computed(x), x @ values.T, atol=1e-5, rtol=1e-5)
    in_four, lost = BACKEND.rounded(weight, WeightFormat(4), embedding=False)[0], {}
    if form.offsets:
        assert (values - weight).norm() < 0.9 * (in_four - weight).norm()
    elif form.leading:
        for part in (slice(96), slice(96, None)):
            lost[part.start] = float((values - weight)[:, part].norm() / weight[:, part].norm())
        assert lost[None] < 0.01 and torch.equal(values[:, 96:], in_four[:, 96:])


@pytest.mark.parametrize("offsets", [False, True])
def test_codes_that_were_chosen_for_the_rest_are_taken_over(offsets: bool) -> None:
    model, name = wide_llama(), "model.layers.0.mlp.down_proj.weight"
    form, weight = WeightFormat(4, leading=64, offsets=offsets), model.get_parameter(name)
    factor = inverse_factor(torch.eye(256))
    chosen = round_by_inputs(weight[:, 64:], factor[64:, 64:], form, BACKEND.menu.scale_type)
    reference = BACKEND.quantized_reference(
        WeightRequest(model, exact_recipe("int4", {name: form}), {name: chosen})
    )
    layer, x = reference.model.layers[0].mlp.down_proj, torch.randn(1, 5, 256)
    x[..., :64] = 0
    with unrounded_inputs(layer):
        torch.testing.assert_close(layer(x), x[..., 64:] @ chosen.dequantized().T)


def test_a_tied_head_is_divided_with_its_table_and_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_LEAST", 1 << 10)
    model, options = (
        wide_llama(tied=True, vocabulary=VOCABULARY),
        ("--backend", "executorch", "--quantize", "int4"),
    )
    folder = tiny_artifact(tmp_path / "mix", *options, "--max-loss", "0.01", model=model)
    manifest = load_manifest(folder)
    formats = manifest.quantization.quantized
    head = WeightFormat.parse(formats["lm_head.weight"])
    assert head == WeightFormat(8, leading=32)
    assert formats["model.embed_tokens.weight"] == formats["lm_head.weight"]
    assert all(c.passed for c in verify_artifact(folder, model=str(tmp_path / "mix-checkpoint")))
    recipe = exact_recipe("int4", {"model.embed_tokens.weight": head})
    twin, _ = quantized(model, recipe)
    assert isinstance(twin.get_input_embeddings(), PartedEmbedding)
    assert isinstance(twin.get_output_embeddings(), PartedLinear)
    values, size = BACKEND.rounded(model.lm_head.weight, head, embedding=True)
    without = stored_bytes(model, exact_recipe("int4", {}))
    assert stored_bytes(model, recipe) == without - 4 * values.numel() + size
    tokens = torch.arange(VOCABULARY)[None]
    torch.testing.assert_close(twin.get_input_embeddings()(tokens)[0], values)
    stored = (folder / "model.pte").read_bytes()
    sizes = [VOCABULARY * columns for columns in (4, 32, 96)]  # of scales and of both tables
    constants = deserialize_pte_binary(stored).program.constant_buffer
    shared = [
        part.storage[:size]
        for part in constants
        for size in sizes
        if len(part.storage) == -(-size // 16) * 16
    ]
    assert len(shared) == 4 and all(stored.count(part) == 1 for part in shared)
