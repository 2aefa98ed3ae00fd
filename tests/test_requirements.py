"""requirements/ covers what pyproject.toml asks for, and the bill names what the lock installs."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tree import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from lock import EXTRAS

AGAIN = "run: python scripts/lock.py"


def wanted(project: dict, extras: tuple[str, ...]) -> list[Requirement]:
    """What the package needs with some of its extras; extras of extras are followed."""
    found = [Requirement(line) for line in project["dependencies"]]
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            requirement = Requirement(line)
            if requirement.name == project["name"]:
                found += wanted({**project, "dependencies": []}, tuple(requirement.extras))
            else:
                found.append(requirement)
    return found


def locked(path: Path) -> dict[str, list[tuple[Requirement, int]]]:
    """A lock's pins by name, each with its number of hashes; markers may give several versions."""
    pins: dict[str, list[tuple[Requirement, int]]] = {}
    for entry in re.split(r"\n(?=\w)", path.read_text(encoding="utf-8")):
        if entry.startswith("#"):
            continue
        line, *rest = entry.replace("\\\n", "").split("--hash=sha256:")
        requirement = Requirement(line.strip())
        pins.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(rest)))
    return pins


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_covers_what_the_package_asks_for(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = locked(ROOT / "requirements" / f"{name}.txt")
    assert len(wanted(project, EXTRAS[name])) > 10
    for requirement in wanted(project, EXTRAS[name]):
        versions = [
            next(iter(pin.specifier)).version
            for pin, _ in pins.get(canonicalize_name(requirement.name), [])
        ]
        assert versions, f"{name}.txt lacks {requirement}; {AGAIN}"
        for version in versions:
            assert requirement.specifier.contains(version, prereleases=True), (
                f"{name}.txt has {requirement.name} {version}, not {requirement}; {AGAIN}"
            )


@pytest.mark.parametrize("name", EXTRAS)
def test_every_package_of_a_lock_is_one_version_with_hashes(name: str) -> None:
    for pins in locked(ROOT / "requirements" / f"{name}.txt").values():
        for pin, hashes in pins:
            assert re.fullmatch(r"==[^,*]+", str(pin.specifier)) and hashes, f"{pin}; {AGAIN}"


def test_the_bill_of_materials_names_the_locked_packages() -> None:
    bill = json.loads((ROOT / "requirements" / "run.cdx.json").read_text(encoding="utf-8"))
    assert bill["bomFormat"] == "CycloneDX"
    named = {(canonicalize_name(part["name"]), part["version"]) for part in bill["components"]}
    pins = locked(ROOT / "requirements" / "run.txt")
    versions = {
        (name, next(iter(pin.specifier)).version)
        for name, found in pins.items()
        for pin, _ in found
    }
    assert named <= versions, f"{sorted(named - versions)}; {AGAIN}"
    # What markers keep from one system's environment, such as colorama, may be missing.
    always = {
        (name, next(iter(pin.specifier)).version)
        for name, found in pins.items()
        for pin, _ in found
        if pin.marker is None
    }
    assert always <= named, f"{sorted(always - named)}; {AGAIN}"


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").iterdir()), ids=lambda p: p.name)
def test_no_file_names_a_registry_or_a_path_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(
        r"index-url|find-links|file://|\bfiles\.pythonhosted|/(tmp|home|root)/", text
    )
    if path.suffix == ".txt":
        assert "://" not in text
