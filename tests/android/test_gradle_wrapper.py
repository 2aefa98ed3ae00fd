"""Gradle's wrapper is whole, and of the version that the README names."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "android_demo"
FOLDER = PROJECT / "gradle/wrapper"


def test_the_jar_has_the_checksum_beside_it() -> None:
    expected, name = (FOLDER / "gradle-wrapper.jar.sha256").read_text(encoding="utf-8").split()
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected


def test_it_fetches_the_version_that_the_readme_names() -> None:
    properties = (FOLDER / "gradle-wrapper.properties").read_text(encoding="utf-8")
    version = re.search(r"gradle-([\d.]+)-bin\.zip", properties)
    assert version is not None
    assert f"Gradle {version[1]}" in (PROJECT / "README.md").read_text(encoding="utf-8")


def test_the_scripts_run_it() -> None:
    for name in ("gradlew", "gradlew.bat"):
        script = (PROJECT / name).read_text(encoding="utf-8")
        assert re.search(r"gradle[/\\]wrapper[/\\]gradle-wrapper\.jar", script), name
    assert (PROJECT / "gradlew").stat().st_mode & 0o111
