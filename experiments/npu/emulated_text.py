"""A whole text in the NPU's emulator: loss and agreement over every token, and planted facts.

    python experiments/npu/emulated_text.py text ARTIFACT MODEL TEXT OUT [--tokens 1152]
    python experiments/npu/agreement.py run FLOAT_ARTIFACT TEXT REFERENCE --warm-up 1 --tokens 1151
    python experiments/npu/agreement.py compare OUT REFERENCE
    python experiments/npu/emulated_text.py facts ARTIFACT MODEL ROWS.jsonl --data TEXT... \
        [--length 4000] [--facts 8]

`text` reads a text from its start, a call for a segment, with the graph of `every_row.py`; the
state is the emulator's own, and compressions run on the CPU, as on a phone. `OUT` holds what
`agreement.py` compares. `facts` lets the CPU read a text with planted facts with the same graphs,
and the emulator read each question with its answer. `--cpu` computes the same on the CPU. Runs go
on where they were interrupted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from every_row import EveryRowEngine, write_every_row

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.evaluation.artifact_reader import tokenizer_of
from edgeinfinite.evaluation.options import PasskeyOptions
from edgeinfinite.evaluation.planted import planted_text
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.answer.logprobs import log_probabilities
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


def read_text(arguments: argparse.Namespace, engine: EveryRowEngine) -> None:
    """Writes `OUT/NNNNN.npy`, the logits after the token of that number."""
    out: Path = arguments.out
    out.mkdir(exist_ok=True)
    text = load_tokenizer(arguments.artifact).encode_text(read_text_file(arguments.text)[:40_000])
    np.save(out / "tokens.npy", np.array(text[: arguments.tokens + 1]))
    saved = out / "now.session"
    session = load_session(engine, saved)[0] if saved.exists() else Session(engine)
    while session.tokens_read < arguments.tokens:
        start, at = time.perf_counter(), session.tokens_read
        session.append(text[at : min(at + engine.chunk_length, arguments.tokens)])
        for number, row in enumerate(engine.rows, at + 1):
            np.save(out / f"{number:05}.npy", row)
        engine.rows.clear()
        save_session(session, saved)
        took = time.perf_counter() - start
        print(session.tokens_read, session.compressions, f"{took:.1f} s", flush=True)


def ask_facts(arguments: argparse.Namespace, engine: EveryRowEngine) -> None:
    """Appends a row for each fact: whether greedy decoding would answer it, and the nats."""
    tokenizer = tokenizer_of(arguments.artifact)
    options = PasskeyOptions(facts=arguments.facts)
    text = planted_text(arguments.data, tokenizer, arguments.length, arguments.seed, options)
    saved = arguments.rows.with_suffix(".session")
    if not saved.exists():
        on_cpu = EveryRowEngine(
            arguments.artifact, arguments.variant, arguments.spec, emulate=False
        )
        session = Session(on_cpu)
        session.append(text.tokens)
        save_session(session, saved)
    rows = arguments.rows.read_text().splitlines() if arguments.rows.exists() else []
    for question in text.questions[len(rows) :]:
        session = load_session(engine, saved)[0]
        fact, count = question.fact, len(question.answer)
        tokens = question.asked + question.answer
        engine.rows.clear()
        session.append(tokens)
        logits = [log_probabilities(row) for row in engine.rows[-count - 1 : -1]]
        answer = tokens[-count:]
        nats = [-float(row[token]) for row, token in zip(logits, answer, strict=True)]
        exact = all(int(row.argmax()) == token for row, token in zip(logits, answer, strict=True))
        row = {"question": fact.question, "exact": exact, "nats": float(np.mean(nats))}
        with arguments.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    found = [json.loads(line) for line in arguments.rows.read_text().splitlines()]
    exact, nats = (np.mean([row[key] for row in found]) for key in ("exact", "nats"))
    print(f"{len(found)} facts: {exact:.0%} exact, {nats:.3f} nats a token of the answer")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    reads, asks = commands.add_parser("text"), commands.add_parser("facts")
    for command in (reads, asks):
        command.add_argument("artifact", type=Path)
        command.add_argument("model")
        command.add_argument("--cpu", action="store_true")
    reads.add_argument("text", type=Path)
    reads.add_argument("out", type=Path)
    reads.add_argument("--tokens", type=int, default=1152)
    reads.set_defaults(act=read_text)
    asks.add_argument("rows", type=Path)
    asks.add_argument("--data", type=Path, nargs="+", required=True)
    asks.add_argument("--length", type=int, default=4000)
    asks.add_argument("--facts", type=int, default=8)
    asks.add_argument("--seed", type=int, default=3)
    asks.set_defaults(act=ask_facts)
    arguments = parser.parse_args()
    manifest = load_manifest(arguments.artifact, check_files=False)
    with tempfile.TemporaryDirectory() as scratch:
        arguments.variant = Path(scratch)
        arguments.spec = write_every_row(arguments.model, manifest, arguments.variant)
        start = time.perf_counter()
        engine = EveryRowEngine(
            arguments.artifact, arguments.variant, arguments.spec, emulate=not arguments.cpu
        )
        print(f"opened in {time.perf_counter() - start:.1f} s", flush=True)
        arguments.act(arguments, engine)


if __name__ == "__main__":
    main()
