"""`edgeinfinite card`: measures an artifact and writes its model card."""

from __future__ import annotations

import argparse
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import (
    GATE_FILE,
    MANIFEST_FILE,
    SCORER_FILE,
    Manifest,
    cache_type_of,
    read_manifest,
)
from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    given,
    lengths,
    names,
    option,
    positive,
)
from edgeinfinite.cli.options import ARTIFACT, MODEL
from edgeinfinite.cli.steps import Done, Run, Step, read_record, run_steps, write_record
from edgeinfinite.evaluation.model_card.options import PARTS, CardOptions
from edgeinfinite.models.configuration import INT8_CACHE
from edgeinfinite.training.books import BOOKS

Words = tuple[str | Path, ...]

CARD: dict[str, dict[str, Any]] = {
    "--lengths": option("lengths of the prompts with facts", type=lengths, metavar="LIST"),
    "--samples": option("texts of each length", type=positive, metavar="N"),
    "--facts": option("facts planted in each text", type=positive, metavar="N"),
    "--tokens": option("of each text for the loss by position", type=positive, metavar="N"),
    "--documents": option("texts for the loss by position", type=positive, metavar="N"),
    "--bin-length": option("tokens averaged into a loss", type=positive, metavar="N"),
    "--methods": option(
        "of the checkpoint, to compare with; '' for none, which needs no checkpoint",
        type=names,
        metavar="LIST",
    ),
    "--parts": option(
        f"what to measure, of {','.join(PARTS)}; '' for nothing new", type=names, metavar="LIST"
    ),
    "--threads": option("threads of the artifact's engine", type=cpu_threads, metavar="N"),
    "--base-model": option("the checkpoint's id on the hub", default=None, metavar="ORG/NAME"),
    "--license": option("the checkpoint's, such as apache-2.0", default=None, metavar="ID"),
}
_OWN: dict[str, dict[str, Any]] = ARTIFACT | {
    "--model": option("checkpoint (default: the manifest's)", metavar=MODEL),
    "--data": option(
        "texts that the scorer wasn't trained on (default: books that come with the package)",
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
}


def add_card(commands: argparse._SubParsersAction[Any], run: Run) -> None:
    """Adds the command to the parser; it imports torch only when it runs."""
    about = "Measures an artifact and writes its model card, README.md with tables and plots."
    parser = commands.add_parser("card", help=about, description=about)
    parser.set_defaults(command=lambda arguments: card(arguments, run))
    add_options(parser, _OWN | CARD, CardOptions)


def card(arguments: argparse.Namespace, run: Run) -> int:
    """Runs what isn't measured yet, then writes the card."""
    options = CardOptions(**given(arguments, CardOptions))
    print(written(arguments.artifact, options, arguments, (), run))
    return 0


def written(
    folder: Path,
    options: CardOptions,
    arguments: argparse.Namespace,
    before: Sequence[Done],
    run: Run,
) -> Path:
    """Measures an artifact and writes its card.

    Args:
        folder: the artifact.
        options: what to measure.
        arguments: `--base-model` and `--license`.
        before: steps that made it.
        run: see `Run`.

    Returns:
        The card.
    """
    from edgeinfinite.evaluation.model_card.sections import FOLDER, STEPS, Command, write_card
    from edgeinfinite.export.model_card import Origin

    manifest = read_manifest(folder)
    made_of = hashlib.sha256((folder / MANIFEST_FILE).read_bytes()).hexdigest()
    rows = folder / FOLDER
    known = read_record(rows / STEPS)
    if known and known[0].digest != made_of:  # the artifact is another one since
        shutil.rmtree(rows)
        known = []
    rows.mkdir(exist_ok=True)
    if not known:
        known = [Done("artifact", "", made_of, 0.0), *before]
        write_record(rows / STEPS, known)
    done = run_steps(card_steps(folder, manifest, options, made_of), rows / STEPS, known, run)
    commands = [Command(one.line, one.seconds, one.peak_bytes) for one in done[1:]]
    return write_card(folder, commands, Origin(arguments.base_model, arguments.license))


def card_steps(folder: Path, manifest: Manifest, options: CardOptions, made_of: str) -> list[Step]:
    """The commands that measure what a card shows.

    Args:
        folder, manifest: the artifact.
        options: what to measure.
        made_of: digest of the artifact.
    """
    from edgeinfinite.evaluation.model_card.sections import FOLDER, LOSS, RECALL, SPEED, VERIFY

    rows = folder / FOLDER
    model = options.model or manifest.backbone.name
    of_file: Words = ("--artifact", folder, "--threads", f"{options.threads}")
    of_checkpoint: Words = ("--model", model, *_geometry(folder, manifest))
    of_checkpoint += ("--methods", ",".join(options.methods))
    lengths_: Words = ("--lengths", ",".join(map(str, options.lengths)))
    facts: Words = (*lengths_, "--samples", f"{options.samples}", "--facts", f"{options.facts}")
    text: Words = ("--tokens", f"{options.tokens}", "--documents", f"{options.documents}")
    text += ("--bin-length", f"{options.bin_length}")
    data: Words = () if list(options.data) == [BOOKS] else ("--data", *options.data)
    threads: Words = ("--threads", f"{options.threads}")
    found: dict[str, list[Words]] = {
        "verify": [("verify", folder, "--model", model, "--json", rows / VERIFY)],
        "recall": [
            ("evaluate", "passkey", *subject, *data, *facts, "--json", rows / name)
            for subject, name in zip((of_file, of_checkpoint), RECALL, strict=True)
        ],
        "loss": [
            ("evaluate", "perplexity", *subject, *data, *text, "--json", rows / name)
            for subject, name in zip((of_file, of_checkpoint), LOSS, strict=True)
        ],
        "speed": [("bench", folder, *lengths_, "--repeats", "1", *threads, "--json", rows / SPEED)],
    }
    return [
        Step(f"{part}{end}", argv, made_of)
        for part in options.parts
        for end, argv in zip(("", "-checkpoint"), found[part], strict=False)
        if options.methods or not end
    ]


def _geometry(folder: Path, manifest: Manifest) -> Words:
    """`export`'s options that give the checkpoint the artifact's cache."""
    geometry, cache_type = manifest.geometry, cache_type_of(manifest)
    lengths_ = {
        "--policy": geometry.policy,
        "--segment-length": geometry.segment_length,
        "--sink-length": geometry.sink_length,
        "--window-length": geometry.window_length,
        # What an int8 cache costs is the artifact's: its checkpoint has the next wider one.
        "--cache-type": "float16" if cache_type == INT8_CACHE else cache_type,
    }
    found: list[str | Path] = [str(word) for pair in lengths_.items() for word in pair]
    if geometry.most_slots:
        slots = geometry.recall_slots
        every = ",".join(map(str, slots)) if isinstance(slots, tuple) else f"{slots}"
        found += ["--recall-slots", every, "--scorer", folder / SCORER_FILE]
    if manifest.gate is not None:
        found += ["--gate", folder / GATE_FILE]
    return tuple(found)
