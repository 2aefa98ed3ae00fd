"""Writes the files of a release: app, artifacts, packages, their sums, and a page.

    python scripts/release.py APK ARTIFACT OUTPUT --executorch ARTIFACT --python FOLDER
        --bundle FILE --certificate SHA256 [--debug-key]

`scripts/release.sh` (`make release`) makes what is given here first.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite import __version__
from edgeinfinite.artifact.manifest import MANIFEST_FILE, Manifest, load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.session.state import state_bytes

SUMS = "SHA256SUMS"
PAGE = "README.md"
TIME = (1981, 1, 1, 1, 1, 2)
"""Of every entry, so that the same artifact gives the same bytes."""

DEBUG_KEY = """\
**The app is signed with a key that was made for this build alone**, to try it out. A build
with another key can't update it: Android asks you to remove the app, with its chats, first.

"""
UNSIGNED = """\
**The libraries aren't signed**, so Maven Central wouldn't take them; a folder or a server of your
own does.
"""
NO_ADDRESS = """\
**Their poms name no project's address** (`url`, `scm`), which Maven Central asks for.
"""
TEXT = """# EdgeInfinite {version}

{debug}| file | what it is | bytes |
| --- | --- | ---: |
{rows}

Nothing of this stands in a registry: not on a Python index, not in Maven Central, not in a store
for apps. These files are all there is. Check what you downloaded first:
`sha256sum --check {sums}`.

## On a phone

1. Open `{apk}` on the phone (Android 8 or newer, ARM64 or x86-64) and allow the installation.
   The certificate's SHA-256 is `{certificate}`
   (`apksigner verify --print-certs {apk}`).
2. Download `{archive}` to the phone; don't unpack it.
3. In the app: **Import a model**, *From a zip archive*, and choose `{archive}`. Every file in it is
   compared with its sum. You may delete the download then.
4. Touch the model, attach a text with the paper clip, and ask about it.

The model is {backbone}, weights {recipe}; its state takes {state:.1f} MB for a text of any length.
The app can't reach the network. Other models: `edgeinfinite export` on a computer.

## On a computer

With Python 3.11 or newer, in the folder of these files:

    pip install './{wheel}[runtime,chat,documents]'
    unzip -d model {archive}
    edgeinfinite chat model

`{executorch_archive}` is the same model for ExecuTorch. `pip install './{wheel}[executorch]'`
brings what runs it, PyTorch too. The released app doesn't run it.

## In an app of your own

    unzip -d repository {bundle}

and in Gradle's settings, beside `google()` and `mavenCentral()`,
`repositories {{ maven(uri("repository")) }}`; then

    dependencies {{ implementation("io.edgeinfinite:edgeinfinite-onnx-android:{version}") }}

{bundle_notes}"""


@dataclass(frozen=True)
class Parts:
    """What a release is made of.

    apk: the signed app.
    artifact, executorch: the folders of the model's artifacts, one for each back end.
    python: a folder with one wheel and one sdist.
    bundle: the libraries, as `android_demo/ci/bundle.py` writes them.
    """

    apk: Path
    artifact: Path
    executorch: Path
    python: Path
    bundle: Path


def main(arguments: list[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apk", type=Path)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--executorch", type=Path, required=True, help="the artifact for ExecuTorch"
    )
    parser.add_argument("--python", type=Path, required=True, help="folder of wheel and sdist")
    parser.add_argument("--bundle", type=Path, required=True, help="the bundle of the libraries")
    parser.add_argument("--certificate", required=True, help="SHA-256 of the APK's certificate")
    parser.add_argument("--debug-key", action="store_true", help="say that the key is no release's")
    chosen = parser.parse_args(arguments)
    parts = Parts(chosen.apk, chosen.artifact, chosen.executorch, chosen.python, chosen.bundle)
    write_release(parts, chosen.output, chosen.certificate, is_debug=chosen.debug_key)
    print(f"{chosen.output}: {', '.join(sorted(file.name for file in chosen.output.iterdir()))}")
    if chosen.debug_key:
        print("release: no EDGEINFINITE_KEYSTORE, so the app is signed with a key for trying out")


def write_release(parts: Parts, output: Path, certificate: str, *, is_debug: bool) -> None:
    """Replaces `output` by the files of a release.

    Args:
        parts: what it is made of; every file of the artifacts is checked.
        output: the folder to write.
        certificate: the SHA-256 of the APK's certificate, for the page.
        is_debug: whether the key is no release's, which the page says first.

    Raises:
        EdgeInfiniteError: an artifact is damaged or of the wrong back end, or a part is missing.
    """
    artifacts = {"onnx": parts.artifact, "executorch": parts.executorch}
    manifests = {backend: _manifest(folder, backend) for backend, folder in artifacts.items()}
    wheel, sdist = _only(parts.python, "*.whl"), _only(parts.python, "*.tar.gz")
    notes = bundle_notes(parts.bundle)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    app = output / f"edgeinfinite-{__version__}.apk"
    bundle = output / f"edgeinfinite-{__version__}-maven.zip"
    copies = {app: parts.apk, bundle: parts.bundle}
    copies |= {output / file.name: file for file in (wheel, sdist)}
    for copy, file in copies.items():
        shutil.copyfile(file, copy)
    archives = {backend: output / archive_name(one) for backend, one in manifests.items()}
    for backend, archive in archives.items():
        write_archive(artifacts[backend], manifests[backend], archive)
    files = {
        app: "the app, signed",
        archives["onnx"]: "the model, for the app and for computers",
        archives["executorch"]: "the model for ExecuTorch",
        output / wheel.name: "the Python package",
        output / sdist.name: "its sources",
        bundle: "the libraries for an app of your own, as a Maven repository",
    }
    sums = [f"{sha256(file)}  {file.name}\n" for file in files]
    (output / SUMS).write_text("".join(sums), encoding="utf-8")
    rows = [f"| `{file.name}` | {what} | {file.stat().st_size:,} |" for file, what in files.items()]
    manifest = manifests["onnx"]
    page = TEXT.format(
        version=__version__,
        debug=DEBUG_KEY if is_debug else "",
        rows="\n".join([*rows, f"| `{SUMS}` | their SHA-256 | |"]),
        sums=SUMS,
        apk=app.name,
        archive=archives["onnx"].name,
        executorch_archive=archives["executorch"].name,
        wheel=wheel.name,
        bundle=bundle.name,
        bundle_notes=notes or "Sources, documentation and signatures are in the bundle.\n",
        certificate=certificate,
        backbone=manifest.backbone.name,
        recipe=manifest.quantization.recipe,
        state=state_bytes(manifest.state) / 1e6,
    )
    (output / PAGE).write_text(page, encoding="utf-8")


def _manifest(artifact: Path, backend: str) -> Manifest:
    manifest = load_manifest(artifact)
    if manifest.backend != backend:
        raise EdgeInfiniteError(
            f"{artifact} is for {manifest.backend}, not for {backend}; export it for {backend}"
        )
    return manifest


def _only(folder: Path, pattern: str) -> Path:
    """The one file of a folder that fits."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise EdgeInfiniteError(
            f"{folder} holds {len(found)} files {pattern}, not one; run scripts/release_python.sh"
        )
    return found[0]


def bundle_notes(bundle: Path) -> str:
    """What a repository would miss in the bundle, for the page; empty if nothing."""
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        poms = [archive.read(name) for name in names if name.endswith(".pom")]
    if not poms:
        raise EdgeInfiniteError(f"{bundle} holds no pom; run android_demo/ci/build.sh bundle")
    signed = {name.removesuffix(".asc") for name in names if name.endswith(".asc")}
    notes = "" if all(name in signed for name in names if name.endswith(".pom")) else UNSIGNED
    return notes + ("" if all(b"<scm>" in pom for pom in poms) else NO_ADDRESS)


def archive_name(manifest: Manifest) -> str:
    """Of an artifact's zip archive: the model, the weights, the back end."""
    model = manifest.backbone.name.split("/")[-1].lower()
    return f"{model}-{manifest.quantization.recipe}-{manifest.backend}.zip"


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
