"""What `make release` writes beside the app: whole, checkable, and told truly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from test_scripts import SCRIPTS, script
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError

CERTIFICATE = "ab" * 32


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("release") / "tiny")


@pytest.fixture(scope="module")
def apk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("apk") / "edgeinfinite.apk"
    file.write_bytes(b"PK the app")
    return file


def release(apk: Path, artifact: Path, output: Path, *options: str) -> Path:
    script("release").main(
        [str(apk), str(artifact), str(output), "--certificate", CERTIFICATE, *options]
    )
    return output


def test_a_release_has_the_app_the_artifact_and_sums_that_sha256sum_confirms(
    apk: Path, artifact: Path, tmp_path: Path
) -> None:
    output = release(apk, artifact, tmp_path / "release")
    names = {file.name for file in output.iterdir()}
    (archive,) = output.glob("*.zip")
    assert names == {"edgeinfinite-0.1.0.apk", archive.name, "SHA256SUMS", "README.md"}
    assert (output / "edgeinfinite-0.1.0.apk").read_bytes() == apk.read_bytes()
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=output,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(": OK") == 2
    with zipfile.ZipFile(archive) as source:
        source.extractall(tmp_path / "unpacked")
    assert load_manifest(tmp_path / "unpacked") == load_manifest(artifact)


def test_the_same_inputs_give_the_same_bytes(apk: Path, artifact: Path, tmp_path: Path) -> None:
    first, second = (release(apk, artifact, tmp_path / name) for name in ("a", "b"))
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes(), file.name


def test_the_page_names_every_file_the_certificate_and_a_key_that_is_no_releases(
    apk: Path, artifact: Path, tmp_path: Path
) -> None:
    output = release(apk, artifact, tmp_path / "release")
    page = (output / "README.md").read_text(encoding="utf-8")
    for file in output.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in page
    assert CERTIFICATE in page
    assert "made for this build alone" not in page
    assert not re.search(r"[{}]", page)
    trial = release(apk, artifact, tmp_path / "trial", "--debug-key")
    assert "made for this build alone" in (trial / "README.md").read_text(encoding="utf-8")


def test_a_damaged_artifact_is_not_released(apk: Path, artifact: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(artifact, tmp_path / "damaged"))
    file = next(damaged.glob("*.data"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(EdgeInfiniteError):
        release(apk, damaged, tmp_path / "release")
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RELEASE_PAGE": "file:///etc"}, "RELEASE_PAGE is file:///etc; give an address"),
        ({"EDGEINFINITE_KEYSTORE": "/gone"}, "EDGEINFINITE_KEYSTORE names /gone"),
        ({"EDGEINFINITE_KEYSTORE": "KEY"}, "EDGEINFINITE_KEYSTORE_PASSWORD isn't set"),
    ],
)
def test_a_bad_address_or_key_is_refused_before_anything_is_built(
    variables: dict[str, str], expected: str, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"key")
    given = {name: value.replace("KEY", str(key)) for name, value in variables.items()}
    plain = {name: value for name, value in os.environ.items() if "EDGEINFINITE_KEY" not in name}
    done = subprocess.run(
        [SCRIPTS / "release.sh"], env=plain | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert expected in done.stderr
