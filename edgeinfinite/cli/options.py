"""The options of each command of `edgeinfinite`; dataclasses have the defaults."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.backends import BACKENDS
from edgeinfinite.artifact.geometry import POLICIES, Geometry
from edgeinfinite.artifact.socs import QNN_HTP, SOCS
from edgeinfinite.cli.arguments import (
    Biases,
    cpu_threads,
    file_option,
    finite,
    lengths,
    names,
    not_negative,
    option,
    positive,
    repetition_detection,
    token_bias,
    whole,
)
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.configuration import CACHE_TYPES, INT8_CACHE
from edgeinfinite.models.geometry_options import CARRY_LENGTHS, CARRY_SLOTS
from edgeinfinite.models.recall_slots import typed_slots
from edgeinfinite.runtime_py.answer.generation import MAX_NEW_TOKENS
from edgeinfinite.runtime_py.answer.sampling_defaults import DEFAULTS
from edgeinfinite.runtime_py.session.snapshots import UNDO_TURNS


def _length(name: str, metavar: str) -> dict[str, Any]:
    carry = f"{CARRY_LENGTHS[name]} under carry"
    if name == "window_length":
        longer = CARRY_LENGTHS[name] + CARRY_SLOTS[INT8_CACHE]
        carry += f" ({longer} with int8 caches and no scorer)"
    default = f"default: {carry}, else {getattr(Geometry, name)}"
    return option(default, type=int, metavar=metavar)


def _slots(text: str) -> int | str | tuple[int, ...]:
    try:
        return typed_slots(text)
    except EdgeInfiniteError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


ARTIFACT = {"artifact": option("the artifact's folder", type=Path, metavar="DIR")}
TARGETS = tuple(dict.fromkeys(target for e in BACKENDS.values() for target in e.targets))
MODEL = "ID[@REVISION]|FOLDER|FILE.gguf|smollm2-135m-instruct"

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
        f"(default if there is a scorer: trained:{CARRY_SLOTS[INT8_CACHE]} with int8 caches, else "
        f"trained:{CARRY_SLOTS['float16']})",
        type=_slots,
        metavar="G|trained:G|FILE",
    ),
    "--scorer": option("retention scorer (default: the model's)", metavar="FILE"),
}

PRE_TOKENIZER: dict[str, dict[str, Any]] = {
    "--pre-tokenizer": option(
        "how the tokenizer of a .gguf file cuts words, by llama.cpp's name for it, such as qwen2 "
        "(default: the file's tokenizer.ggml.pre)",
        metavar="NAME",
    ),
}

EXPORT = GEOMETRY | {
    **PRE_TOKENIZER,
    "--model": option("the checkpoint", metavar=MODEL, required=True),
    "--output": option(
        "the artifact's folder; not needed with --dry-run", type=Path, metavar="DIR"
    ),
    "--chat-template": option(
        "a Jinja file in place of the checkpoint's own chat template (a base model has none)",
        type=Path,
        metavar="FILE",
    ),
    "--gate": option("trained gate (default: the model's)", metavar="FILE|untrained|none"),
    "--backend": option(choices=tuple(BACKENDS)),
    "--target": option(choices=TARGETS),
    "--soc": option(f"chip for --target {QNN_HTP}: {', '.join(SOCS)}", metavar="NAME"),
    "--quantize": option(choices=("none", "int8", "int4")),
    "--max-mb": option(
        "largest artifact; chooses weight formats with the least loss",
        type=finite,
        metavar="MB",
    ),
    "--max-read-mb": option(
        "with --max-mb: most weights that decoding a token may read; sets its speed (default: 1.07 "
        "times plain int4's)",
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
        "largest state; chooses segment length, recall slots or window, and an int8 cache where "
        "there is one",
        type=float,
        metavar="MB",
    ),
    "--cache-type": option(
        "dtype of the KV cache (default: int8 for quantized weights or with --state-mb, float16 "
        "under reencode, else float32), see docs/recall.md",
        choices=CACHE_TYPES,
    ),
    "--dry-run": option(
        "print geometry, slots by layer, bytes of weights and state; write nothing; a folder "
        "with config.json and the tokenizer is enough",
        action="store_true",
        default=False,
    ),
}

QUANTIZE_REPORT = GEOMETRY | {
    **PRE_TOKENIZER,
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
    "--against": file_option(
        "another artifact to compare with, or the .gguf file, as llama.cpp reads it",
        "DIR2|FILE.gguf",
    ),
    "--text": file_option("text to run the models on"),
    "--model": option("checkpoint (default: the manifest's)", default=None, metavar=MODEL),
    "--soc": option("refuse an artifact for another chip", default=None, metavar="NAME"),
    "--json": file_option("write the checks as rows"),
}

_IF_SILENT: dict[str, Any] = {"top_k": 0} | DEFAULTS


def _of_checkpoint(field: str, what: str, **settings: Any) -> dict[str, Any]:
    otherwise = f"{what} (default: the checkpoint's, else {_IF_SILENT[field]})"
    return option(otherwise, **settings)


ANSWER = {
    "--max-new-tokens": option(
        f"longest answer (default: {MAX_NEW_TOKENS})",
        type=positive,
        default=MAX_NEW_TOKENS,
        metavar="N",
    ),
    "--greedy": option(
        "always the likeliest token, with no penalty that isn't named",
        action="store_true",
        default=False,
    ),
    "--temperature": _of_checkpoint(
        "temperature", "0 is the likeliest token", type=float, metavar="T"
    ),
    "--top-k": _of_checkpoint(
        "top_k", "sample among the K likeliest tokens, 0 for all", type=int, metavar="K"
    ),
    "--top-p": _of_checkpoint(
        "top_p", "sample among the likeliest that sum to P", type=float, metavar="P"
    ),
    "--min-p": option(
        "sample among tokens at least P times as likely as the likeliest", type=float, metavar="P"
    ),
    "--repetition-penalty": _of_checkpoint(
        "repetition_penalty",
        "makes tokens that the answer has less likely, 1 for none",
        type=float,
        metavar="X",
    ),
    "--presence-penalty": option(
        "taken from the logits of tokens that the answer has", type=float, metavar="X"
    ),
    "--frequency-penalty": option(
        "the same for each time that the answer has a token", type=float, metavar="X"
    ),
    "--logit-bias": option(
        "added to a token's logit; may be repeated",
        type=token_bias,
        action=Biases,
        metavar="ID=BIAS",
    ),
    "--repetition-detection": option(
        "end an answer that says one piece over and over (default: on, off with --greedy)",
        type=repetition_detection,
        metavar="on|off",
    ),
    "--seed": option("the same seed gives the same answer", type=int, metavar="N"),
    "--threads": option("default: the engine's own", type=cpu_threads, default=None, metavar="N"),
}

PROMPT = {
    "--prompt": option("the message", default=None, metavar="TEXT"),
    "--prompt-file": file_option(
        "the message: text, .md, .html, .epub, .pdf or .docx; - is standard input"
    ),
}

FORM = {
    "--json-schema": file_option("the answer is JSON of this schema"),
    "--regex": option(
        "the answer matches this pattern from start to end", default=None, metavar="PATTERN"
    ),
}

RAW = {
    "--raw": option(
        "continue the text, no chat template; control tokens such as <|im_end|> that the text "
        "spells out become real ones, so use it for text that you trust",
        action="store_true",
        default=False,
    )
}

SYSTEM = {
    "--system": option(
        "system prompt of a new conversation, told by the chat template in place of its own; '' "
        "is an empty one",
        default=None,
        metavar="TEXT",
    )
}

FROM = {
    "--from": file_option("go on from a session file, which isn't changed", "FILE.session")
    | {"dest": "from_"}
}

GENERATE = (
    ARTIFACT
    | FROM
    | SYSTEM
    | RAW
    | {
        "--prefill": option(
            "how the answer begins; what the model goes on with is printed",
            default=None,
            metavar="TEXT",
        ),
        "--stop": option(
            "the answer ends before this text; may be repeated",
            action="append",
            default=[],
            metavar="TEXT",
        ),
        "--logprobs": option(
            "in --stats-json, log-probabilities of the answer's tokens and of the N likeliest",
            type=whole,
            default=None,
            metavar="N",
        ),
        "--stats": option("figures of the answer on stderr", action="store_true", default=False),
        "--stats-json": file_option("the same figures as a row"),
    }
)

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
    "--text": file_option(
        "read this text in place of random tokens, and measure the loss on its start"
    ),
    "--peer-cache": option("folder for converted peer models", type=Path, metavar="DIR"),
    "--json": file_option("write the rows"),
    "--plot": file_option("time to first token and memory by length", "FILE.png"),
}

THREADS = {"--threads": ANSWER["--threads"]}

READ = (
    ARTIFACT
    | {
        "file": option(
            "the document: text, .md, .html, .epub, .pdf or .docx; - is standard input", type=Path
        ),
        "--output": option(
            "the session file; if it is there, the same document is read on in it",
            type=Path,
            metavar="FILE.session",
            required=True,
        ),
    }
    | SYSTEM
    | RAW
    | THREADS
)

SOAK = (
    ARTIFACT
    | {
        "--tokens": option("to read", type=positive, metavar="N"),
        "--stretches": option("how often the state is looked at", type=positive, metavar="N"),
        "--seed": option("of order, pieces and probes", type=int, metavar="N"),
        "--text": file_option("its paragraphs are read in random order (default: Python's manual)"),
        "--session": file_option("the state, saved often; a killed run goes on from it"),
        "--json": file_option("write what was measured as rows"),
        "--plot": file_option("memory, speed and norms", "FILE.png"),
    }
    | THREADS
)

SESSIONS = {"folder": option("where the session files are", type=Path, metavar="FOLDER")}

CHAT = (
    ARTIFACT
    | FROM
    | SYSTEM
    | {
        "--session": file_option("resume it if it exists; saved after every answer"),
        "--undo": option(
            f"turns that /undo can take back (default: {UNDO_TURNS}); each keeps a state",
            type=not_negative,
            default=UNDO_TURNS,
            metavar="N",
        ),
        "--history": file_option("keep the lines that were typed from one chat to the next"),
    }
    | ANSWER
)

SERVE = ARTIFACT | {
    "--host": option("any other than this machine's own needs --api-key", metavar="ADDRESS"),
    "--port": option("0 takes a free one", type=int, metavar="N"),
    "--api-key": option(
        "what clients must send (default: the variable EDGEINFINITE_API_KEY, which other users of "
        "the machine can't see)",
        metavar="KEY",
    ),
    "--cache-mb": option("megabytes of saved states in memory", type=int, metavar="N"),
    "--cache-dir": option(
        "also keep saved states in this folder, for the next start", type=Path, metavar="FOLDER"
    ),
    "--cache-dir-mb": option("megabytes of saved states in that folder", type=int, metavar="N"),
    "--responses-mb": option(
        "megabytes of stored responses (previous_response_id); in --cache-dir, else in memory",
        type=int,
        metavar="N",
    ),
    "--responses-days": option("days after which they expire", type=int, metavar="N"),
    "--parallel": option("requests answered at once", type=int, metavar="N"),
    "--waiting": option("requests that may wait; those beyond get a 503", type=int, metavar="N"),
    "--allow-origin": option(
        "web pages of other origins that may ask, such as http://localhost:3000; * for all",
        type=names,
        metavar="LIST",
    ),
    "--allow-host": option(
        "further names to answer to, such as a tunnel's llm.example.org; * for any",
        type=names,
        metavar="LIST",
    ),
    "--threads": ANSWER["--threads"],
}
