"""The package as a whole: contents of the wheel, and rules for committed files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tree import ROOT, modules

MEGABYTE = 1 << 20


def committed_files() -> list[Path]:
    """What git has, or would take: new files that it doesn't ignore too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


# --------------------------------------------------------------------------------- wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the tree, without the network."""
    tree = tmp_path_factory.mktemp("tree")
    out = tmp_path_factory.mktemp("wheel")
    for file in committed_files():
        copy = tree / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    (tree / "README.md").touch()
    build = f"from setuptools import build_meta; print(build_meta.build_wheel({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_the_wheel_holds_every_module_of_the_tree(wheel: zipfile.ZipFile) -> None:
    expected = set()
    for name, file in modules():
        path = name.replace(".", "/")
        expected.add(f"{path}/__init__.py" if file.name == "__init__.py" else f"{path}.py")
    assert expected
    assert {name for name in wheel.namelist() if name.endswith(".py")} == expected


def test_the_wheel_tells_type_checkers_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    assert "edgeinfinite/py.typed" in wheel.namelist()


def test_the_wheel_holds_the_trained_gates_and_scorers(wheel: zipfile.ZipFile) -> None:
    trained = [
        f"edgeinfinite/{file.relative_to(ROOT).as_posix()}"
        for kind in ("gates", "scorers")
        for file in (ROOT / "models" / kind).glob("*")
        if file.suffix in (".safetensors", ".md")
    ]
    assert set(trained) <= set(wheel.namelist())


def test_the_wheel_holds_every_file_of_the_servers_page(wheel: zipfile.ZipFile) -> None:
    files = list((ROOT / "runtime_py" / "server" / "page").iterdir())
    assert {f"edgeinfinite/runtime_py/server/page/{file.name}" for file in files} <= {
        *wheel.namelist()
    }


def test_the_wheel_has_the_version_and_the_command(wheel: zipfile.ZipFile) -> None:
    import edgeinfinite

    info = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert f"\nVersion: {edgeinfinite.__version__}\n" in wheel.read(info).decode()
    points = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "edgeinfinite = edgeinfinite.cli:main" in points


def test_every_folder_with_modules_is_a_package() -> None:
    for name, file in modules():
        assert (file.parent / "__init__.py").is_file(), f"{name} is left out of the wheel"


# ------------------------------------------------------------------------ committed files

# Spelled so that this file doesn't find itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}~/-])/(?:work|root|home)/[\w.]")
REGISTRY = re.compile(
    r"\b(?:"
    + "|".join([r"py[p]i\.org", r"python[h]osted\.org", r"download\.py[t]orch\.org"])
    + "|"
    + "|".join([r"registry\.np[m]js\.org", r"repo1?\.mav[e]n", r"crates\.i[o]", r"deb\.deb[i]an"])
    + ")"
)


def test_no_committed_file_names_a_machines_path_or_a_registrys_host() -> None:
    wrong = []
    for file in committed_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE_PATH.search(line) or REGISTRY.search(line):
                wrong.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not wrong


def test_no_committed_file_is_over_five_megabytes() -> None:
    large = [file for file in committed_files() if file.stat().st_size > 5 * MEGABYTE]
    assert not large
