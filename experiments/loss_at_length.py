"""The loss of tokens that follow a long prompt, by system and length, on one text.

python experiments/loss_at_length.py BOOK.txt --lengths 2048,8000 --tokens 128 \
    --artifacts build/demo build/demo-streaming --llama-cpp FILE.gguf --model smollm2-135m-instruct

Every system reads the same tokens: the text's first N, and then, one by one, the next. `--model` is
the checkpoint itself, read exactly (`--engine mom`), in float32. Prints a JSON line for each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.export.exact import open_exact
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.benchmark.case import Case
from edgeinfinite.runtime_py.benchmark.systems import load_system
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--lengths", default="2048")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--artifacts", type=Path, nargs="+", required=True)
    parser.add_argument("--llama-cpp", type=Path)
    parser.add_argument("--model")
    options = parser.parse_args()
    ids = load_tokenizer(options.artifacts[0]).encode_text(read_text_file(options.text))
    for length in map(int, options.lengths.split(",")):
        text = ids[: length + options.tokens]
        for folder in options.artifacts:
            name = f"edgeinfinite-{load_manifest(folder).backend}"
            _tell(folder.name, length, _of_system(name, folder, folder.name, text, length))
        if options.llama_cpp:
            settings = "flash attention, swa_full off, q8_0 cache"
            loss = _of_system("llama.cpp", options.llama_cpp, settings, text, length)
            _tell("llama.cpp q8_0", length, loss)
        if options.model:
            _tell("exact", length, _of_checkpoint(options.model, text, length))


def _of_system(system: str, model: Path, settings: str, text: Sequence[int], length: int) -> float:
    case = Case(system, str(model), settings, length, len(text) - length, 1, 0)
    loaded = load_system(case)
    loaded.read(text[:length])
    return _mean_loss(loaded.logits, text[length:])


def _of_checkpoint(model: str, text: Sequence[int], length: int) -> float:
    session = open_exact(model, threads=1).session
    session.append(text[:length])
    return _mean_loss(lambda token: session.append([token]), text[length:])


def _mean_loss(logits_after: Callable[[int], np.ndarray], tokens: Sequence[int]) -> float:
    losses = []
    for token, following in itertools.pairwise(tokens):
        logits = np.asarray(logits_after(token), np.float64)
        losses.append(np.logaddexp.reduce(logits) - logits[following])
    return float(np.mean(losses))


def _tell(system: str, length: int, loss: float) -> None:
    row = {"system": system, "prompt_tokens": length, "nats_per_token": round(loss, 4)}
    print(json.dumps(row | {"at": time.strftime("%H:%M:%S")}), flush=True)


if __name__ == "__main__":
    main()
