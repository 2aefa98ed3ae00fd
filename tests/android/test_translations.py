"""The app says everything in every language that it ships."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

RESOURCES = Path(__file__).parents[2] / "android_demo/app/src/main/res"
ANDROID = "{http://schemas.android.com/apk/res/android}"
LANGUAGES = sorted(
    path.parent.name.removeprefix("values-") for path in RESOURCES.glob("values-*/strings.xml")
)


def strings(folder: str) -> dict[str, str]:
    root = ET.parse(RESOURCES / folder / "strings.xml").getroot()
    return {
        entry.attrib["name"]: entry.text or ""
        for entry in root.iter("string")
        if entry.get("translatable") != "false"
    }


def places(text: str) -> list[str]:
    return sorted(re.findall(r"%\d\$[sd]", text))


def test_two_languages_are_shipped_and_offered() -> None:
    config = ET.parse(RESOURCES / "xml/languages.xml").getroot()
    assert LANGUAGES == ["de"]
    assert {entry.attrib[f"{ANDROID}name"] for entry in config} == {"en", *LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_text_with_the_same_places(language: str) -> None:
    english, other = strings("values"), strings(f"values-{language}")
    assert set(other) == set(english)
    for name, text in english.items():
        assert places(other[name]) == places(text), name
        assert other[name].strip(), name
