"""`edgeinfinite train-scorer`: options, and progress on stderr."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from edgeinfinite.cli.arguments import add_options, finite, given, option
from edgeinfinite.cli.options import PRE_TOKENIZER
from edgeinfinite.training.scorer.options import PassOptions, ScorerOptions

_DEFAULTS_NOTE = "the defaults suit a model of 135M parameters on two cores"


_OPTIONS: dict[str, dict[str, Any]] = {
    "--model": option("the checkpoint, as for export", required=True),
    **PRE_TOKENIZER,
    "--data": option(
        "plain text, .txt (default: excerpts of sixteen books that come with the package)",
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
    "--questions": option(
        "texts with questions that people asked: SQuAD or CLINC150 (.json), QMSum (.jsonl), bAbI "
        "(.txt), or a table with columns text and category (.csv)",
        nargs="+",
        type=Path,
        metavar="FOLDER|FILE",
    ),
    "--output": option("the scorer's file", required=True, type=Path, metavar="SCORER.safetensors"),
    "--hold-out": option(
        "share of the documents held out for the score", type=finite, metavar="SHARE"
    ),
    "--passes": option("texts to collect pairs from", type=int, metavar="N"),
    "--tokens": option("tokens of each text", type=int, metavar="N"),
    "--held-out-passes": option("more texts, held out for the score", type=int, metavar="N"),
    "--repeated-passes": option(
        "texts that the model reads and repeats, for the slots beyond those that the score fills; "
        "0 for none",
        type=int,
        metavar="N",
    ),
    "--base": option(
        "a scorer of this checkpoint that stays as it is and gets what --repeated-passes find",
        type=Path,
        metavar="SCORER",
    ),
    "--gap": option("fewest tokens between a pair and a query that counts", type=int, metavar="N"),
    "--long": option("make one text in N twice as long; 0 for none", type=int, metavar="N"),
    "--asked": option(
        "take one text in N from --questions, if given; 0 for none", type=int, metavar="N"
    ),
    "--facts": option("facts planted in each text and asked for at its end", type=int, metavar="N"),
    "--retrieval-share": option(
        "share of heads that score, and of layers that get more slots",
        type=finite,
        metavar="SHARE",
    ),
    "--emphasis": option(
        "weight of pairs: 0 all equal, 1 by the attention that they get", type=finite, metavar="E"
    ),
    "--steps": option("optimizer steps", type=int, metavar="N"),
    "--seed": option("random seed", type=int, metavar="N"),
}


def add_train_scorer(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the command to the parser; it imports torch only when it runs."""
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
