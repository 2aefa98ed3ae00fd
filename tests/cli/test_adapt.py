"""`edgeinfinite adapt` and `card`: from a checkpoint to an artifact with figures on its card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from manifest_edit import edit_manifest
from tiny_artifact import tiny_checkpoint

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.cli import main
from edgeinfinite.evaluation import tasks
from edgeinfinite.models.trained_file import read_metadata

TRAIN = (
    "--passes 3 --tokens 480 --gap 48 --facts 1 --steps 8 --held-out-passes 1 --repeated-passes 2"
)
CACHE = [
    *("--segment-length", "32", "--sink-length", "4", "--window-length", "8"),
    *("--recall-slots", "trained:32"),
]
SHORT = ["--lengths", "340,420", "--samples", "1"]
CARD = "--facts 2 --tokens 200 --bin-length 50"


def adapt(checkpoint: Path, output: Path, *more: str) -> int:
    command = ["adapt", "--model", str(checkpoint), "--output", str(output), *CACHE, *SHORT]
    return main([*command, "--train-options", TRAIN, "--card-options", CARD, *more])


def record_of(folder: Path) -> dict[str, dict]:
    return {step["name"]: step for step in json.loads((folder / "card/steps.json").read_text())}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict]]:
    """An artifact whose `adapt` was killed while it measured, and its record at that time."""
    folder = tmp_path_factory.mktemp("adapt")
    checkpoint, output = tiny_checkpoint(folder / "tiny"), folder / "deep" / "artifact"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "measure_artifact", killed)
        assert adapt(checkpoint, output) == 130
    record = record_of(output)
    assert adapt(checkpoint, output, "--license", "apache-2.0") == 0
    return output, record


def test_a_killed_adapt_goes_on_where_it_was(adapted: tuple[Path, dict[str, dict]]) -> None:
    output, before = adapted
    after = record_of(output)
    done = ["artifact", "train-scorer", "export", "verify", "recall", "recall-checkpoint"]
    assert list(before) == done
    assert list(after) == [*done, "loss", "loss-checkpoint", "speed"]
    assert all(after[name] == before[name] for name in before)
    assert not (output.parent / "artifact.adapt").exists()


def test_an_adapt_that_is_done_does_nothing_again(
    adapted: tuple[Path, dict[str, dict]], capsys: pytest.CaptureFixture[str]
) -> None:
    output, _ = adapted
    before = (output / "card/steps.json").stat().st_mtime_ns
    assert adapt(output.parents[1] / "tiny", output) == 0
    assert (output / "card/steps.json").stat().st_mtime_ns == before
    shown = capsys.readouterr()
    assert shown.out == f"{output / 'README.md'}\n" and "step" not in shown.err


def test_the_artifact_has_the_scorer_that_was_trained_for_it(
    adapted: tuple[Path, dict[str, dict]],
) -> None:
    output, _ = adapted
    manifest = read_manifest(output)
    assert manifest.quantization.recipe == "int4" and manifest.geometry.average_slots == 32
    card = read_metadata(output / "scorer.safetensors")
    assert card["weights_sha256"] == manifest.backbone.weights_sha256
    assert len(json.loads(card["trained_on"])) == 12  # of the books that come with the package


def test_the_card_is_one_that_the_hub_reads_and_shows_what_was_measured(
    adapted: tuple[Path, dict[str, dict]],
) -> None:
    output, _ = adapted
    card = ModelCard.load(output / "README.md")
    assert card.data.license == "apache-2.0" and card.data.library_name == "edgeinfinite"
    assert card.data.base_model is None  # a folder's name isn't an id of the hub
    results = card.data.eval_results
    assert results is not None
    assert [r.dataset_name for r in results] == [
        f"Planted facts, {length} tokens" for length in (340, 420)
    ]
    for method in ("artifact", "full", "streaming"):
        assert f"| {method} | 340 |" in card.text and f"\n| {method} | 0.0 | 1 |" in card.text
    assert "| parity:logits |" in card.text and "tokens/s |" in card.text
    assert "`input_layernorm` (2)" in card.text
    for name in ("recall", "loss", "speed"):
        assert f"(card/{name}.png)" in card.text
        assert (output / f"card/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_card_has_the_commands_without_this_machines_folders(
    adapted: tuple[Path, dict[str, dict]],
) -> None:
    output, _ = adapted
    text = (output / "README.md").read_text()
    assert "\nedgeinfinite train-scorer --model tiny --output scorer.safetensors" in text
    assert "\nedgeinfinite bench artifact --lengths 340,420" in text
    assert str(output.parent) not in text
    assert str(output.parent) not in (output / "card/steps.json").read_text()


def test_other_options_of_the_cache_export_again_with_the_scorer_that_is_there(
    adapted: tuple[Path, dict[str, dict]], tmp_path: Path
) -> None:
    output, _ = adapted
    checkpoint = output.parents[1] / "tiny"
    shutil.copytree(output, tmp_path / "artifact")
    again = ["--quantize", "none", "--parts", "", "--scorer"]
    assert adapt(checkpoint, tmp_path / "artifact", *again, str(output / "scorer.safetensors")) == 0
    manifest = read_manifest(tmp_path / "artifact")
    assert manifest.quantization.recipe == "none"
    assert manifest.scorer == read_manifest(output).scorer
    assert list(record_of(tmp_path / "artifact")) == ["artifact", "export"]
    text = (tmp_path / "artifact/README.md").read_text()
    assert "What it remembers" not in text and "all weights are in float32" in text


def test_a_card_can_be_made_of_any_artifact_without_its_checkpoint(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(artifact, folder)
    command = ["card", str(folder), *SHORT, "--facts", "2", "--parts", "recall", "--methods", ""]
    assert main([*command, "--base-model", "org/name"]) == 0
    card = ModelCard.load(folder / "README.md")
    assert "| artifact | 420 |" in card.text and "Speed" not in card.text
    assert card.data.base_model == "org/name"
    assert main(["card", str(folder), "--parts", ""]) == 0
    assert (folder / "README.md").read_text() == str(card)
    capsys.readouterr()
    assert main(["verify", str(folder), "--model", str(tmp_path)]) == 2  # that isn't a checkpoint


def test_rows_of_another_artifact_are_not_shown(artifact: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(artifact, folder)
    command = ["card", str(folder), *SHORT, "--facts", "2", "--parts"]
    assert main([*command, "recall", "--methods", ""]) == 0
    edit_manifest(folder, lambda manifest: manifest["details"].update(changed=True))
    assert main([*command, ""]) == 0
    assert "What it remembers" not in (folder / "README.md").read_text()


def test_a_damaged_artifact_gets_no_card(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(artifact, folder)
    before = (folder / "README.md").read_bytes()
    (folder / "weights.data").write_bytes(b"nothing")
    assert main(["card", str(folder), "--parts", "verify"]) == 2
    assert "verify found a fault" in capsys.readouterr().err
    assert (folder / "README.md").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--card-options", "--parts speeed"], "a card has no part 'speeed'"),
        (["--train-options", "'"], "--train-options \"'\" can't be read"),
        (["--state-mb", "-1"], "--state-mb is -1.0"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["adapt", "--model", "org/name", "--output", str(tmp_path / "out")]
    assert main([*command, *options]) == 2
    shown = capsys.readouterr().err
    assert said in shown and shown.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_wrong_option_for_a_step_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["adapt", "--model", "org/name", "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main([*command, "--train-options", "--pases 3"])
    assert "--pases" in capsys.readouterr().err
