"""The artifact's tokenizer, chat template and generation settings, as transformers writes them.

They are made and judged before the first weight is read: by the functions that run the artifact
later, so that nothing is exported which then can't be opened.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.generation_settings import ids_of, usable_settings, with_ends
from edgeinfinite.export.tokens_outside import without_tokens_outside
from edgeinfinite.files import read_text_file
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.checkpoint.settings import GENERATION_FILE, CheckpointSettings
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_OPTIONAL = {"chat_template.jinja"}
_MACHINE_ONLY = ("name_or_path", "tokenizer_file", "vocab_file", "merges_file", "gguf_file")


@dataclass(frozen=True)
class TextFiles:
    """The files of an artifact that are text.

    Args:
        contents: by name; the chat template only if there is one.
        notes: a sentence for each thing that a user should know about them.
    """

    contents: dict[str, bytes]
    notes: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Writes the files into an existing folder."""
        for name, data in self.contents.items():
            (folder / name).write_bytes(data)


def text_files(source: str, settings: CheckpointSettings) -> TextFiles:
    """Makes the files, and opens them as the runtime will.

    Args:
        source: the checkpoint's name, for errors.
        settings: the checkpoint's.

    Raises:
        EdgeInfiniteError: a setting, the tokenizer or the chat template is one that the runtime
            refuses; the error names the checkpoint's file and what is wrong in it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_tokenizer(source, settings, folder)
        fields = _settings(source, settings)
        _write_settings(folder, fields)
        opened = _opened(source, settings, folder)
        ends = [token for token in opened.stop_ids if token < settings.vocabulary]
        complete = with_ends(fields, ends)
        _write_settings(folder, complete)
        contents = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    return TextFiles(contents, tuple(_about_ends(opened, fields, complete)))


def read_template(path: Path) -> str:
    """A chat template in a file of its own, judged so that an error names the file.

    Raises:
        EdgeInfiniteError: it isn't UTF-8, or no Jinja template that the runtime can run.
        OSError: it can't be read; the message names it.
    """
    source = read_text_file(path)
    try:
        if not source.strip():
            raise EdgeInfiniteError("the chat template is empty")
        ChatTemplate(source, {})
    except EdgeInfiniteError as error:
        said = str(error).removesuffix("; export the artifact again")
        raise EdgeInfiniteError(f"{path}: {said}; give another --chat-template") from error
    return source


def write_text_files(backbone: Backbone, folder: Path) -> TextFiles:
    """Writes the files of a loaded checkpoint; see `text_files`."""
    model = backbone.model
    settings = CheckpointSettings(
        model.config, backbone.tokenizer, model.generation_config, GENERATION_FILE
    )
    made = text_files(backbone.name, settings)
    made.write(folder)
    return made


def _write_tokenizer(source: str, settings: CheckpointSettings, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        saved = Path(name)
        settings.tokenizer.save_pretrained(saved)
        for file in _TOKENIZER_FILES:
            if (saved / file).is_file():
                (folder / file).write_bytes((saved / file).read_bytes())
            elif file not in _OPTIONAL:
                raise EdgeInfiniteError(
                    f"the tokenizer of {source} writes no {file}; a fast tokenizer is needed"
                )
    config = folder / "tokenizer_config.json"
    fields = json.loads(config.read_text(encoding="utf-8"))
    for field in _MACHINE_ONLY:
        fields.pop(field, None)
    config.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    template = folder / "chat_template.jinja"
    written = template.read_text(encoding="utf-8") if template.is_file() else ""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    try:
        known = without_tokens_outside(tokenizer, fields, written, settings.vocabulary)
    except EdgeInfiniteError as error:
        raise _of_checkpoint(source, error) from error
    path.write_text(_compact(known), encoding="utf-8")


def _write_settings(folder: Path, fields: dict[str, Any]) -> None:
    text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
    (folder / GENERATION_FILE).write_text(text, encoding="utf-8")


def _settings(source: str, settings: CheckpointSettings) -> dict[str, Any]:
    try:
        return usable_settings(settings.generation, settings.vocabulary)
    except EdgeInfiniteError as error:
        said = f"{settings.where}: {error}; correct it there"
        raise EdgeInfiniteError(f"model {source}: {said}") from error


def _opened(source: str, settings: CheckpointSettings, folder: Path) -> TextTokenizer:
    try:
        return load_tokenizer(folder, vocabulary=settings.vocabulary)
    except EdgeInfiniteError as error:
        raise _of_checkpoint(source, error, folder) from error


def _compact(tokenizer: dict[str, Any]) -> str:
    """Less than half as long (the demo model's: 1.5 MB of 3.5), and the same tokenizer.

    No indentation, and merges as `"a b"`, which older files have, unless a token holds a space.
    """
    merges = tokenizer["model"].get("merges", [])
    pairs = all(isinstance(merge, list) for merge in merges)
    if pairs and not any(" " in part for merge in merges for part in merge):
        tokenizer["model"]["merges"] = [" ".join(merge) for merge in merges]
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))


def _about_ends(
    opened: TextTokenizer, fields: dict[str, Any], complete: dict[str, Any]
) -> Iterator[str]:
    """Which tokens end an answer, where that isn't what the checkpoint's settings say."""
    own, ends = (ids_of(settings.get("eos_token_id")) for settings in (fields, complete))
    more = ", ".join(opened.name_of(token) for token in ends if token not in own)
    if more:
        yield (
            f"answers end at {more}, too: tokenizer or chat template say so, the checkpoint's "
            "settings don't"
        )
    if not ends:
        yield "the checkpoint names no token that ends an answer: give --max-new-tokens or --stop"
    elif opened.has_chat_template and not opened.answer_ends:
        yield (
            "the chat template writes no control token behind an answer: if answers run on, "
            "stop them at its text with --stop"
        )


def _of_checkpoint(source: str, error: EdgeInfiniteError, folder: Path | None = None) -> Exception:
    """The error about an artifact's file as one about the checkpoint's."""
    said = str(error).removesuffix("; export the artifact again")
    if folder is not None:
        said = said.replace(f"{folder}/", "")
    return EdgeInfiniteError(f"model {source}: {said}; correct it in the checkpoint")
