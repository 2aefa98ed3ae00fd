"""The check of a finished APK finds what would prevent it from installing or running."""

from __future__ import annotations

import struct
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "android_demo/ci/app"))

import apk as packer
import check_apk

BADGING = "\n".join(
    [
        "package: name='io.edgeinfinite.app' versionCode='1' versionName='0.1.0'",
        "minSdkVersion:'26'",
        "targetSdkVersion:'36'",
        "launchable-activity: name='io.edgeinfinite.app.ui.screens.HomeActivity'  label='' icon=''",
        "native-code: 'arm64-v8a' 'x86_64'",
    ]
)
PERMISSIONS = "package: io.edgeinfinite.app\n" + "".join(
    f"uses-permission: name='android.permission.{name}'\n"
    for name in ("FOREGROUND_SERVICE", "FOREGROUND_SERVICE_DATA_SYNC", "POST_NOTIFICATIONS")
)


def elf(machine: int, alignment: int = check_apk.PAGE) -> bytes:
    """The headers of a shared library with one segment to load."""
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<HH", header, 16, 3, machine)
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<HH", header, 54, 56, 1)
    segment = bytearray(56)
    struct.pack_into("<I", segment, 0, check_apk.ELF_LOAD)
    struct.pack_into("<Q", segment, 48, alignment)
    return bytes(header + segment)


def whole(folder: Path) -> dict[str, Path]:
    """What apk.py is given for an APK without a fault."""
    resources = folder / "resources.apk"
    with zipfile.ZipFile(resources, "w") as archive:
        archive.writestr("AndroidManifest.xml", b"manifest", zipfile.ZIP_DEFLATED)
        archive.writestr("resources.arsc", b"resources", zipfile.ZIP_STORED)
    (folder / "dex").mkdir()
    (folder / "dex/classes.dex").write_bytes(b"dex")
    for abi, machine in check_apk.MACHINES.items():
        for library in check_apk.LIBRARIES:
            file = folder / "lib" / abi / library
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(elf(machine))
    with zipfile.ZipFile(folder / "library.jar", "w") as jar:
        for name in (
            *check_apk.RESOURCES,
            "a/B.class",
            "META-INF/LICENSE",
            "a/builtins.kotlin_builtins",
        ):
            jar.writestr(name, b"data")
    return {
        "resources": resources,
        "dex": folder / "dex",
        "libraries": folder / "lib",
        "output": folder / "app.apk",
        "jar": folder / "library.jar",
    }


def problems(parts: dict[str, Path]) -> list[str]:
    packer.main(*parts.values())
    return list(check_apk.content_problems(parts["output"]))


def test_the_apk_of_apk_py_passes_the_check(tmp_path: Path) -> None:
    assert problems(whole(tmp_path)) == []


def test_of_jars_the_apk_has_what_libraries_read_and_no_classes(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    assert problems(parts) == []
    with zipfile.ZipFile(parts["output"]) as archive:
        names = set(archive.namelist())
    assert names >= check_apk.RESOURCES
    assert not {"a/B.class", "META-INF/LICENSE", "a/builtins.kotlin_builtins"} & names


def test_a_missing_resource_is_named(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    with zipfile.ZipFile(parts["jar"], "w") as jar:
        jar.writestr("other.txt", b"data")
    assert problems(parts) == ["org/commonmark/internal/util/entities.txt is missing"]


def test_a_library_that_is_missing_or_not_expected_is_named(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    (parts["libraries"] / "x86_64/libonnxruntime.so").rename(
        parts["libraries"] / "x86_64/libtelemetry.so"
    )
    (problem,) = problems(parts)
    assert "libonnxruntime.so" in problem
    assert "libtelemetry.so" in problem


def test_a_library_of_another_machine_is_named(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    file = parts["libraries"] / "arm64-v8a/libonnxruntime.so"
    file.write_bytes(elf(check_apk.MACHINES["x86_64"]))
    (problem,) = problems(parts)
    assert "arm64-v8a/libonnxruntime.so is for another machine" in problem


def test_segments_for_small_pages_are_named(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    file = parts["libraries"] / "arm64-v8a/libonnxruntime.so"
    file.write_bytes(elf(check_apk.MACHINES["arm64-v8a"], alignment=4096))
    (problem,) = problems(parts)
    assert "aligned to 4096" in problem


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compress_type": zipfile.ZIP_DEFLATED}, "compressed"),
        ({"compress_type": zipfile.ZIP_STORED}, "multiple of 16 KB"),
    ],
)
def test_a_library_that_cannot_be_mapped_is_named(
    tmp_path: Path, options: dict[str, int], expected: str
) -> None:
    parts = whole(tmp_path)
    name = "lib/x86_64/libonnxruntime.so"
    library = parts["libraries"] / "x86_64/libonnxruntime.so"
    data = library.read_bytes()
    library.unlink()
    packer.main(*parts.values())
    with zipfile.ZipFile(parts["output"], "a") as archive:
        archive.writestr(name, data, **options)
    assert any(expected in problem for problem in check_apk.content_problems(parts["output"]))


def signed(*ids: int) -> bytes:
    """Files, a signing block with these entries, a central directory, all of them empty."""
    entries = b"".join(struct.pack("<QI", 4, identity) for identity in ids)
    size = struct.pack("<Q", len(entries) + 24)
    block = size + entries + size + check_apk.SIGNING_BLOCK
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0, 0, 0, len(block), 0)
    return block + end


def test_a_block_of_dependency_information_is_named() -> None:
    signature, padding = 0x7109871A, 0x42726577
    assert list(check_apk.signing_block_problems(signed(signature, padding))) == []
    found = check_apk.signing_block_problems(signed(signature, check_apk.DEPENDENCY_INFO, padding))
    assert "dependency information" in next(found)
    unsigned = b"PK\x05\x06" + bytes(18)
    assert list(check_apk.signing_block_problems(unsigned)) == ["there is no signing block"]


def test_executorch_is_expected_in_its_own_flavour_alone(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    packer.main(*parts.values())
    _, libraries = check_apk.FLAVOURS["executorch"]
    (problem,) = check_apk.content_problems(parts["output"], libraries)
    assert "libexecutorch.so" in problem


def test_a_missing_dex_is_named(tmp_path: Path) -> None:
    parts = whole(tmp_path)
    (parts["dex"] / "classes.dex").unlink()
    assert problems(parts) == ["classes.dex is missing"]


def test_a_right_manifest_passes_the_check() -> None:
    assert list(check_apk.manifest_problems(BADGING, PERMISSIONS)) == []


@pytest.mark.parametrize(
    ("badging", "permissions", "expected"),
    [
        (
            BADGING,
            PERMISSIONS + "uses-permission: name='android.permission.INTERNET'\n",
            "INTERNET",
        ),
        (BADGING, PERMISSIONS.replace("POST_NOTIFICATIONS", "FOREGROUND_SERVICE"), "POST_NOTIF"),
        (BADGING.replace("'26'", "'21'"), PERMISSIONS, "minSdkVersion:'26'"),
        (BADGING.replace("'36'", "'34'"), PERMISSIONS, "targetSdkVersion:'36'"),
        (BADGING.replace(" 'x86_64'", ""), PERMISSIONS, "native-code"),
        (BADGING + "\napplication-debuggable", PERMISSIONS, "debuggable"),
    ],
)
def test_a_wrong_manifest_is_named(badging: str, permissions: str, expected: str) -> None:
    (problem,) = check_apk.manifest_problems(badging, permissions)
    assert expected in problem
