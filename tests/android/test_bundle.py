"""The bundle of the libraries: a repository's layout, right sums, whole poms, signatures."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / "android_demo/ci"
_SPEC = importlib.util.spec_from_file_location("bundle", CI / "bundle.py")
assert _SPEC is not None and _SPEC.loader is not None
bundle = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bundle)

PAGE = "https://example.org/edgeinfinite"
NAMES = {
    "core": "edgeinfinite-core",
    "runtime-onnx": "edgeinfinite-onnx",
    "onnx-android": "edgeinfinite-onnx-android",
}
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>io.edgeinfinite</groupId><artifactId>{name}</artifactId><version>0.1.0</version>
<name>A library</name><description>It does something.</description>
<licenses><license><name>Apache-2.0</name></license></licenses>
<developers><developer><name>We</name></developer></developers>{more}
</project>"""


def built(folder: Path, more: str = "") -> Path:
    """What Maven leaves, as small files."""
    for module, name in NAMES.items():
        place = folder / module / bundle.POMS.get(module, bundle.FLATTENED)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(POM.format(name=name, more=more), encoding="utf-8")
        target = folder / module / "target"
        target.mkdir(exist_ok=True)
        contents = {f".{bundle.PACKAGINGS[module]}": "A.class", "-sources.jar": "A.kt"}
        for ending, entry in (contents | {"-javadoc.jar": "index.html"}).items():
            with zipfile.ZipFile(target / f"{name}-0.1.0{ending}", "w") as archive:
                archive.writestr(entry, name + ending)
    return folder


def entries(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    return built(tmp_path / "ci")


def test_every_library_has_its_files_where_maven_looks_for_them(
    build: Path, tmp_path: Path
) -> None:
    assert bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None) == [
        "nothing is signed: give a key of GnuPG"
    ]
    found = {name for name in entries(tmp_path / "a.zip") if not name.endswith(bundle.SUMS)}
    assert found == {
        f"io/edgeinfinite/{name}/0.1.0/{name}-0.1.0{ending}"
        for module, name in NAMES.items()
        for ending in (f".{bundle.PACKAGINGS[module]}", ".pom", "-sources.jar", "-javadoc.jar")
    }


def test_every_file_has_its_sums(build: Path, tmp_path: Path) -> None:
    bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None)
    files = entries(tmp_path / "a.zip")
    plain = [name for name in files if not name.endswith(bundle.SUMS)]
    assert len(files) == len(plain) * (1 + len(bundle.SUMS))
    for name in plain:
        assert files[f"{name}.md5"].decode() == hashlib.md5(files[name]).hexdigest()
        assert files[f"{name}.sha1"].decode() == hashlib.sha1(files[name]).hexdigest()
        assert files[f"{name}.sha512"].decode() == hashlib.sha512(files[name]).hexdigest()


def test_the_same_files_give_the_same_bytes(build: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        bundle.write_bundle(build, tmp_path / name, PAGE, None)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_the_poms_name_the_page_that_is_given_and_its_lack_is_said(
    build: Path, tmp_path: Path
) -> None:
    bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None)
    open_points = bundle.write_bundle(build, tmp_path / "b.zip", None, None)
    assert any("no url and no scm" in point for point in open_points)
    for name, expected in (("a.zip", PAGE), ("b.zip", None)):
        poms = [data for file, data in entries(tmp_path / name).items() if file.endswith(".pom")]
        assert len(poms) == len(NAMES)
        for pom in poms:
            project = ET.fromstring(pom)
            assert project.findtext(f"{bundle.POM}url") == expected
            assert project.findtext(f"{bundle.POM}scm/{bundle.POM}url") == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace("<description>It does something.</description>", ""), "no desc"),
        (lambda text: text.replace("0.1.0", "${version}"), "needs its parent"),
        (
            lambda text: text.replace("<name>A", "<parent><version>1</version></parent><name>A"),
            "nee",
        ),
        (lambda text: text.replace("<groupId>io.edgeinfinite</groupId>", ""), "no groupId"),
    ],
)
def test_a_pom_that_no_repository_takes_is_refused(
    build: Path, tmp_path: Path, change, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = build / "core" / bundle.FLATTENED
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(bundle.BundleError, match=expected):
        bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None)
    assert not (tmp_path / "a.zip").exists()


def test_missing_and_empty_archives_are_refused(build: Path, tmp_path: Path) -> None:
    sources = build / "core/target/edgeinfinite-core-0.1.0-sources.jar"
    with zipfile.ZipFile(sources, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    with pytest.raises(bundle.BundleError, match=r"holds no \.kt"):
        bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None)
    sources.unlink()
    with pytest.raises(bundle.BundleError, match=r"isn't there; run build\.sh bundle"):
        bundle.write_bundle(build, tmp_path / "a.zip", PAGE, None)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A home of GnuPG with one key, which has a passphrase."""
    if shutil.which("gpg") is None:
        pytest.skip("GnuPG isn't installed")
    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="gpg") as home:
        monkeypatch.setenv("GNUPGHOME", home)
        command = ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "secret"]
        command += ["--quick-generate-key", "tests@example.org", "ed25519", "sign"]
        subprocess.run(command, check=True, capture_output=True)
        yield "tests@example.org"
        subprocess.run(["gpgconf", "--kill", "all"], check=False, env=os.environ)


def test_a_key_signs_every_file_and_gpg_confirms_it(
    build: Path, tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(bundle.PASSPHRASE, "secret")
    assert bundle.write_bundle(build, tmp_path / "a.zip", PAGE, keys) == []
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "repository")
    signatures = list((tmp_path / "repository").rglob("*.asc"))
    assert len(signatures) == 4 * len(NAMES)
    for file in signatures:
        subprocess.run(["gpg", "--verify", file, file.with_suffix("")], check=True)


def test_a_key_that_gpg_has_not_is_refused_in_one_line(
    build: Path, tmp_path: Path, keys: str, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setattr(bundle, "HERE", build)
    with pytest.raises(SystemExit) as exit_:
        bundle.main([str(tmp_path / "a.zip"), "--key", "nobody@example.org"])
    assert exit_.value.code == 2
    assert "gpg doesn't sign with nobody@example.org" in capsys.readouterr().err


def test_the_modules_are_those_that_gradle_publishes() -> None:
    gradle = {
        module: script.read_text(encoding="utf-8").partition('artifactId = "')[2].partition('"')[0]
        for script in CI.parent.glob("*/build.gradle.kts")
        if "publishing {\n    publications" in script.read_text(encoding="utf-8")
        for module in [script.parent.name]
    }
    assert gradle == NAMES and set(bundle.PACKAGINGS) == set(NAMES)
