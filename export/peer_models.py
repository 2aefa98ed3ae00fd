"""Converts our checkpoint to the formats that the peers of `bench` load, in a cache folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone, source_file


def prepare_peer_model(
    kind: str, settings: str, model: str, cache: Path, note: Callable[[str], None]
) -> Path:
    """The file or folder that a peer loads, made once.

    Args:
        kind: `gguf`, `folder` or `genai`, see `benchmark.systems.Peer.loads`.
        settings: the peer's settings; onnxruntime-genai's name the weights' precision.
        model: the checkpoint that our artifact was made from.
        cache: folder for converted models, tens to hundreds of MB each.
        note: told of every folder that is written there.

    Raises:
        EdgeInfiniteError: the checkpoint isn't a GGUF file though the peer needs one, or the
            peer's own converter fails.
    """
    if kind == "gguf":
        file = source_file(model)
        if file is None or file.suffix != ".gguf":
            raise EdgeInfiniteError(
                f"llama.cpp needs a .gguf file, {model} isn't one; convert it and pass --model"
            )
        return file
    name = Path(model).stem if model.endswith(".gguf") else model.strip("/").replace("/", "--")
    folder = cache / f"{name}-transformers"
    if not (folder / "config.json").is_file():
        note(f"the checkpoint is kept converted in {folder}; --peer-cache names another folder")
        backbone = load_backbone(model)
        backbone.tokenizer.save_pretrained(folder)
        backbone.model.save_pretrained(folder)
    if kind == "folder":
        return folder
    output = cache / f"{name}-genai-{settings}"
    if not (output / "genai_config.json").is_file():
        note(f"onnxruntime-genai's model is kept in {output}; --peer-cache names another folder")
        _build_genai(folder, settings, output)
    return output


def _build_genai(checkpoint: Path, precision: str, output: Path) -> None:
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    command += ["-i", str(checkpoint), "-o", str(output), "-p", precision, "-e", "cpu"]
    command += ["-c", str(output.parent / "builder-cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise EdgeInfiniteError(f"onnxruntime-genai's builder failed: {last}")
