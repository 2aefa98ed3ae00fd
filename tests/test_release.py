"""What `make release` writes: whole, checkable, and told truly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from manifest_edit import edit_manifest
from test_scripts import SCRIPTS, script
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError

CERTIFICATE = "ab" * 32


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("release") / "tiny")


@pytest.fixture(scope="module")
def executorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page needs of an artifact is its manifest and sums; its graphs are run elsewhere."""
    folder = tiny_artifact(tmp_path_factory.mktemp("executorch") / "tiny")
    edit_manifest(folder, lambda manifest: manifest.update(backend="executorch"))
    return folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory, artifact: Path, executorch: Path) -> Path:
    """A folder with the app, the packages and a bundle."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "app.apk").write_bytes(b"PK the app")
    (folder / "python").mkdir()
    for name in ("edgeinfinite-0.1.0-py3-none-any.whl", "edgeinfinite-0.1.0.tar.gz"):
        (folder / "python" / name).write_bytes(name.encode())
    write_bundle(folder / "maven.zip", pom=b"<project><scm></scm></project>", signed=True)
    return folder


def write_bundle(file: Path, *, pom: bytes, signed: bool) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("io/a/1/a-1.pom", pom)
        if signed:
            archive.writestr("io/a/1/a-1.pom.asc", b"signature")


def release(
    parts: Path, artifact: Path, executorch: Path, output: Path, *options: str, bundle: str = ""
) -> Path:
    given = {
        "--executorch": executorch,
        "--python": parts / "python",
        "--bundle": bundle or parts / "maven.zip",
        "--certificate": CERTIFICATE,
    }
    words = [str(word) for pair in given.items() for word in pair]
    script("release").main([str(parts / "app.apk"), str(artifact), str(output), *words, *options])
    return output


def test_a_release_has_every_part_and_sums_that_sha256sum_confirms(
    parts: Path, artifact: Path, executorch: Path, tmp_path: Path
) -> None:
    output = release(parts, artifact, executorch, tmp_path / "release")
    names = {file.name for file in output.iterdir()}
    stem = load_manifest(artifact).backbone.name.lower() + "-none"
    assert names == {
        "edgeinfinite-0.1.0.apk",
        f"{stem}-onnx.zip",
        f"{stem}-executorch.zip",
        "edgeinfinite-0.1.0-py3-none-any.whl",
        "edgeinfinite-0.1.0.tar.gz",
        "edgeinfinite-0.1.0-maven.zip",
        "SHA256SUMS",
        "README.md",
    }
    assert (output / "edgeinfinite-0.1.0.apk").read_bytes() == b"PK the app"
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=output,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(": OK") == len(names) - 2
    for folder, backend in ((artifact, "onnx"), (executorch, "executorch")):
        with zipfile.ZipFile(output / f"{stem}-{backend}.zip") as source:
            source.extractall(tmp_path / backend)
        assert load_manifest(tmp_path / backend) == load_manifest(folder)


def test_the_same_inputs_give_the_same_bytes(
    parts: Path, artifact: Path, executorch: Path, tmp_path: Path
) -> None:
    first, second = (release(parts, artifact, executorch, tmp_path / name) for name in ("a", "b"))
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes(), file.name


def test_the_page_names_every_file_the_certificate_and_what_no_release_has(
    parts: Path, artifact: Path, executorch: Path, tmp_path: Path
) -> None:
    output = release(parts, artifact, executorch, tmp_path / "release")
    page = (output / "README.md").read_text(encoding="utf-8")
    for file in output.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in page
    assert CERTIFICATE in page
    told = ("made for this build alone", "libraries aren't signed", "name no project's address")
    assert not any(words in page for words in told)
    # Only Gradle's own braces.
    assert not re.search(r"[{}]", re.sub(r"\{ (maven|implementation)\(.*\) \}", "", page))
    write_bundle(tmp_path / "bare.zip", pom=b"<project/>", signed=False)
    bare = str(tmp_path / "bare.zip")
    trial = release(parts, artifact, executorch, tmp_path / "t", "--debug-key", bundle=bare)
    page = (trial / "README.md").read_text(encoding="utf-8")
    assert all(words in page for words in told)


def test_a_damaged_artifact_is_not_released(
    parts: Path, artifact: Path, executorch: Path, tmp_path: Path
) -> None:
    damaged = Path(shutil.copytree(artifact, tmp_path / "damaged"))
    file = next(damaged.glob("*.data"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(EdgeInfiniteError):
        release(parts, damaged, executorch, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_an_artifact_of_the_other_back_end_and_a_missing_wheel_are_refused(
    parts: Path, artifact: Path, executorch: Path, tmp_path: Path
) -> None:
    with pytest.raises(EdgeInfiniteError, match="is for onnx, not for executorch"):
        release(parts, artifact, artifact, tmp_path / "release")
    poor = Path(shutil.copytree(parts, tmp_path / "poor"))
    next((poor / "python").glob("*.whl")).unlink()
    with pytest.raises(EdgeInfiniteError, match=r"0 files \*.whl, not one"):
        release(poor, artifact, executorch, tmp_path / "release")
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RELEASE_PAGE": "file:///etc"}, "RELEASE_PAGE is file:///etc; give an address"),
        ({"PROJECT_PAGE": "ours"}, "PROJECT_PAGE is ours; give an address"),
        ({"EDGEINFINITE_GPG_KEY": "nobody"}, "gpg has no secret key"),
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
