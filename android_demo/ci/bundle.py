"""Writes the libraries as a bundle for a Maven repository, from what Maven built.

    python bundle.py OUTPUT [--page URL] [--key ID]

Run by build.sh's step bundle. The bundle is a zip archive in a repository's layout, as Maven Central's portal
takes it: of each library its pom, classes, sources and documentation, and of each file MD5, SHA-1,
SHA-256, SHA-512 and, with a key, an armoured signature of GnuPG. Times are fixed: the same files give the
same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIME = (1981, 1, 1, 1, 1, 2)
SUMS = ("md5", "sha1", "sha256", "sha512")
POM = "{http://maven.apache.org/POM/4.0.0}"
PASSPHRASE = "EDGEINFINITE_GPG_PASSPHRASE"
PACKAGINGS = {"core": "jar", "runtime-onnx": "jar", "onnx-android": "aar"}
"""The modules that are published."""
POMS = {"onnx-android": "target/aar/aar-pom.xml"}
"""Where a module's published pom isn't the one that flatten-maven-plugin writes."""
FLATTENED = ".flattened-pom.xml"
WANTED = ("name", "description", "url", "licenses", "developers", "scm")
"""What Maven Central asks of a pom, beside its coordinates."""


class BundleError(Exception):
    """A file of a library is missing, or isn't what a repository takes."""


def main(arguments: list[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--page", help="the project's address, of which the poms speak")
    parser.add_argument("--key", help="GnuPG's key to sign with")
    chosen = parser.parse_args(arguments)
    try:
        open_points = write_bundle(HERE, chosen.output, chosen.page, chosen.key)
    except BundleError as error:
        print(f"bundle.py: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    print(f"bundle: {chosen.output}")
    for point in open_points:
        print(f"bundle: {point}")


def write_bundle(build: Path, output: Path, page: str | None, key: str | None) -> list[str]:
    """Writes the bundle.

    Args:
        build: the folder of the Maven modules, built with the profile `bundle`.
        output: the zip archive to write.
        page: the project's address; None leaves `url` and `scm` out of the poms.
        key: GnuPG's key to sign with, its passphrase in EDGEINFINITE_GPG_PASSPHRASE; None signs nothing.

    Returns:
        What Maven Central would refuse the bundle for, a line each; empty if nothing.

    Raises:
        BundleError: a file isn't there, a pom isn't complete, or GnuPG failed.
    """
    entries: dict[str, bytes] = {}
    for module, packaging in PACKAGINGS.items():
        entries |= library(build / module, POMS.get(module, FLATTENED), packaging, page)
    for name, data in list(entries.items()):
        for kind in SUMS:
            entries[f"{name}.{kind}"] = hashlib.new(kind, data).hexdigest().encode()
        if key is not None:
            entries[f"{name}.asc"] = signature(data, key)
    output.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, entries[name])
    points = []
    if page is None:
        points.append("the poms have no url and no scm: give the project's address")
    if key is None:
        points.append("nothing is signed: give a key of GnuPG")
    return points


def library(module: Path, pom_file: str, packaging: str, page: str | None) -> dict[str, bytes]:
    """The files of one library by their paths in a repository, without sums."""
    pom = complete(read(module / pom_file), page)
    project = ET.fromstring(pom)
    group, name, version = (text(project, tag) for tag in ("groupId", "artifactId", "version"))
    stem = f"{name}-{version}"
    files = {f"{stem}.pom": pom}
    holds = {f".{packaging}": "", "-sources.jar": ".kt", "-javadoc.jar": ".html"}
    for ending, wanted in holds.items():
        file = module / "target" / f"{stem}{ending}"
        files[file.name] = read(file)
        check_archive(file, wanted)
    place = f"{group.replace('.', '/')}/{name}/{version}"
    return {f"{place}/{file}": data for file, data in files.items()}


def complete(pom: bytes, page: str | None) -> bytes:
    """The pom with the project's address, checked for what a repository asks.

    Raises:
        BundleError: something is missing, or the pom doesn't stand alone.
    """
    ET.register_namespace("", POM[1:-1])
    project = ET.fromstring(pom)
    name = text(project, "artifactId")
    if project.find(f"{POM}parent") is not None or b"${" in pom:
        raise BundleError(f"{name}'s pom needs its parent; run build.sh bundle, which flattens it")
    wanted = WANTED
    if page is None:
        wanted = tuple(tag for tag in WANTED if tag not in ("url", "scm"))
    else:
        set_page(project, page)
    missing = [tag for tag in wanted if project.find(f"{POM}{tag}") is None]
    if missing:
        raise BundleError(f"{name}'s pom has no {', '.join(missing)}; add it in ci/pom.xml")
    ET.indent(project)
    return ET.tostring(project, encoding="UTF-8", xml_declaration=True) + b"\n"


def set_page(project: ET.Element, page: str) -> None:
    """Puts `url` and `scm` into a pom, instead of what stood there."""
    for tag in ("url", "scm"):
        for old in project.findall(f"{POM}{tag}"):
            project.remove(old)
    ET.SubElement(project, f"{POM}url").text = page
    scm = ET.SubElement(project, f"{POM}scm")
    ET.SubElement(scm, f"{POM}connection").text = f"scm:git:{page}"
    ET.SubElement(scm, f"{POM}url").text = page


def check_archive(file: Path, wanted: str) -> None:
    """Refuses an archive without any file of the wanted ending.

    Raises:
        BundleError: there is none.
    """
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if not name.startswith("META-INF")]
    if not any(name.endswith(wanted) for name in names):
        raise BundleError(f"{file.name} holds no {wanted or 'file'}; run build.sh bundle again")


def signature(data: bytes, key: str) -> bytes:
    """GnuPG's detached, armoured signature.

    Raises:
        BundleError: it has no such key, or the passphrase is wrong.
    """
    command = ["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key]
    reading = writing = None
    if PASSPHRASE in os.environ:
        reading, writing = os.pipe()
        os.write(writing, os.environ[PASSPHRASE].encode() + b"\n")
        os.close(writing)
        command += ["--pinentry-mode", "loopback", "--passphrase-fd", str(reading)]
    try:
        done = subprocess.run(
            [*command, "--output", "-", "-"],
            input=data,
            capture_output=True,
            check=False,
            pass_fds=() if reading is None else (reading,),
        )
    finally:
        if reading is not None:
            os.close(reading)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BundleError(f"gpg doesn't sign with {key}: {said[-1] if said else 'no word why'}")
    return done.stdout


def text(project: ET.Element, tag: str) -> str:
    """Of a pom's own element.

    Raises:
        BundleError: there is none.
    """
    found = project.findtext(f"{POM}{tag}")
    if not found:
        raise BundleError(f"a pom has no {tag}; run build.sh bundle, which flattens it")
    return found


def read(file: Path) -> bytes:
    """A file that Maven should have written.

    Raises:
        BundleError: it didn't.
    """
    if not file.is_file():
        raise BundleError(f"{file} isn't there; run build.sh bundle, which builds it")
    return file.read_bytes()


if __name__ == "__main__":
    main()
