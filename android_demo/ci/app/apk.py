"""Puts an APK together: resources, dex and native libraries, aligned for 16 KB pages.

    python apk.py RESOURCES_APK DEX_FOLDER LIBRARY_FOLDER OUTPUT JAR...

LIBRARY_FOLDER holds a folder per ABI; of the jars, which are in the dex, service files are taken,
and what libraries read at run time.
Libraries are stored, not compressed, and start at multiples
of 16 KB, so that the system maps them from the APK itself; `resources.arsc` starts at a multiple
of 4 as Android 11 demands. Every entry carries its alignment in the extra field that apksigner
keeps to. Times are fixed: the same inputs give the same bytes.
"""

from __future__ import annotations

import struct
import sys
import zipfile
from pathlib import Path

PAGE = 16384
WORD = 4
ALIGNMENT_FIELD = 0xD935
TIME = (1981, 1, 1, 1, 1, 2)
NO_RESOURCES = (".class", ".bin", ".kotlin_builtins", ".kotlin_module", ".so", ".dll", ".dylib")
"""Classes, what compilers and debuggers read, and the desktop's libraries."""


def main(resources: Path, dex: Path, libraries: Path, output: Path, *jars: Path) -> None:
    """See the module."""
    with zipfile.ZipFile(output, "w") as apk:
        with zipfile.ZipFile(resources) as source:
            for entry in source.infolist():
                stored = entry.compress_type == zipfile.ZIP_STORED
                add(apk, entry.filename, source.read(entry), WORD if stored else None)
        for file in sorted(dex.glob("classes*.dex")):
            add(apk, file.name, file.read_bytes(), None)
        for name, data in sorted((services(jars) | resources_of(jars)).items()):
            add(apk, name, data, None)
        for file in sorted(libraries.glob("*/*.so")):
            add(apk, f"lib/{file.parent.name}/{file.name}", file.read_bytes(), PAGE)


def services(jars: tuple[Path, ...]) -> dict[str, bytes]:
    """What `ServiceLoader` reads; providers of one service from several jars are joined."""
    found: dict[str, bytes] = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as source:
            for name in source.namelist():
                if name.startswith("META-INF/services/") and not name.endswith("/"):
                    found[name] = found.get(name, b"") + source.read(name).rstrip(b"\n") + b"\n"
    return found


def resources_of(jars: tuple[Path, ...]) -> dict[str, bytes]:
    """What libraries read with `getResourceAsStream`, as the Android Gradle plugin takes it."""
    found: dict[str, bytes] = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as source:
            for name in source.namelist():
                is_left_out = name.startswith("META-INF/") or name.endswith(("/", *NO_RESOURCES))
                if not is_left_out and name not in found:
                    found[name] = source.read(name)
    return found


def add(apk: zipfile.ZipFile, name: str, data: bytes, alignment: int | None) -> None:
    """Adds one entry; stored where an alignment is given, else deflated."""
    entry = zipfile.ZipInfo(name, TIME)
    entry.external_attr = 0o644 << 16
    if alignment is None:
        entry.compress_type = zipfile.ZIP_DEFLATED
    else:
        entry.compress_type = zipfile.ZIP_STORED
        position = apk.fp.tell() if apk.fp else 0
        data_at = position + 30 + len(name.encode()) + 6
        padding = -data_at % alignment
        entry.extra = struct.pack(f"<HHH{padding}x", ALIGNMENT_FIELD, 2 + padding, alignment)
    apk.writestr(entry, data)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        raise SystemExit(
            f"usage: {sys.argv[0]} RESOURCES_APK DEX_FOLDER LIBRARY_FOLDER OUTPUT JAR..."
        )
    main(*map(Path, sys.argv[1:]))
