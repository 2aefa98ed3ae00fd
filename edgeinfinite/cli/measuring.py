"""Shared by the tasks of `evaluate`: loading, what rows depend on, progress."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from edgeinfinite.cli.arguments import given, option
from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.files import check_writable
from edgeinfinite.models.configuration import CACHE_TYPES, INT8_CACHE, NO_GATE
from edgeinfinite.models.geometry_options import GeometryOptions

if TYPE_CHECKING:
    from edgeinfinite.evaluation.results import Progress
    from edgeinfinite.models.checkpoint.loading import Backbone

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
    "dtype of the KV caches; int8 is simulated with a scale per vector, export's has one per "
    "channel (an artifact measures that)",
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


def load_with_setting(arguments: argparse.Namespace) -> tuple[Backbone, Setting]:
    """Loads the checkpoint to its device and decides the setting of its methods.

    Raises:
        EdgeInfiniteError: it can't be loaded, the options don't go together or are no sizes, or
            there is no such device.
    """
    from edgeinfinite.evaluation.placement import device_of
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.models.defaults import ModelOptions, resolve

    device = device_of(vars(arguments).get("device", "cpu"))
    asked = GeometryOptions(**given(arguments, GeometryOptions))
    parts = {"gate": NO_GATE} | given(arguments, Setting)
    scorer, cache_type = parts.pop("scorer", None), parts.pop("cache_type", None)
    # Without a cache type the floats of the checkpoint are measured, with the slots of an export.
    slots_as = INT8_CACHE if cache_type is None and asked.state_mb is None else None
    options = ModelOptions(
        asked, parts["gate"], scorer, cache_type, quantized=False, slots_as=slots_as
    )
    pre_tokenizer = vars(arguments).get("pre_tokenizer")
    backbone = load_backbone(arguments.model, pre_tokenizer=pre_tokenizer)
    resolved = resolve(backbone, options)
    for sentence in resolved.notes:
        note(sentence)
    config = resolved.config
    backbone.model.to(device)  # type: ignore[arg-type]  # transformers wraps it
    return backbone, Setting(
        config.geometry, scorer=config.scorer, cache_type=config.cache_type, **parts
    )


def set_dtype(backbone: Backbone, arguments: argparse.Namespace) -> None:
    """Converts the weights to the requested dtype."""
    import torch

    backbone.model.to(getattr(torch, _dtype(arguments)))


def of_the_model(
    backbone: Backbone, setting: Setting, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Everything that rows depend on, apart from the texts."""
    depends_on: dict[str, Any] = {f.name: getattr(setting, f.name) for f in fields(setting)}
    depends_on |= {"geometry": setting.geometry.to_dict()}
    depends_on |= {"model": backbone.name, "dtype": _dtype(arguments)}
    if "pre_tokenizer" in arguments:
        depends_on["pre_tokenizer"] = arguments.pre_tokenizer
    for name in ("scorer", "gate", "zero_gate"):
        depends_on[name] = named_part(depends_on[name])
    return depends_on


def check_artifact_options(arguments: argparse.Namespace) -> None:
    """Refuses options that an artifact fixes.

    Raises:
        EdgeInfiniteError: names one of the given options.
    """
    if own := sorted(OF_THE_MODEL & set(vars(arguments))):
        name = "--" + own[0].replace("_", "-")
        raise EdgeInfiniteError(f"an artifact has its own; leave {name} out, or give --model")


def _dtype(arguments: argparse.Namespace) -> str:
    return str(getattr(arguments, "dtype", "float32"))


def check_outputs(arguments: argparse.Namespace) -> None:
    """Checks before long work whether its results can be written.

    Raises:
        EdgeInfiniteError: rows or the plot can't be written.
    """
    check_writable(arguments.json, again=True)
    check_writable(arguments.plot)
    if arguments.plot and arguments.plot.suffix not in (".png", ".svg", ".pdf"):
        raise EdgeInfiniteError(f"{arguments.plot} can't be drawn; give a .png, .svg or .pdf")


def of_the_texts(options: Any, documents: list[Path]) -> dict[str, Any]:
    """What rows depend on beside the model; a later run may ask for more lengths or samples."""
    asked = asdict(options) | {"documents": [path.name for path in documents]}
    # Older files without these options can be resumed.
    for name in ("questions", "in_turn", "turns"):
        if not asked.get(name):
            asked.pop(name, None)
    if "questions" in asked:
        asked["questions"] = named_part(asked["questions"])
    return {n: v for n, v in asked.items() if n not in ("methods", "lengths", "samples")}


def named_part(part: str | None) -> str | None:
    """Identifies a trained part by name and contents, not by its folder."""
    if part is None or not Path(part).is_file():
        return part
    return f"{Path(part).name} sha256 {hashlib.sha256(Path(part).read_bytes()).hexdigest()}"


@contextmanager
def progress_bar(tokens: int, *, shown: bool = True) -> Iterator[Progress]:
    """Progress with the time left: a bar on a terminal, occasional lines in a log file.

    Args:
        tokens: to be read.
        shown: of several processes, only one shows its progress.
    """
    terminal = sys.stderr.isatty()
    with tqdm(
        total=tokens,
        unit=" tokens",
        unit_scale=True,
        file=sys.stderr,
        mininterval=0.5 if terminal else 60.0,
        ascii=not terminal,
        disable=not shown,
    ) as bar:

        def show(method: str, new: int) -> None:
            if method:
                bar.set_description_str(method, refresh=False)
            bar.update(new)

        yield show
