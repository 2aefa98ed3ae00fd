"""Checks a finished APK: manifest, permissions, signature, ABI folders, alignment.

python check_apk.py APK AAPT2 [FLAVOUR]
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

PAGE = 16384
LIBRARIES = {"libonnxruntime.so", "libonnxruntime4j_jni.so"}
FLAVOURS = {
    "onnx": ("io.edgeinfinite.app", LIBRARIES),
    "executorch": (
        "io.edgeinfinite.app.executorch",
        LIBRARIES | {"libc++_shared.so", "libexecutorch.so", "libfbjni.so"},
    ),
}
"""Name of the package, and its libraries."""
SIGNING_BLOCK = b"APK Sig Block 42"
DEPENDENCY_INFO = 0x504B4453
"""Id of the block in which Gradle's Android plugin lists libraries, encrypted for one store."""
RESOURCES = {"org/commonmark/internal/util/entities.txt"}
"""Without what a library reads at run time, an app fails where it is first used."""

PERMISSIONS = {
    f"android.permission.{name}"
    for name in ("FOREGROUND_SERVICE", "FOREGROUND_SERVICE_DATA_SYNC", "POST_NOTIFICATIONS")
}
"""For reading in the background, which is off by default; above all not INTERNET."""

MACHINES = {"arm64-v8a": 183, "x86_64": 62}  # ELF's e_machine
ELF_LOAD = 1


def main(apk: Path, aapt2: Path, flavour: str = "onnx") -> None:
    """Exits with every problem on a line of its own."""
    package, libraries = FLAVOURS[flavour]
    badging, permissions = dump(aapt2, "badging", apk), dump(aapt2, "permissions", apk)
    checks = [
        *manifest_problems(badging, permissions, package),
        *signature_problems(apk),
        *signing_block_problems(apk.read_bytes()),
        *content_problems(apk, libraries),
    ]
    if checks:
        raise SystemExit("\n".join(f"check_apk.py: {problem}" for problem in checks))
    print(
        f"{apk.name}: {apk.stat().st_size / 1e6:.1f} MB; manifest, signature, ABIs, alignment right"
    )


def dump(aapt2: Path, what: str, apk: Path) -> str:
    """What `aapt2 dump` says."""
    command = [str(aapt2), "dump", what, str(apk)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def manifest_problems(
    badging: str, permissions: str, package: str = "io.edgeinfinite.app"
) -> Iterator[str]:
    """What the manifest gets wrong."""
    expected = {
        f"package: name='{package}'",
        "minSdkVersion:'26'",
        "targetSdkVersion:'36'",
        "launchable-activity: name='io.edgeinfinite.app.ui.screens.HomeActivity'",
        "native-code: 'arm64-v8a' 'x86_64'",
    }
    for line in expected:
        if line not in badging:
            yield f"the manifest doesn't say {line}"
    asked = set(re.findall(r"permission: name='([^']+)'", permissions))
    for permission in sorted(asked - PERMISSIONS):
        yield f"the app asks for {permission}, which it doesn't need"
    for permission in sorted(PERMISSIONS - asked):
        yield f"the app doesn't ask for {permission}, which reading in the background needs"
    if "application-debuggable" in badging:
        yield "the app is debuggable"


def signature_problems(apk: Path) -> Iterator[str]:
    """Whether Android 8 and newer would accept the signature."""
    command = ["apksigner", "verify", "--verbose", "--min-sdk-version", "26", str(apk)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        yield f"the signature is wrong: {done.stderr.strip() or done.stdout.strip()}"
    elif "v2 scheme (APK Signature Scheme v2): true" not in done.stdout:
        yield "there is no signature of version 2"


def signing_block_problems(apk: bytes) -> Iterator[str]:
    """Whether there is a block of dependency information beside the signatures."""
    found = signing_block_ids(apk)
    if not found:
        yield "there is no signing block"
    if DEPENDENCY_INFO in found:
        yield "it has a block of dependency information, which F-Droid refuses"


def signing_block_ids(apk: bytes) -> list[int]:
    """Ids of the entries between the files and the central directory; empty without a block."""
    end = apk.rindex(b"PK\x05\x06")
    directory = struct.unpack_from("<I", apk, end + 16)[0]
    if apk[directory - 16 : directory] != SIGNING_BLOCK:
        return []
    size = struct.unpack_from("<Q", apk, directory - 24)[0]
    position, ids = directory - size, []
    while position < directory - 24:
        length, identity = struct.unpack_from("<QI", apk, position)
        ids.append(identity)
        position += 8 + length
    return ids


def content_problems(apk: Path, libraries: set[str] = LIBRARIES) -> Iterator[str]:
    """Missing files, and libraries that the system could not map from the APK."""
    with zipfile.ZipFile(apk) as archive, apk.open("rb") as raw:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        wanted = {f"lib/{abi}/{library}" for abi in MACHINES for library in libraries}
        found = {name for name in names if name.startswith("lib/")}
        if found != wanted:
            missing, extra = sorted(wanted - found), sorted(found - wanted)
            yield f"libraries missing {missing}, not expected {extra}"
        for name in ("classes.dex", "AndroidManifest.xml", "resources.arsc", *sorted(RESOURCES)):
            if name not in names:
                yield f"{name} is missing"
        for entry in entries:
            if entry.filename == "resources.arsc" and data_offset(raw, entry) % 4:
                yield "resources.arsc isn't aligned"
            if not entry.filename.endswith(".so"):
                continue
            if entry.compress_type != zipfile.ZIP_STORED:
                yield f"{entry.filename} is compressed; the system couldn't map it"
            if data_offset(raw, entry) % PAGE:
                yield f"{entry.filename} doesn't start at a multiple of 16 KB"
            yield from elf_problems(entry.filename, archive.read(entry))


def data_offset(raw: object, entry: zipfile.ZipInfo) -> int:
    """Where the entry's data starts in the file; the local header has its own extra field."""
    raw.seek(entry.header_offset + 26)  # type: ignore[attr-defined]
    name_length, extra_length = struct.unpack("<HH", raw.read(4))  # type: ignore[attr-defined]
    return entry.header_offset + 30 + name_length + extra_length


def elf_problems(name: str, data: bytes) -> Iterator[str]:
    """A library of another machine, or one whose segments need pages smaller than 16 KB."""
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine != MACHINES[name.split("/")[1]]:
        yield f"{name} is for another machine ({machine})"
    start = struct.unpack_from("<Q", data, 32)[0]
    size, count = struct.unpack_from("<HH", data, 54)
    for index in range(count):
        kind = struct.unpack_from("<I", data, start + index * size)[0]
        alignment = struct.unpack_from("<Q", data, start + index * size + 48)[0]
        if kind == ELF_LOAD and alignment % PAGE:
            yield f"{name} has a segment aligned to {alignment}, not to 16 KB"


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], *([name] for name in FLAVOURS)):
        raise SystemExit(f"usage: {sys.argv[0]} APK AAPT2 [{'|'.join(FLAVOURS)}]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
