"""What is written of tokenizers and settings, and what is refused before weights are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_artifact import GEOMETRY, TEMPLATE, VOCABULARY, tiny_checkpoint

from edgeinfinite.cli import main
from edgeinfinite.export.text_files import write_text_files
from edgeinfinite.models.checkpoint import loading
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

END = 1  # <|im_end|>


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tiny_checkpoint(tmp_path / "tiny", layers=1)


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(loading, "load_stored", read)
    monkeypatch.setattr(loading.AutoModelForCausalLM, "from_pretrained", read)


def edit(path: Path, **fields: Any) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(known | fields), encoding="utf-8")


def export(checkpoint: Path, *more: str) -> int:
    output = ("--output", str(checkpoint.with_name("artifact")), "--policy", "reencode")
    return main(["export", "--model", str(checkpoint), *output, *GEOMETRY, *more])


def add_token(checkpoint: Path, content: str, number: int) -> None:
    path = checkpoint / "tokenizer.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    fields["added_tokens"].append(token | {"content": content, "id": number, "special": True})
    path.write_text(json.dumps(fields), encoding="utf-8")


CALIBRATED = ("--quantize", "int4", "--calibrate", "default")

REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "an end past the vocabulary": (
        lambda folder: edit(folder / "generation_config.json", eos_token_id=[1, VOCABULARY]),
        "generation_config.json: eos_token_id is 258, outside the vocabulary of 258",
    ),
    "an end in the configuration": (
        lambda folder: (
            (folder / "generation_config.json").unlink(),
            edit(folder / "config.json", eos_token_id=999),
        )[0],
        "config.json: eos_token_id is 999, outside the vocabulary",
    ),
    "settings that aren't JSON": (
        lambda folder: (folder / "generation_config.json").write_text("{") and None,
        "generation_config.json",
    ),
    "a temperature below 0": (
        lambda folder: edit(folder / "generation_config.json", temperature=-1),
        "generation_config.json: temperature is -1",
    ),
    "top-p above 1": (
        lambda folder: edit(folder / "generation_config.json", top_p=1.5),
        "generation_config.json: top-p is 1.5",
    ),
    "top-k of a half": (
        lambda folder: edit(folder / "generation_config.json", top_k=2.5),
        "generation_config.json: top_k is 2.5",
    ),
    "a template with a fault": (
        lambda folder: (folder / "chat_template.jinja").write_text("a\n{% for %}") and None,
        "the chat template can't be parsed: line 2",
    ),
    "a word of another model": (
        lambda folder: edit(folder / "config.json", vocab_size=200),
        "tokenizer.json has the token",
    ),
    "a token of the template past the vocabulary": (
        lambda folder: (
            add_token(folder, "<|system|>", VOCABULARY),
            (folder / "chat_template.jinja").write_text(TEMPLATE + "<|system|>"),
        )[0],
        "the token '<|system|>' of the id 258, outside the model's vocabulary of 258",
    ),
    "a pattern without end": (
        lambda folder: edit(
            folder / "tokenizer.json",
            normalizer={"type": "Replace", "pattern": {"Regex": "(a+)+"}, "content": "a"},
        ),
        "tokenizer.json can't be used: its normalizer has the pattern",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize(
    "more", [(), ("--dry-run",), ("--quantize", "int4", "--calibrate", "default")]
)
@pytest.mark.usefixtures("no_weights")
def test_what_a_run_would_refuse_is_refused_before_the_first_weight(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], case: str, more: tuple[str, ...]
) -> None:
    change, message = REFUSED[case]
    change(checkpoint)
    assert export(checkpoint, *more) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"model {checkpoint}" in line and message in line
    assert "export the artifact again" not in line and "/tmp/tmp" not in line
    assert not checkpoint.with_name("artifact").exists()


def test_settings_that_change_nothing_are_passed_over_and_answers_end_where_the_template_does(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkpoint / "generation_config.json").write_text(
        # transformers itself refuses to save temperature and do_sample like this.
        json.dumps({"eos_token_id": [200, 7], "pad_token_id": VOCABULARY, "bos_token_id": 300,
                    "top_k": -1, "temperature": 0.5, "do_sample": False})
    )  # fmt: skip
    edit(checkpoint / "tokenizer_config.json", eos_token=None)
    add_token(checkpoint, "[PAD]", VOCABULARY)
    assert export(checkpoint) == 0
    assert "answers end at <|im_end|>, too" in capsys.readouterr().err
    artifact = checkpoint.with_name("artifact")
    written = json.loads((artifact / "generation_config.json").read_text())
    assert written.pop("transformers_version")
    assert written == {
        "eos_token_id": [200, 7, END],
        "top_k": 0,
        "temperature": 0.5,
        "do_sample": False,
    }
    tokenizer = load_tokenizer(artifact, vocabulary=VOCABULARY)
    assert max(tokenizer.encode_text("[PAD]")) < VOCABULARY
    answer = ("generate", str(artifact), "--greedy", "--prompt", "Hi", "--max-new-tokens", "9")
    assert main([*answer, "--logit-bias", f"{END}=1000"]) == 0
    assert capsys.readouterr().out.strip() == ""


def planned(checkpoint: Path) -> tuple[Path, tuple[str, ...]]:
    """The text files as the artifact would have them, and what is told."""
    folder = checkpoint.with_name("texts")
    folder.mkdir()
    backbone = loading.load_backbone(str(checkpoint))
    made = write_text_files(backbone, folder)
    return folder, made.notes


def test_top_p_of_0_is_the_likeliest_token_alone(checkpoint: Path) -> None:
    edit(checkpoint / "generation_config.json", top_p=0.0, top_k=40.0, do_sample=True)
    folder, _ = planned(checkpoint)
    written = json.loads((folder / "generation_config.json").read_text())
    assert (written["top_k"], "top_p" in written) == (1, False)


def test_an_artifact_of_an_earlier_version_ends_at_the_templates_token(checkpoint: Path) -> None:
    folder, _ = planned(checkpoint)
    edit(folder / "generation_config.json", eos_token_id=7)
    edit(folder / "tokenizer_config.json", eos_token=None)
    assert load_tokenizer(folder).stop_ids == {7, END}


def test_a_template_that_ends_answers_in_plain_text_is_told(checkpoint: Path) -> None:
    lines = "{% for m in messages %}{{ m.role + ': ' + m.content }}\n{% endfor %}"
    (checkpoint / "chat_template.jinja").write_text(lines)
    assert "writes no control token behind an answer" in planned(checkpoint)[1][0]


def test_the_checkpoints_own_settings_are_written_as_transformers_writes_them(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder, notes = planned(checkpoint)
    backbone = loading.load_backbone(str(checkpoint))
    backbone.model.generation_config.save_pretrained(tmp_path)
    name = "generation_config.json"
    assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()
    assert notes == ()


def test_a_chat_template_in_a_file_takes_the_checkpoints_place(
    checkpoint: Path, tmp_path: Path
) -> None:
    given = tmp_path / "other.jinja"
    given.write_text("{% for m in messages %}[{{ m.content }}]<|im_end|>{% endfor %}", "utf-8")
    assert export(checkpoint, "--chat-template", str(given)) == 0
    artifact = checkpoint.with_name("artifact")
    tokenizer = load_tokenizer(artifact)
    assert tokenizer.encode_message("Hi")[-1] == END
    assert tokenizer.decode(tokenizer.encode_message("Hi")) == "[Hi]"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"{% for %}", "the chat template can't be parsed: line 1"),
        (b" \n", "the chat template is empty"),
        (b"\xff", "isn't UTF-8"),
        (None, "No such file"),
    ],
)
@pytest.mark.usefixtures("no_weights")
def test_a_chat_template_that_cant_be_used_is_refused_by_its_files_name(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], written: Any, said: str
) -> None:
    given = tmp_path / "other.jinja"
    if written is not None:
        given.write_bytes(written)
    assert export(checkpoint, "--chat-template", str(given)) == 2
    error = capsys.readouterr().err
    assert said in error and "other.jinja" in error and error.count("\n") == 1
