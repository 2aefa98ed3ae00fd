"""The artifact's tokenizer, chat template and generation settings, as transformers writes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.loading import Backbone

TEXT_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)
_OPTIONAL = {"chat_template.jinja"}
_MACHINE_ONLY = ("name_or_path", "tokenizer_file", "vocab_file", "merges_file", "gguf_file")


def write_text_files(backbone: Backbone, folder: Path) -> None:
    """Writes `TEXT_FILES`; the chat template only if the tokenizer has one.

    Raises:
        EdgeInfiniteError: the tokenizer has no `tokenizer.json` (it isn't a fast one).
    """
    with tempfile.TemporaryDirectory() as name:
        saved = Path(name)
        backbone.tokenizer.save_pretrained(saved)
        backbone.model.generation_config.save_pretrained(saved)
        for file in TEXT_FILES:
            if (saved / file).is_file():
                (folder / file).write_bytes((saved / file).read_bytes())
            elif file not in _OPTIONAL:
                raise EdgeInfiniteError(
                    f"the tokenizer of {backbone.name} writes no {file}; a fast tokenizer is needed"
                )
    _make_compact(folder / "tokenizer.json")
    config = folder / "tokenizer_config.json"
    fields = json.loads(config.read_text(encoding="utf-8"))
    for field in _MACHINE_ONLY:
        fields.pop(field, None)
    config.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _make_compact(tokenizer: Path) -> None:
    """Less than half as long (the demo model's: 1.5 MB of 3.5), and the same tokenizer.

    No indentation, and merges as `"a b"`, which older files have, unless a token holds a space.
    """
    fields = json.loads(tokenizer.read_text(encoding="utf-8"))
    merges = fields["model"].get("merges", [])
    pairs = all(isinstance(merge, list) for merge in merges)
    if pairs and not any(" " in part for merge in merges for part in merge):
        fields["model"]["merges"] = [" ".join(merge) for merge in merges]
    compact = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    tokenizer.write_text(compact, encoding="utf-8")
