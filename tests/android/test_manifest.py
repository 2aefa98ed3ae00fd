"""What the app's manifest opens to other apps, and what it asks for."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

MANIFEST = Path(__file__).parents[2] / "android_demo/app/src/main/AndroidManifest.xml"
ANDROID = "{http://schemas.android.com/apk/res/android}"
ROOT = ET.parse(MANIFEST).getroot()
SCREENS = ".ui.screens."


def components() -> dict[str, ET.Element]:
    kinds = ("activity", "activity-alias", "service", "receiver", "provider")
    return {
        entry.attrib[f"{ANDROID}name"].removeprefix(SCREENS): entry
        for kind in kinds
        for entry in ROOT.iter(kind)
    }


def test_only_the_first_screen_and_what_takes_documents_are_open_to_other_apps() -> None:
    exported = {
        name for name, entry in components().items() if entry.get(f"{ANDROID}exported") != "false"
    }
    assert exported == {"HomeActivity", "OpenActivity"}


def test_beside_activities_there_is_the_service_that_reads_on_with_its_permissions_alone() -> None:
    services = {name: entry for name, entry in components().items() if entry.tag != "activity"}
    assert list(services) == [".background.ReadingService"]
    (service,) = services.values()
    assert service.get(f"{ANDROID}foregroundServiceType") == "dataSync"
    asked = [
        entry.attrib[f"{ANDROID}name"].removeprefix("android.permission.")
        for entry in ROOT
        if entry.tag.startswith("uses-permission")
    ]
    assert asked == ["FOREGROUND_SERVICE", "FOREGROUND_SERVICE_DATA_SYNC", "POST_NOTIFICATIONS"]


def test_documents_are_opened_by_content_alone_never_by_a_path() -> None:
    schemes = {data.get(f"{ANDROID}scheme") for data in ROOT.iter("data")} - {None}
    assert schemes == {"content"}
