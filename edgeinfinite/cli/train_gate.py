"""`edgeinfinite train-gate`: its options, and its progress on stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.cli.arguments import add_options, finite, given, option, positive
from edgeinfinite.files import check_writable
from edgeinfinite.models.configuration import FEATURE_MAPS, OPENINGS
from edgeinfinite.training.gate.options import GateOptions

Options = dict[str, dict[str, Any]]

_OPTIONS: Options = {
    "--model": option("the checkpoint, as for export", required=True),
    "--data": option(
        "long texts: .txt, or .jsonl with a text a line",
        required=True,
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
    "--output": option("replaced whole", required=True, type=Path, metavar="GATE.safetensors"),
    "--loss": option(
        "of the next token, or divergence from the backbone with full attention "
        "(default: distillation where a stretch fits its positions)",
        choices=("cross-entropy", "distillation"),
    ),
    "--feature-map": option("σ of the memory (elu is the paper's)", choices=FEATURE_MAPS),
    "--opening": option(
        "what decides how far the gate is open (constant is the paper's)",
        choices=OPENINGS,
    ),
    "--transfer-samples": option(
        "stretches for a first stage, layer by layer (default: 32, with --start 0)",
        type=int,
        metavar="N",
    ),
    "--transfer-epochs": option("uses of each of them", type=positive, metavar="N"),
    "--samples": option("stretches of text", type=positive, metavar="N"),
    "--segments": option(
        "of each that read a memory (default: 5, or what fits the model's positions)",
        type=positive,
        metavar="N",
    ),
    "--gradient-segments": option(
        "that the gradient flows back through", type=positive, metavar="K"
    ),
    "--random-lengths": option(
        "draw segment and window anew for every stretch", action="store_true"
    ),
    "--memory": option(
        "zero trains the control: what is learnt while the memory reads zero",
        choices=("own", "zero"),
    ),
    "--learning-rate": option(
        "at its highest (default: 0.0003, without a first stage 0.001)", type=finite, metavar="R"
    ),
    "--opening-learning-rate": option("of g and c", type=finite, metavar="R"),
    "--start": option("gate to go on with (default: untrained)", type=Path, metavar="FILE"),
    "--initial": option(
        "what the gate begins as: the memory itself, hardly blended in, or small random weights ",
        choices=("identity", "small"),
    ),
    "--rank": option("r (default: the head dimension)", type=positive, metavar="R"),
    "--hold-out": option("share of the documents left alone", type=finite),
    "--held-out-samples": option("for the score", type=positive, metavar="N"),
    "--dtype": option("of the backbone", choices=("auto", "float32", "bfloat16")),
    "--seed": option("of everything random", type=int, metavar="N"),
    "--segment-length": option("N", type=int, metavar="N"),
    "--sink-length": option("S", type=int, metavar="S"),
    "--window-length": option("W", type=int, metavar="W"),
    "--token-cache": option("folder for tokenised texts", type=Path, metavar="DIR"),
    "--metrics": option("a row for every step (default: beside the gate)", type=Path),
    "--plot": option("loss by tokens (default: beside the gate)", type=Path, metavar="FILE.png"),
}


def add_train_gate(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the command to the parser; what it needs (torch) is imported when it runs."""
    about = "Trains the memory gate of a model; the model itself stays as it is."
    parser = commands.add_parser(
        "train-gate",
        help=about,
        description=f"{about} A run that was cut off goes on when it is given again.",
    )
    parser.set_defaults(command=train_gate)
    add_options(parser, _OPTIONS, GateOptions, Geometry)


def train_gate(arguments: argparse.Namespace) -> int:
    """Trains, writes the file, prints the held-out score."""
    from edgeinfinite.training.gate.train import train_gate as train

    geometry = Geometry(**given(arguments, Geometry))
    options = GateOptions(**given(arguments, GateOptions), geometry=geometry)
    for path in (options.output, options.metrics):
        check_writable(path, again=True)
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
    """On a terminal a bar, in a log file a line now and then."""
    terminal = sys.stderr.isatty()
    return tqdm(
        total=1000,
        file=sys.stderr,
        mininterval=0.5 if terminal else 30.0,
        bar_format="{desc}: {percentage:3.0f} % {elapsed}<{remaining}",
    )
