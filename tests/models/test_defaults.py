"""The scorers that come with the package."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_artifact import tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models import shipped
from edgeinfinite.models.checkpoint.loading import DEMO_MODEL, load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import CARRY_LENGTHS, CARRY_SLOTS, GeometryOptions
from edgeinfinite.models.shipped import shipped_scorer
from edgeinfinite.models.trained_file import read_metadata
from tiny import tiny_hybrid

SCORERS = sorted((shipped.PACKAGE / "scorers").glob("*.safetensors"))
MEGABYTE = 1_000_000
SLOTS = CARRY_SLOTS["float32"]


def test_a_scorer_is_found_by_the_weights_it_was_trained_for():
    assert SCORERS
    for path in SCORERS:
        assert shipped_scorer(read_metadata(path)["weights_sha256"]) == path
    assert shipped_scorer("0" * 64) is None


@pytest.mark.parametrize("path", SCORERS, ids=lambda path: path.stem)
def test_a_shipped_scorer_is_small_and_says_what_it_was_made_from(path):
    assert path.stat().st_size <= MEGABYTE
    card = read_metadata(path)
    trained, held_out = (json.loads(card[k]) for k in ("trained_on", "held_out_documents"))
    assert trained and held_out and not set(trained) & set(held_out)
    about = path.with_suffix(".md").read_text(encoding="utf-8")
    assert "edgeinfinite train-scorer" in about and card["backbone"] in about
    assert all(name in about for name in held_out)


def chosen(asked, scorer, backbone, **more):
    """The geometry that options come to, and what fills its recall slots."""
    config = resolve(backbone, ModelOptions(asked, scorer=scorer, **more)).config
    return config.geometry, config.scorer


@pytest.mark.slow
def test_the_demo_model_has_one_and_its_state_is_small():
    backbone = load_backbone(DEMO_MODEL)
    geometry, scorer = chosen(GeometryOptions(), None, backbone)
    assert scorer is not None and Path(scorer).stem == DEMO_MODEL
    assert geometry.policy == "carry" and geometry.average_slots == SLOTS
    capacities = geometry.capacities(30)
    assert sum(capacities) == 30 * 1152 and set(capacities) == {896, 1664}
    bytes_hold, _ = chosen(GeometryOptions(), None, backbone, cache_type=None)
    assert bytes_hold.average_slots == CARRY_SLOTS["int8"] > geometry.average_slots


@pytest.mark.parametrize(
    ("policy", "has", "taken"),
    [
        ("carry", ("float32", "float16", "int8"), "int8"),
        ("carry", ("float32",), "float32"),
        ("carry", ("float16",), "float16"),
        ("reencode", ("float32", "float16", "int8"), "float16"),
        ("reencode", ("float32",), "float32"),
    ],
)
def test_the_default_cache_is_of_bytes_under_carry_where_there_is_one(package, policy, has, taken):
    backbone = load_backbone(str(package / "tiny"))
    options = ModelOptions(GeometryOptions(policy=policy), cache_type=None, cache_types=has)
    assert resolve(backbone, options).config.cache_type == taken


def test_weights_in_floats_have_a_cache_in_floats_unless_a_size_is_given(package):
    backbone = load_backbone(str(package / "tiny"))

    def taken(asked: GeometryOptions, **more) -> str:
        return resolve(backbone, ModelOptions(asked, cache_type=None, **more)).config.cache_type

    assert taken(GeometryOptions(), quantized=False) == "float32"
    assert taken(GeometryOptions(), quantized=False, cache_types=("float16",)) == "float16"
    assert taken(GeometryOptions(state_mb=1.0), quantized=False) == "int8"
    paper = GeometryOptions("reencode", sink_length=4, window_length=8, state_mb=1.0)
    assert taken(paper, quantized=False) == "float16"


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_no_size_of_a_state_is_refused_where_it_is_given(size):
    with pytest.raises(EdgeInfiniteError, match="--state-mb is"):
        GeometryOptions(state_mb=size)


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder with a checkpoint and a package in which a scorer is shipped for it."""
    folder = tmp_path_factory.mktemp("package")
    checkpoint, texts = tiny_checkpoint(folder / "tiny"), folder / "texts"
    texts.mkdir()
    (folder / "scorers").mkdir()
    for number in range(2):
        (texts / f"{number}.txt").write_text("A dog went home.\n" * 300)
    train = ["train-scorer", "--model", str(checkpoint), "--data", str(texts)]
    train += ["--output", str(folder / "scorers" / "tiny.safetensors"), "--tokens", "400"]
    train += [
        "--passes",
        "2",
        "--repeated-passes",
        "2",
        "--held-out-passes",
        "1",
        "--gap",
        "40",
        "--facts",
        "1",
    ]
    assert main([*train, "--steps", "1", "--retrieval-share", "0.25"]) == 0  # one of four heads
    return folder


def export(package: Path, output: Path, slots: str, *more: str) -> int:
    lengths = ["--segment-length", "128", "--sink-length", "4", "--window-length", "8"]
    command = ["export", "--model", str(package / "tiny"), "--output", str(output), *lengths]
    return main([*command, "--recall-slots", slots, "--policy", "carry", *more])


def by_layer(package: Path, more: int, less: int) -> list[int]:
    """One of the two layers recalls."""
    card = read_metadata(package / "scorers" / "tiny.safetensors")
    (layer,) = json.loads(card["retrieval_layers"])
    return [more, less] if layer == 0 else [less, more]


@pytest.mark.parametrize("slots", ["128", "trained:128"])
def test_export_takes_the_shipped_scorer_and_says_so(package, tmp_path, monkeypatch, capsys, slots):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    assert export(package, tmp_path / "artifact", slots) == 0
    assert "filled by the shipped scorer tiny.safetensors" in capsys.readouterr().err
    geometry = read_manifest(tmp_path / "artifact").geometry
    expected = [128, 128] if slots == "128" else by_layer(package, 256, 0)
    assert [geometry.slots_of(layer) for layer in range(2)] == expected


def test_trained_slots_need_a_card_that_names_them(package, tmp_path, capsys):
    assert export(package, tmp_path / "artifact", "trained") == 2
    assert "without a trained scorer it is unknown" in capsys.readouterr().err
    assert export(package, tmp_path / "artifact", "trained", "--policy", "reencode") == 2
    assert "no recall slots" in capsys.readouterr().err
    assert export(package, tmp_path / "artifact", "trained:many") == 2
    assert "'trained:many'; give a number" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        export(package, tmp_path / "artifact", "many")
    assert "'many' is none of them" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_a_scorer_the_window_is_longer_by_the_recall_slots_and_a_note_says_why(
    package, monkeypatch
):
    backbone = load_backbone(str(package / "tiny"))
    monkeypatch.setattr(backbone.model.config, "max_position_embeddings", 4096)
    longer = Geometry(128, 64, 448 + SLOTS, policy="carry")
    assert chosen(GeometryOptions(), None, backbone) == (longer, None)
    bytes_hold = replace(longer, window_length=448 + CARRY_SLOTS["int8"])
    assert chosen(GeometryOptions(), None, backbone, cache_type=None) == (bytes_hold, None)
    (said,) = resolve(backbone, ModelOptions()).notes
    assert "no scorer is known" in said and "train-scorer" in said and "--policy reencode" in said
    assert chosen(GeometryOptions(window_length=100), None, backbone)[0].window_length == 100
    # Who asks for a gate gets the policy that it was made for.
    paper = resolve(backbone, ModelOptions(gate="untrained")).config
    assert (paper.geometry, paper.gate) == (Geometry(), "untrained")
    assert resolve(backbone, ModelOptions(gate="none")).config.geometry == longer


def test_without_a_scorer_a_state_of_a_given_size_goes_to_the_window(package):
    backbone = load_backbone(str(package / "tiny"))
    megabytes = (64 + 128 + 256) * 256 / 1e6  # 256 bytes a slot
    geometry = chosen(GeometryOptions(state_mb=megabytes + 1e-4), None, backbone)[0]
    assert geometry == Geometry(128, 64, 256, policy="carry")
    with pytest.raises(EdgeInfiniteError, match="--state-mb chooses --window-length"):
        chosen(GeometryOptions(window_length=100, state_mb=megabytes), None, backbone)


def test_where_every_layer_slides_the_windows_are_held_whatever_is_asked(package):
    backbone = replace(load_backbone(str(package / "tiny")), model=tiny_hybrid("Mistral", 100))
    resolved = resolve(backbone, ModelOptions(GeometryOptions(segment_length=16)))
    assert resolved.config.geometry == Geometry(16, 0, 99, policy="carry")
    assert "sees its newest 100 tokens only" in " ".join(resolved.notes)
    with pytest.raises(EdgeInfiniteError, match="recall slots are of no use"):
        chosen(GeometryOptions(recall_slots=128), "untrained", backbone)
    with pytest.raises(EdgeInfiniteError, match=r"takes a state of 0\.1 MB"):
        chosen(GeometryOptions(segment_length=16, state_mb=0.01), None, backbone)


def test_a_model_with_a_shipped_scorer_gets_carry_and_the_paper_stays_selectable(
    package, monkeypatch
):
    backbone = load_backbone(str(package / "tiny"))
    monkeypatch.setattr(shipped, "PACKAGE", package)
    file = str(package / "scorers" / "tiny.safetensors")
    alike = Geometry(policy="carry", recall_slots=SLOTS, **CARRY_LENGTHS)
    options = GeometryOptions()
    least = replace(alike, recall_slots=128)
    assert chosen(options, None, backbone) == (least, file)  # no room: 512 positions
    backbone = load_backbone(str(package / "tiny"))  # facts about a model are collected once
    monkeypatch.setattr(backbone.model.config, "max_position_embeddings", 2048)
    layers = tuple(by_layer(package, SLOTS * 3 // 2, SLOTS // 2))
    default = replace(alike, recall_slots=layers)
    assert chosen(options, None, backbone) == (default, file)
    assert default.average_slots == SLOTS
    # Slots of bytes stay within the positions, too: a retrieval layer's fill them.
    most = 2048 - 640
    within = chosen(options, None, backbone, cache_type="int8")[0]
    assert within == replace(alike, recall_slots=most)
    said = " ".join(resolve(backbone, ModelOptions(options)).notes)
    assert "policy carry, the default for" in said and "shipped scorer tiny.safetensors" in said
    paper = GeometryOptions(policy="reencode")
    assert chosen(paper, None, backbone) == (Geometry(), None)
    plain = GeometryOptions(recall_slots=0)
    assert chosen(plain, None, backbone)[0].recall_slots == 0
    # What the Python API gives whole is not touched.
    whole = Geometry(16, 4, 8)
    assert chosen(whole, None, backbone) == (whole, None)


@pytest.mark.parametrize(
    ("average", "positions", "more", "less"),
    [
        (512, 8192, 768, 256),
        (1536, 8192, 2048, 1024),
        (1920, 8192, 2304, 1536),
        (3456, 8192, 4096, 2816),
        (512, 1280, 640, 384),
        (512, 1152, 512, 512),
    ],
)
def test_slots_by_layer_respect_the_useful_maximum_and_the_positions(
    package, monkeypatch, average, positions, more, less
):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    backbone = load_backbone(str(package / "tiny"))
    monkeypatch.setattr(backbone.model.config, "max_position_embeddings", positions)
    asked = GeometryOptions(recall_slots=f"trained:{average}")
    geometry = chosen(asked, None, backbone)[0]
    assert [geometry.slots_of(layer) for layer in range(2)] == by_layer(package, more, less)


def test_slots_chosen_by_state_size_are_divided_among_layers_too(package, monkeypatch):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    backbone = load_backbone(str(package / "tiny"))
    monkeypatch.setattr(backbone.model.config, "max_position_embeddings", 2048)
    # 640 slots beside the recall slots, 256 bytes a slot, 16 for the scores of a recall slot.
    megabytes = (640 * 256 + 256 * (256 + 16) + 20) / 1e6
    geometry = chosen(GeometryOptions(state_mb=megabytes), None, backbone)[0]
    assert [geometry.slots_of(layer) for layer in range(2)] == by_layer(package, 384, 128)


def test_a_given_scorer_makes_carry_the_default_too(package, monkeypatch):
    backbone = load_backbone(str(package / "tiny"))
    monkeypatch.setattr(backbone.model.config, "max_position_embeddings", 2048)
    geometry, scorer = chosen(GeometryOptions(segment_length=100), "untrained", backbone)
    assert (geometry.policy, geometry.recall_slots, scorer) == ("carry", 500, "untrained")


def test_an_exported_scorer_keeps_its_card(package, tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "PACKAGE", package)
    assert export(package, tmp_path / "artifact", "128") == 0
    card = read_metadata(package / "scorers" / "tiny.safetensors")
    assert read_metadata(tmp_path / "artifact" / "scorer.safetensors") == card
