"""Writes requirements/: versions and hashes of the dependencies, and a bill of materials.

`python scripts/lock.py` resolves with uv for every platform; `--update` takes the newest versions
that pyproject.toml allows instead of those that are locked. The bill of materials (CycloneDX) is
made of what `pip install --require-hashes` puts into an empty environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
EXTRAS = {
    "run": ("runtime", "documents", "chat", "guidance", "serve"),
    "export": ("runtime", "documents", "chat", "guidance", "serve", "onnx", "executorch", "train"),
}
"""By lock file, the extras that it covers beside the package's own dependencies."""

PYTHON = "3.11"
"""The oldest Python; markers in the files say what others need."""


def lock(name: str, *, update: bool) -> None:
    """Writes `NAME.txt`: one version for each package, with the hashes of all its files."""
    extras = [part for extra in EXTRAS[name] for part in ("--extra", extra)]
    command = [
        *("uv", "pip", "compile", "pyproject.toml", *extras, "--quiet"),
        *("--universal", "--python-version", PYTHON, "--generate-hashes"),
        *("--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
        *("--custom-compile-command", "python scripts/lock.py"),
        *("--output-file", f"requirements/{name}.txt"),
    ]
    subprocess.run([*command, *(["--upgrade"] if update else [])], cwd=ROOT, check=True)


def bill_of_materials(name: str) -> None:
    """Writes `NAME.cdx.json` of what the lock installs on this machine.

    It names packages, versions, licenses and who needs whom; paths and addresses of this machine
    are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        python = environment / "bin" / "python"
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        locked = ["--no-deps", "--require-hashes", "-r", str(FOLDER / f"{name}.txt")]
        subprocess.run([*install, *locked], check=True)
        made = Path(folder) / "bom.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "cyclonedx_py", "environment", str(python)),
                *("--pyproject", "pyproject.toml", "--output-reproducible", "--mc-type", "library"),
                *("--output-file", str(made)),
            ],
            cwd=ROOT,
            check=True,
        )
        bill = json.loads(made.read_text(encoding="utf-8"))
    for component in bill["components"] + bill["metadata"]["tools"]["components"]:
        references = component.get("externalReferences", [])
        component["externalReferences"] = [r for r in references if r["type"] != "distribution"]
    text = json.dumps(bill, indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"{name}.cdx.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Writes both locks, and the bill of materials of the runtime."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name in EXTRAS:
        lock(name, update=arguments.update)
    bill_of_materials("run")


if __name__ == "__main__":
    main()
