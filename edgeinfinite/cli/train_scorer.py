"""`edgeinfinite train-scorer`: its options, and its progress on stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from edgeinfinite.cli.arguments import add_options, finite, given, option
from edgeinfinite.training.scorer.options import TARGETS, PassOptions, ScorerOptions

_DEFAULTS_NOTE = "the defaults suit a model of 135M parameters on two cores"


_OPTIONS: dict[str, dict[str, Any]] = {
    "--model": option("the checkpoint, as for export", required=True),
    "--data": option(
        "plain text, .txt", required=True, nargs="+", type=Path, metavar="FOLDER|FILE"
    ),
    "--output": option("replaced whole", required=True, type=Path, metavar="SCORER.safetensors"),
    "--hold-out": option(
        "share of the documents left alone, for the score", type=finite, metavar="SHARE"
    ),
    "--passes": option("texts that the backbone is watched reading", type=int, metavar="N"),
    "--tokens": option("length of each", type=int, metavar="N"),
    "--held-out-passes": option("further ones, for the score", type=int, metavar="N"),
    "--gap": option("tokens between a pair and a query that counts", type=int, metavar="N"),
    "--long": option("one text in N is twice as long; 0: none", type=int, metavar="N"),
    "--facts": option("planted in each text and asked for at its end", type=int, metavar="N"),
    "--retrieval-share": option(
        "of heads, those that score, and of layers, those that get most slots",
        type=finite,
        metavar="SHARE",
    ),
    "--emphasis": option(
        "0: all pairs count alike; 1: as much as the attention paid", type=finite, metavar="E"
    ),
    "--steps": option("of the fit", type=int, metavar="N"),
    "--seed": option("of everything random", type=int, metavar="N"),
    "--target": option("what to fit of the later attention", choices=TARGETS),
}


def add_train_scorer(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the command to the parser; what it needs (torch) is imported when it runs."""
    about = "Trains the retention scorer that fills the recall slots of a model."
    parser = commands.add_parser(
        "train-scorer", help=about, description=f"{about} ({_DEFAULTS_NOTE})"
    )
    parser.set_defaults(command=train_scorer)
    add_options(parser, _OPTIONS, ScorerOptions, PassOptions)


def train_scorer(arguments: argparse.Namespace) -> int:
    """Trains, writes the file, prints the held-out score."""
    from edgeinfinite.training.scorer.train import train_scorer as train

    options = ScorerOptions(
        **given(arguments, ScorerOptions),
        watched=PassOptions(**given(arguments, PassOptions)),
    )
    with tqdm(
        total=1000, file=sys.stderr, bar_format="{desc}: {percentage:3.0f} % {elapsed}<{remaining}"
    ) as bar:

        def show(what: str, done: float) -> None:
            bar.set_description_str(what, refresh=False)
            bar.update(round(1000 * done) - bar.n)

        metrics = train(options, show)
    print(f"{options.output}: {options.output.stat().st_size / 1e6:.2f} MB")
    for name, value in metrics.items():
        print(f"{name.replace('_', ' ')}: {value:.4f}")
    return 0
