"""Writes the files of a release: the app, an artifact as a zip archive, their sums, and a page.

    python scripts/release.py APK ARTIFACT OUTPUT --certificate SHA256 [--debug-key]

`scripts/release.sh` (`make release`) makes the APK and the demo's artifact first.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import zipfile
from pathlib import Path

from edgeinfinite import __version__
from edgeinfinite.artifact.manifest import MANIFEST_FILE, Manifest, load_manifest
from edgeinfinite.runtime_py.session.state import state_bytes

SUMS = "SHA256SUMS"
PAGE = "README.md"
TIME = (1981, 1, 1, 1, 1, 2)
"""Of every entry, so that the same artifact gives the same bytes."""

DEBUG_KEY = """\
**The app is signed with a key that was made for this build alone**, to try it out. A build
with another key can't update it: Android asks you to remove the app, with its chats, first.
"""
TEXT = """# EdgeInfinite {version}

{debug}| file | what it is | bytes |
| --- | --- | ---: |
{rows}

## What to do

1. Check what you downloaded: `sha256sum --check {sums}`.
2. Open `{apk}` on the phone (Android 8 or newer, ARM64 or x86-64) and allow the installation.
   The certificate's SHA-256 is `{certificate}`
   (`apksigner verify --print-certs {apk}`).
3. Download `{archive}` to the phone; don't unpack it.
4. In the app: **Import a model**, *From a zip archive*, and choose `{archive}`. Every file in it is
   compared with its sum. You may delete the download then.
5. Touch the model, attach a text with the paper clip, and ask about it.

The model is {backbone}, weights {recipe}; its state takes {state:.1f} MB for a text of any length.
The app can't reach the network. Other models: `edgeinfinite export` on a computer.
"""


def main(arguments: list[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apk", type=Path)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--certificate", required=True, help="SHA-256 of the APK's certificate")
    parser.add_argument("--debug-key", action="store_true", help="say that the key is no release's")
    chosen = parser.parse_args(arguments)
    write_release(
        chosen.apk, chosen.artifact, chosen.output, chosen.certificate, is_debug=chosen.debug_key
    )
    print(f"{chosen.output}: {', '.join(sorted(file.name for file in chosen.output.iterdir()))}")
    if chosen.debug_key:
        print("release: no EDGEINFINITE_KEYSTORE, so the app is signed with a key for trying out")


def write_release(
    apk: Path, artifact: Path, output: Path, certificate: str, *, is_debug: bool
) -> None:
    """Replaces `output` by the files of a release.

    Args:
        apk: the signed app.
        artifact: an artifact's folder; every file of it is checked.
        certificate: the SHA-256 of the APK's certificate, for the page.
        is_debug: whether the key is no release's, which the page says first.

    Raises:
        EdgeInfiniteError: the artifact is damaged.
    """
    manifest = load_manifest(artifact)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    app = output / f"edgeinfinite-{__version__}.apk"
    shutil.copyfile(apk, app)
    name = f"{manifest.backbone.name.split('/')[-1].lower()}-{manifest.quantization.recipe}"
    archive = output / f"{name}.zip"
    write_archive(artifact, manifest, archive)
    files = {app: "the app, signed", archive: "the model, for the app"}
    sums = [f"{sha256(file)}  {file.name}\n" for file in files]
    (output / SUMS).write_text("".join(sums), encoding="utf-8")
    rows = [f"| `{file.name}` | {what} | {file.stat().st_size:,} |" for file, what in files.items()]
    page = TEXT.format(
        version=__version__,
        debug=f"{DEBUG_KEY}\n" if is_debug else "",
        rows="\n".join([*rows, f"| `{SUMS}` | their SHA-256 | |"]),
        sums=SUMS,
        apk=app.name,
        archive=archive.name,
        certificate=certificate,
        backbone=manifest.backbone.name,
        recipe=manifest.quantization.recipe,
        state=state_bytes(manifest.state) / 1e6,
    )
    (output / PAGE).write_text(page, encoding="utf-8")


def write_archive(artifact: Path, manifest: Manifest, target: Path) -> None:
    """The artifact's files at the top of a zip archive: the manifest, and what it names."""
    names = [MANIFEST_FILE, *sorted(manifest.files)]
    if (artifact / "README.md").is_file():
        names.append("README.md")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with (artifact / name).open("rb") as source, archive.open(entry, "w") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)


def sha256(file: Path) -> str:
    """Of a file's contents, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
