"""Packs the classes of onnx-android as an AAR, as the Android Gradle plugin would.

    python aar.py CLASSES MODULE MIN_SDK OUTPUT

Holds the manifest with the module's namespace, `classes.jar`, an empty `R.txt` and, as
`proguard.txt`, the rules for those who shrink their app. Times are fixed: the same inputs give the
same bytes.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from pathlib import Path

TIME = (1981, 1, 1, 1, 1, 2)
METADATA = "META-INF/com/android/build/gradle/aar-metadata.properties"


def main(classes: Path, module: Path, min_sdk: str, output: Path) -> None:
    """See the module."""
    entries = {
        "AndroidManifest.xml": manifest(module, min_sdk),
        "R.txt": b"",
        "classes.jar": jar(classes),
        "proguard.txt": (module / "consumer-rules.pro").read_bytes(),
        METADATA: b"aarFormatVersion=1.0\naarMetadataVersion=1.0\nminCompileSdk=1\n",
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(zipped(entries))


def manifest(module: Path, min_sdk: str) -> bytes:
    """The module's manifest with what Gradle takes from its script."""
    script = (module / "build.gradle.kts").read_text(encoding="utf-8")
    namespace = re.search(r'namespace = "([\w.]+)"', script)
    if namespace is None:
        raise SystemExit(f"aar.py: {module}/build.gradle.kts has no namespace")
    text = (module / "src/main/AndroidManifest.xml").read_text(encoding="utf-8")
    sdk = f'<uses-sdk android:minSdkVersion="{min_sdk}" />'
    return text.replace(" />", f' package="{namespace[1]}">\n    {sdk}\n</manifest>').encode()


def jar(classes: Path) -> bytes:
    """The compiled classes."""
    files = [file for file in sorted(classes.rglob("*")) if file.is_file()]
    if not files:
        raise SystemExit(f"aar.py: {classes} holds no classes")
    return zipped({file.relative_to(classes).as_posix(): file.read_bytes() for file in files})


def zipped(entries: dict[str, bytes]) -> bytes:
    """A zip archive in memory."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(f"usage: {sys.argv[0]} CLASSES MODULE MIN_SDK OUTPUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
