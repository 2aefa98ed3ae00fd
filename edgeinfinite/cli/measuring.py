"""Shared by the tasks of `evaluate`: options of a checkpoint, progress."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING

from tqdm import tqdm

from edgeinfinite.cli.arguments import given, option
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.options import CheckpointOptions
from edgeinfinite.files import check_writable
from edgeinfinite.models.configuration import CACHE_TYPES
from edgeinfinite.models.geometry_options import GeometryOptions

if TYPE_CHECKING:
    from edgeinfinite.evaluation.results import Progress

OF_THE_MODEL = {"methods", "dtype", "device", "cache_type", "gate", "zero_gate", "scorer"}
OF_THE_MODEL |= {"pre_tokenizer"}
OF_THE_MODEL |= {field.name for field in fields(GeometryOptions)}
"""Options that are fixed when an artifact is exported, or that its engine doesn't have."""

DEVICE = option(
    "where a checkpoint computes: cpu, cuda (each process of accelerate launch on its own GPU) or "
    "cuda:N (default: cpu)",
    metavar="DEVICE",
)
"""The option of commands that measure a checkpoint."""

CACHE_TYPE = option(
    "dtype of the KV caches (default: float32, or within --state-mb what export takes)",
    choices=CACHE_TYPES,
)
"""The same, of a checkpoint's state."""

STATE_MB = option(
    "largest state; chooses segment length, recall slots or window as export does, and without "
    "--cache-type an int8 cache (float16 under reencode)",
    type=float,
    metavar="MB",
)
"""The same."""


def checkpoint_options(arguments: argparse.Namespace) -> CheckpointOptions:
    """What is to be loaded.

    Raises:
        EdgeInfiniteError: an option is out of range.
    """
    geometry = GeometryOptions(**given(arguments, GeometryOptions))
    return CheckpointOptions(**given(arguments, CheckpointOptions), geometry=geometry)


def check_artifact_options(arguments: argparse.Namespace) -> None:
    """Refuses options that an artifact fixes.

    Raises:
        EdgeInfiniteError: names one of the given options.
    """
    if own := sorted(OF_THE_MODEL & set(vars(arguments))):
        name = "--" + own[0].replace("_", "-")
        raise EdgeInfiniteError(f"an artifact has its own; leave {name} out, or give --model")


def check_outputs(arguments: argparse.Namespace) -> None:
    """Checks before long work whether its results can be written.

    Raises:
        EdgeInfiniteError: rows or the plot can't be written.
    """
    check_writable(arguments.json, again=True)
    check_writable(arguments.plot)
    if arguments.plot and arguments.plot.suffix not in (".png", ".svg", ".pdf"):
        raise EdgeInfiniteError(f"{arguments.plot} can't be drawn; give a .png, .svg or .pdf")


@contextmanager
def progress_bar(tokens: int) -> Iterator[Progress]:
    """Progress with the time left: a bar on a terminal, occasional lines in a log file."""
    terminal = sys.stderr.isatty()
    with tqdm(
        total=tokens,
        unit=" tokens",
        unit_scale=True,
        file=sys.stderr,
        mininterval=0.5 if terminal else 60.0,
        ascii=not terminal,
    ) as bar:

        def show(method: str, new: int) -> None:
            if method:
                bar.set_description_str(method, refresh=False)
            bar.update(new)

        yield show
