"""Exports what the app's screen tests answer with: a tiny random Llama over bytes.

    python android_demo/ci/app/fixtures.py OUTPUT

Writes `OUTPUT/app/tiny`, and `OUTPUT/app/endless`, the same without a token that ends an answer, so
that a test has something to stop.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

from tiny_artifact import tiny_artifact


def main(output: Path) -> None:
    """See the module."""
    output = output / "app"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    tiny = tiny_artifact(output / "tiny")
    endless = Path(shutil.copytree(tiny, output / "endless"))
    edit(endless / "generation_config.json", lambda config: config.pop("eos_token_id"))
    edit(endless / "tokenizer_config.json", lambda config: config.pop("eos_token"))
    edit(endless / "manifest.json", lambda manifest: update_files(endless, manifest))


def edit(path: Path, change: Any) -> None:
    """Changes a JSON file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def update_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Sums and sizes as the files now are; the manifest's own sum is left out."""
    del manifest["own_sha256"]
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        entry.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} OUTPUT")
    main(Path(sys.argv[1]))
