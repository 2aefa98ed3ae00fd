"""`verify`, and every error: one line that says what is wrong, exit code 2, nothing left behind."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from manifest_edit import edit_manifest

from edgeinfinite.artifact.manifest import file_entry
from edgeinfinite.cli import main
from edgeinfinite.version import __version__


def test_verify_passes_a_fresh_artifact_and_writes_a_row_per_check(
    artifact: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "checks.json"
    assert main(["verify", str(artifact), "--model", str(checkpoint), "--json", str(file)]) == 0
    document = json.loads(file.read_text())
    assert document["command"] == "verify"
    names = [row["check"] for row in document["rows"]]
    assert "parity:logits" in names and "checksum:tokenizer.json" in names
    assert all(
        row["passed"] and set(row) == {"check", "passed", "value", "limit"}
        for row in document["rows"]
    )
    assert capsys.readouterr().out.count("\nok ") == len(names) - 1


def test_a_flipped_byte_is_found(
    artifact: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(artifact, tmp_path / "a")
    weights = tmp_path / "a" / "weights.data"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    assert main(["generate", str(tmp_path / "a"), "--prompt", "abc"]) == 2
    assert "weights.data differs from what was exported" in _one_line(capsys)
    assert main(["verify", str(tmp_path / "a"), "--model", str(checkpoint)]) == 1
    assert re.search(r"FAILED +checksum:weights\.data", capsys.readouterr().out)


def _changed(artifact: Path, folder: Path, name: str, contents: bytes) -> Path:
    """A copy with another file in it, which its manifest vouches for."""
    shutil.copytree(artifact, folder)
    (folder / name).write_bytes(contents)
    entry = asdict(file_entry(folder / name))
    edit_manifest(folder, lambda manifest: manifest["files"].update({name: entry}))
    return folder


@pytest.mark.parametrize("contents", [b"", b"no graph", bytes(1000), b"\x08\x0a" * 5000])
def test_a_graph_that_is_none_is_one_line_without_onnxruntime_s_own(
    artifact: Path, tmp_path: Path, contents: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    changed = _changed(artifact, tmp_path / "a", "prefill_segment.onnx", contents)
    assert main(["generate", str(changed), "--prompt", "abc"]) == 2
    assert "can't be loaded by onnxruntime" in _one_line(capfd)


def test_weights_that_are_cut_short_are_one_line(
    artifact: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    changed = _changed(artifact, tmp_path / "a", "weights.data", b"x" * 100)
    assert main(["generate", str(changed), "--prompt", "abc"]) == 2
    assert "can't be loaded by onnxruntime" in _one_line(capfd)


def test_weights_that_are_all_zero_are_one_line(
    artifact: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    size = (artifact / "weights.data").stat().st_size
    changed = _changed(artifact, tmp_path / "a", "weights.data", bytes(size))
    assert main(["generate", str(changed), "--prompt", "abc"]) == 2
    error = capfd.readouterr().err.splitlines()
    assert len(error) == 1 and "gives every token the same logit" in error[0]


def _one_line(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("edgeinfinite: error: ")
    assert printed.err.count("\n") == 1 and printed.err.endswith("\n")
    return printed.err


ERRORS = [
    ("generate {artifact} --prompt a --threads 9999", "threads: this machine has"),
    ("generate {artifact} --prompt a --threads 100000000000", "threads: this machine has"),
    ("export --model {tmp} --output {tmp}/new --state-mb nan", "--state-mb is nan"),
    ("export --model {tmp} --output {tmp}/new --state-mb inf", "--state-mb is inf"),
    ("export --model {tmp} --output {tmp}/new --state-mb -3", "--state-mb is -3"),
    ("export --model {tmp} --output {tmp}/new --max-mb nan", "give a number, not 'nan'"),
    ("export --model {tmp} --output {tmp}/new --max-loss inf", "give a number, not 'inf'"),
    ("bench {artifact} --time-limit nan", "give a number, not 'nan'"),
    ("generate {artifact} --prompt a --temperature nan", "temperature is nan"),
    ("generate {tmp}/nowhere --prompt a", "nowhere is not an artifact"),
    ("generate {tmp} --prompt a", "manifest.json is missing"),
    ("generate {artifact} --prompt-file {tmp}/nowhere", "nowhere: No such file or directory"),
    ("generate {artifact} --prompt-file {tmp}", "Is a directory"),
    ("generate {artifact} --prompt-file {tmp}/binary", "neither text nor a document"),
    ("generate {artifact} --prompt-file {tmp}/blank", "blank holds no text"),
    ("generate {artifact} --prompt a --from {tmp}/nowhere", "nowhere doesn't exist"),
    ("generate {artifact} --prompt a --from {tmp}/latin1", "is not a whole session file"),
    ("read {artifact} {tmp}/nowhere --output {tmp}/new", "nowhere: No such file or directory"),
    ("read {artifact} {tmp}/blank --output {tmp}/new", "blank holds no text"),
    ("read {artifact} {tmp}/latin1 --output {tmp}", "is a folder"),
    ("read {artifact} {tmp}/latin1 --output {tmp}/blank", "is not a whole session file"),
    ("read {artifact} {tmp}/latin1", "required: --output"),
    ("sessions {tmp}/nowhere", "nowhere: No such file or directory"),
    ("chat {artifact} --undo -1", "at least 0, not '-1'"),
    ("chat {artifact} --session {tmp}/blank --from {tmp}/latin1", "leave --from out"),
    ("generate {artifact} --prompt=", "prompt is empty"),
    ("generate {artifact}", "one of the arguments --prompt --prompt-file is required"),
    ("generate {artifact} --prompt a --prompt-file b", "not allowed with argument"),
    ("generate {artifact} --prompt a --max-new-tokens 0", "at least 1, not '0'"),
    ("generate {artifact} --prompt a --threads x", "at least 1, not 'x'"),
    ("generate {artifact} --prompt a --temperature -1", "temperature is -1.0"),
    ("generate {artifact} --prompt a --top-p 2", "top-p is 2.0"),
    ("generate {artifact} --prompt a --stats-json {tmp}/no/rows.json", "there is no folder"),
    ("chat {artifact} --session {tmp}", "is a folder"),
    ("chat {artifact} --session {tmp}/latin1", "is not a whole session file"),
    ("export --model {checkpoint} --output {tmp}", "not an artifact"),
    ("export --model {tmp}/nowhere --output {tmp}/new", "nowhere"),
    ("export --model {checkpoint} --output {tmp}/new --segment-length 0", "segment length is 0"),
    ("export --model {checkpoint} --output {tmp}/new --quantize int3", "is none of its values"),
    ("export --model {checkpoint} --output {tmp}/new --target dsp", "is none of its values"),
    ("export --model {checkpoint} --output {tmp}/new --target qnn-htp", "--soc names it"),
    ("export --model {checkpoint} --output {tmp}/new --soc sm8650", "--soc names it"),
    ("export --model {checkpoint} --output {tmp}/new --state-mb 0.001", "give at least"),
    (
        "export --model {checkpoint} --output {tmp}/new --state-mb 1 --window-length 64",
        "leave one of them out",
    ),
    ("export --model {checkpoint} --output {tmp}/new --cache-type int3", "is none of its values"),
    ("export --model {checkpoint} --output {tmp}/new --recall-slots {tmp}/blank", "a JSON list"),
    ("export --model {checkpoint} --output {tmp}/new --recall-slots {tmp}/latin1", "a JSON list"),
    ("export --model {checkpoint} --output {tmp}/new --recall-slots by-head", "none of them"),
    ("export --model {checkpoint}", "--output is required"),
    ("verify {tmp}/nowhere", "nowhere"),
    ("dance", "there is no command 'dance'"),
    ("", "required: COMMAND"),
]


@pytest.mark.parametrize(("command", "message"), ERRORS, ids=[c or "nothing" for c, _ in ERRORS])
def test_an_error_is_one_line_and_exit_code_2(
    command: str,
    message: str,
    artifact: Path,
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "latin1").write_bytes("café".encode("latin-1"))
    (tmp_path / "blank").write_text(" \n")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    before = sorted(tmp_path.iterdir())
    words = command.format(tmp=tmp_path, artifact=artifact, checkpoint=checkpoint).split()
    try:
        code: Any = main(words)
    except SystemExit as end:  # argparse
        code = end.code
    assert code == 2
    assert message in _one_line(capsys)
    assert sorted(tmp_path.iterdir()) == before


def test_a_manifest_of_a_newer_schema_is_refused(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(artifact, tmp_path / "a")
    path = tmp_path / "a" / "manifest.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"schema_version": fields["schema_version"] + 1}))
    assert main(["generate", str(tmp_path / "a"), "--prompt", "abc"]) == 2
    assert "update edgeinfinite" in _one_line(capsys)


def test_a_base_model_can_not_chat(
    base_artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    assert main(["chat", str(base_artifact)]) == 2
    assert "no chat template" in _one_line(capsys)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8:surrogateescape"])
def test_a_chat_line_that_is_not_utf8_is_refused(
    artifact: Path, start: Any, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    process = start("chat", str(artifact))
    _, errors = process.communicate(b"caf\xe9\n", timeout=60)
    assert process.returncode == 2
    assert errors.startswith(b"edgeinfinite: error: ") and errors.count(b"\n") == 1


def test_version_and_help_name_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--version", "--help"):
        with pytest.raises(SystemExit) as end:
            main([option])
        assert end.value.code == 0
    printed = capsys.readouterr().out
    assert f"edgeinfinite {__version__}" in printed
    for command in ("export", "verify", "generate", "chat"):
        assert re.search(rf"^ +{command} ", printed, re.MULTILINE)


def test_export_checks_its_arguments_before_it_loads_torch(artifact: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for output, more in ((tmp_path, []), (tmp_path / "new", ["--state-mb", "nan"])):
        code = (
            "import sys; from edgeinfinite.cli import main; "
            f"assert main(['export', '--model', 'm', '--output', {str(output)!r}, *{more}]) == 2; "
            "assert 'torch' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
