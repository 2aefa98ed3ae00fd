"""What stores show of the app: whole, within their limits, and true."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

PROJECT = Path(__file__).parents[2] / "android_demo"
TEXTS = PROJECT / "fastlane/metadata/android/en-US"
PNG = b"\x89PNG\r\n"


@pytest.mark.parametrize(
    ("name", "most"),
    [("title.txt", 30), ("short_description.txt", 80), ("full_description.txt", 4000)],
)
def test_texts_fit_into_their_fields(name: str, most: int) -> None:
    assert 0 < len((TEXTS / name).read_text(encoding="utf-8").strip()) <= most


def test_the_version_has_a_changelog() -> None:
    script = (PROJECT / "app/build.gradle.kts").read_text(encoding="utf-8")
    code = next(line.split("=")[1].strip() for line in script.splitlines() if "versionCode" in line)
    changes = (TEXTS / f"changelogs/{code}.txt").read_text(encoding="utf-8")
    assert 0 < len(changes) <= 500


@pytest.mark.parametrize("kind", ["phoneScreenshots", "tenInchScreenshots"])
def test_pictures_are_those_of_the_readme(kind: str) -> None:
    pictures = sorted((TEXTS / "images" / kind).iterdir())
    assert len(pictures) >= 3
    for picture in pictures:
        assert picture.resolve().parent == PROJECT / "screenshots"
        assert picture.read_bytes().startswith(PNG)


def test_the_description_tells_the_truth_about_permissions() -> None:
    manifest = ElementTree.parse(PROJECT / "app/src/main/AndroidManifest.xml").getroot()
    text = (TEXTS / "full_description.txt").read_text(encoding="utf-8")
    names = [next(iter(entry.attrib.values())) for entry in manifest.findall("uses-permission")]
    assert ("can't reach the network" in text) == ("android.permission.INTERNET" not in names)
    assert ("to show notifications" in text) == ("android.permission.POST_NOTIFICATIONS" in names)
