"""No chat leaves the phone: neither into a backup nor over to the next phone.

Since Android 12 a transfer from device to device ignores `allowBackup="false"` and goes by these
rules, in which no domain stands for another.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

MAIN = Path(__file__).parents[2] / "android_demo" / "app" / "src" / "main"
NAME = "{http://schemas.android.com/apk/res/android}"
PLACES = ("root", "file", "database", "sharedpref")
DOMAINS = {*PLACES, "external", *(f"device_{place}" for place in PLACES)}
"""All that the reference of `data-extraction-rules` lists."""


@pytest.mark.parametrize("section", ["cloud-backup", "device-transfer"])
def test_every_domain_is_left_out_as_a_whole(section):
    rules = ElementTree.parse(MAIN / "res/xml/data_extraction.xml").getroot()
    (found,) = rules.findall(section)
    assert {(entry.tag, entry.get("domain"), entry.get("path")) for entry in found} == {
        ("exclude", domain, ".") for domain in DOMAINS
    }


def test_the_manifest_names_the_rules_and_allows_no_backup():
    manifest = ElementTree.parse(MAIN / "AndroidManifest.xml").getroot()
    (application,) = manifest.findall("application")
    assert application.get(f"{NAME}dataExtractionRules") == "@xml/data_extraction"
    assert application.get(f"{NAME}allowBackup") == "false"
