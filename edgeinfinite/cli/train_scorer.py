"""`edgeinfinite train-scorer`: its options, and its progress on stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from edgeinfinite.cli.arguments import given

_DEFAULTS_NOTE = "the defaults suit a model of 135M parameters on two cores"


def add_train_scorer(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the command to the parser; what it needs (torch) is imported when it runs."""
    about = "Trains the retention scorer that fills the recall slots of a model."
    parser = commands.add_parser(
        "train-scorer", help=about, description=f"{about} ({_DEFAULTS_NOTE})"
    )
    parser.set_defaults(command=train_scorer)
    parser.add_argument("--model", required=True, help="the checkpoint, as for export")
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
        help="plain text, .txt",
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="SCORER.safetensors", help="replaced whole"
    )
    for name, kind, about in (
        ("hold-out", float, "share of the documents left alone, for the score (default: 0.25)"),
        ("passes", int, "texts that the backbone is watched reading (default: 84)"),
        ("tokens", int, "length of each (default: 3072)"),
        ("held-out-passes", int, "further ones, for the score (default: 4)"),
        ("gap", int, "tokens between a pair and a query that counts (default: 512)"),
        ("long", int, "one text in so many is twice as long (default: 7; 0: none)"),
        ("facts", int, "planted in each text and asked for at its end (default: 8)"),
        ("retrieval-share", float, "of heads and layers, those that retrieve (default: 0.333)"),
        ("emphasis", float, "0: all pairs count alike; 1: as the attention paid (default: 0.3)"),
        ("steps", int, "of the fit (default: 800)"),
        ("seed", int, "of everything random (default: 0)"),
    ):
        parser.add_argument(
            f"--{name}", type=kind, default=argparse.SUPPRESS, help=about, metavar="N"
        )
    parser.add_argument(
        "--target",
        choices=("largest", "summed"),
        default=argparse.SUPPRESS,
        help="what to fit of the later attention (default: largest)",
    )


def train_scorer(arguments: argparse.Namespace) -> int:
    """Trains, writes the file, prints the held-out score."""
    from edgeinfinite.training.scorer.pairs import PassOptions
    from edgeinfinite.training.scorer.train import ScorerOptions
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
