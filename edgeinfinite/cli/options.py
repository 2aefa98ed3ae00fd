"""The options of each command of `edgeinfinite`; dataclasses have the defaults."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.backends import BACKENDS
from edgeinfinite.artifact.geometry import POLICIES, Geometry
from edgeinfinite.cli.arguments import (
    cpu_threads,
    file_option,
    finite,
    lengths,
    names,
    option,
    positive,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.models.configuration import CACHE_TYPES
from edgeinfinite.models.geometry_options import CARRY_LENGTHS, CARRY_SLOTS, TRAINED_SLOTS
from edgeinfinite.runtime_py.generation import MAX_NEW_TOKENS


def _length(name: str, metavar: str) -> dict[str, Any]:
    carry = f"{CARRY_LENGTHS[name]} under carry"
    if name == "window_length":
        carry += f" ({CARRY_LENGTHS[name] + CARRY_SLOTS} without a scorer)"
    default = f"default: {carry}, else {getattr(Geometry, name)}"
    return option(default, type=int, metavar=metavar)


def _slots(text: str) -> int | str | tuple[int, ...]:
    if text.partition(":")[0] == TRAINED_SLOTS:
        return text
    try:
        slots = tuple(int(part) for part in text.split(","))
    except ValueError:
        return _slots_of_file(Path(text))
    return slots if len(slots) > 1 else slots[0]


def _slots_of_file(path: Path) -> int | tuple[int, ...]:
    """A JSON list of numbers, one per layer."""
    try:
        slots = json.loads(read_text_file(path))
    except OSError:
        raise argparse.ArgumentTypeError(
            f"give one number, one per layer, {TRAINED_SLOTS}, or a file with one per layer; "
            f"{str(path)!r} is none of them"
        ) from None
    except (EdgeInfiniteError, ValueError):
        slots = None
    if not isinstance(slots, list) or not all(type(number) is int for number in slots):
        raise argparse.ArgumentTypeError(
            f"{path} isn't a JSON list of whole numbers, one per layer, such as [0, 512, 128]"
        )
    return slots[0] if len(slots) == 1 else tuple(slots)


ARTIFACT = {"artifact": option("the artifact's folder", type=Path, metavar="DIR")}
TARGETS = tuple(dict.fromkeys(target for e in BACKENDS.values() for target in e.targets))
MODEL = "ID|FOLDER|FILE.gguf|smollm2-135m-instruct"

GEOMETRY = {
    "--policy": option(
        "default: carry; the paper's reencode if a gate is given and no scorer",
        choices=POLICIES,
    ),
    "--segment-length": _length("segment_length", "N"),
    "--sink-length": _length("sink_length", "S"),
    "--window-length": _length("window_length", "W"),
    "--recall-slots": option(
        "slots under carry: one number, or one per layer as 0,512,128 or in a file "
        "with a JSON list, or trained:1920 for 1920 on average, more in retrieval layers "
        f"(default: trained:{CARRY_SLOTS} if there is a scorer)",
        type=_slots,
        metavar="G|trained:G|FILE",
    ),
    "--scorer": option("retention scorer (default: the model's)", metavar="FILE"),
}

EXPORT = GEOMETRY | {
    "--model": option("the checkpoint", metavar=MODEL, required=True),
    "--output": option("the artifact's folder", type=Path, metavar="DIR", required=True),
    "--gate": option("trained gate (default: the model's)", metavar="FILE|untrained|none"),
    "--backend": option(choices=tuple(BACKENDS)),
    "--target": option(choices=TARGETS),
    "--quantize": option(choices=("none", "int8", "int4")),
    "--max-mb": option(
        "largest artifact; chooses weight formats with the least loss",
        type=finite,
        metavar="MB",
    ),
    "--max-loss": option(
        "largest loss in nats per token; chooses the smallest artifact",
        type=finite,
        metavar="NATS",
    ),
    "--calibrate": option("calibrate the rounding of weights on a text", metavar="TEXT|default"),
    "--report": option(
        "rows of quantize-report; resumes where they end", type=Path, metavar="FILE"
    ),
    "--state-mb": option(
        "largest state; chooses segment length, recall slots or window, and a float16 cache where "
        "there is one",
        type=float,
        metavar="MB",
    ),
    "--cache-type": option("dtype of the KV cache (default: the recipe's)", choices=CACHE_TYPES),
    "--dry-run": option(
        "print geometry, slots by layer, bytes of weights and state; write nothing",
        action="store_true",
        default=False,
    ),
}

QUANTIZE_REPORT = GEOMETRY | {
    "--model": option("the checkpoint", metavar=MODEL, required=True),
    "--output": option(
        "rows, one JSON object per line; an interrupted run resumes",
        type=Path,
        metavar="FILE.jsonl",
        required=True,
    ),
    "--backend": option("back end whose formats to measure", choices=tuple(BACKENDS)),
    "--calibrate": option("text to measure with", metavar="TEXT|default"),
    "--plot": file_option("loss by bytes", "FILE.png"),
}

VERIFY = ARTIFACT | {
    "--against": file_option("another artifact to compare with", "DIR2"),
    "--text": file_option("text to run the models on"),
    "--model": option("checkpoint (default: the manifest's)", default=None, metavar=MODEL),
    "--operations": option(
        "also compare an ONNX artifact operation by operation (experimental)",
        action="store_true",
        default=False,
    ),
    "--json": file_option("write the checks as rows"),
}

ANSWER = {
    "--max-new-tokens": option(
        f"longest answer (default: {MAX_NEW_TOKENS})",
        type=positive,
        default=MAX_NEW_TOKENS,
        metavar="N",
    ),
    "--temperature": option("0 is greedy", type=float, metavar="T"),
    "--top-k": option("sample among the K likeliest tokens, 0 for all", type=int, metavar="K"),
    "--top-p": option("sample among the likeliest that sum to P", type=float, metavar="P"),
    "--seed": option("the same seed gives the same answer", type=int, metavar="N"),
    "--threads": option("default: the engine's own", type=cpu_threads, default=None, metavar="N"),
}

PROMPT = {
    "--prompt": option("the message", default=None, metavar="TEXT"),
    "--prompt-file": file_option("the message, UTF-8"),
}

GENERATE = ARTIFACT | {
    "--raw": option(
        "continue the text, no chat template; control tokens such as <|im_end|> that the text "
        "spells out become real ones, so use it for text that you trust",
        action="store_true",
        default=False,
    ),
    "--stats": option("figures of the answer on stderr", action="store_true", default=False),
    "--stats-json": file_option("the same figures as a row"),
}

BENCH = {
    "artifacts": option("artifacts' folders", type=Path, nargs="*", default=[], metavar="DIR"),
    "--lengths": option("prompt lengths, such as 2048,8192", type=lengths, metavar="LIST"),
    "--peers": option(
        "llama.cpp,onnxruntime-genai,transformers, or as llama.cpp:f16",
        type=names,
        metavar="LIST",
    ),
    "--new-tokens": option("tokens to decode", type=positive, metavar="N"),
    "--threads": option("threads of every system", type=cpu_threads, metavar="N"),
    "--repeats": option("repeats of every case; figures are medians", type=positive, metavar="N"),
    "--time-limit": option("seconds for one repeat", type=finite, metavar="S"),
    "--model": option("the peers' checkpoint (default: the artifact's)", metavar=MODEL),
    "--text": file_option("also the loss of every system on the start of this text"),
    "--peer-cache": option("folder for converted peer models", type=Path, metavar="DIR"),
    "--json": file_option("write the rows"),
    "--plot": file_option("time to first token and memory by length", "FILE.png"),
}

CHAT = ARTIFACT | {"--session": file_option("resume it if it exists; saved after every answer")}
