"""`edgeinfinite train-gate`: options, and progress on stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.cli.arguments import add_options, finite, given, option, positive
from edgeinfinite.cli.options import PRE_TOKENIZER
from edgeinfinite.files import check_writable
from edgeinfinite.models.configuration import FEATURE_MAPS, OPENINGS
from edgeinfinite.training.gate.options import GateOptions

Options = dict[str, dict[str, Any]]

_OPTIONS: Options = {
    "--model": option("the checkpoint, as for export", required=True),
    **PRE_TOKENIZER,
    "--data": option(
        "long texts: .txt, or .jsonl with one text per line",
        required=True,
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
    "--output": option("replaced whole", required=True, type=Path, metavar="GATE.safetensors"),
    "--loss": option(
        "cross-entropy of the next token, or divergence from the backbone with full attention "
        "(default: distillation if a stretch fits its positions)",
        choices=("cross-entropy", "distillation"),
    ),
    "--feature-map": option("σ of the memory (elu is the paper's)", choices=FEATURE_MAPS),
    "--opening": option(
        "what decides how far the gate opens (constant is the paper's)",
        choices=OPENINGS,
    ),
    "--transfer-samples": option(
        "stretches for a layer-by-layer first stage (default: 32; 0 with --start)",
        type=int,
        metavar="N",
    ),
    "--transfer-epochs": option("epochs over these stretches", type=positive, metavar="N"),
    "--samples": option("stretches of text to train on", type=positive, metavar="N"),
    "--segments": option(
        "segments per stretch that read a memory (default: 5, or as many as fit)",
        type=positive,
        metavar="N",
    ),
    "--memory": option(
        "zero trains the control, whose memory always reads zero",
        choices=("own", "zero"),
    ),
    "--learning-rate": option(
        "peak rate (default: 0.0003, or 0.001 without a first stage)", type=finite, metavar="R"
    ),
    "--opening-learning-rate": option("peak rate of g and c", type=finite, metavar="R"),
    "--start": option("gate to continue from (default: untrained)", type=Path, metavar="FILE"),
    "--held-out-samples": option("stretches for the score", type=positive, metavar="N"),
    "--dtype": option("dtype of the backbone", choices=("auto", "float32", "bfloat16")),
    "--seed": option("random seed", type=int, metavar="N"),
    "--segment-length": option("N", type=int, metavar="N"),
    "--sink-length": option("S", type=int, metavar="S"),
    "--window-length": option("W", type=int, metavar="W"),
    "--token-cache": option("folder for tokenised texts", type=Path, metavar="DIR"),
    "--plot": option("plot of the loss (default: beside the gate)", type=Path, metavar="FILE.png"),
}


def add_train_gate(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the command to the parser; it imports torch only when it runs."""
    about = "Trains the memory gate of a model; the model itself isn't changed."
    parser = commands.add_parser(
        "train-gate",
        help=about,
        description=f"{about} An interrupted run resumes when the command is repeated.",
    )
    parser.set_defaults(command=train_gate)
    add_options(parser, _OPTIONS, GateOptions, Geometry)


def train_gate(arguments: argparse.Namespace) -> int:
    """Trains, writes the file, prints the held-out score."""
    from edgeinfinite.training.gate.train import train_gate as train

    geometry = Geometry(**given(arguments, Geometry))
    options = GateOptions(**given(arguments, GateOptions), geometry=geometry)
    check_writable(options.output, again=True)
    check_writable(options.plot)
    with _bar() as bar:

        def show(what: str, done: float) -> None:
            bar.set_description_str(what, refresh=False)
            bar.update(round(1000 * done) - bar.n)

        score = train(options, show)
    if score:
        print(f"{options.output}: {options.output.stat().st_size / 1e6:.2f} MB")
    for name, value in score.items():
        print(f"{name.replace('_', ' ')}: {value:.4f} nats per token")
    return 0


def _bar() -> tqdm[Any]:
    """A bar on a terminal, occasional lines in a log file."""
    terminal = sys.stderr.isatty()
    return tqdm(
        total=1000,
        file=sys.stderr,
        mininterval=0.5 if terminal else 30.0,
        bar_format="{desc}: {percentage:3.0f} % {elapsed}<{remaining}",
    )
