"""Exports what the app's screen tests answer with: a tiny random Llama over bytes.

    python android_demo/ci/app/fixtures.py OUTPUT

Writes `OUTPUT/app/tiny`, and `OUTPUT/app/endless`, the same without a token that ends an answer
(neither stated nor in the template, whose turns end with their line), so that a test has something
to stop.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

from manifest_edit import edit_manifest
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import file_entry


def main(output: Path) -> None:
    """See the module."""
    output = output / "app"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    tiny = tiny_artifact(output / "tiny")
    endless = Path(shutil.copytree(tiny, output / "endless"))
    edit(endless / "generation_config.json", lambda config: config.pop("eos_token_id"))
    edit(endless / "tokenizer_config.json", lambda config: config.pop("eos_token"))
    template = endless / "chat_template.jinja"
    # What opens the next turn would end an answer, too.
    plain = template.read_text().replace("<|im_start|>", "").replace("<|im_end|>", "")
    template.write_text(plain)
    edit_manifest(endless, lambda manifest: update_files(endless, manifest["files"]))


def edit(path: Path, change: Any) -> None:
    """Changes a JSON file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def update_files(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Sums and sizes as the files now are."""
    for name, entry in files.items():
        entry.update(asdict(file_entry(folder / name)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} OUTPUT")
    main(Path(sys.argv[1]))
