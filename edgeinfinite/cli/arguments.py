"""What the parsers of all commands share: how options are declared, read and handed on."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any


def option(about: str | None = None, **more: Any) -> dict[str, Any]:
    """An option; without a default here it stays away, and `given` leaves it to a dataclass."""
    return {"help": about, "default": argparse.SUPPRESS, **more}


def file_option(about: str, metavar: str = "FILE") -> dict[str, Any]:
    """A path, None where it isn't given."""
    return option(about, type=Path, default=None, metavar=metavar)


def given(arguments: argparse.Namespace, options: type[Any]) -> dict[str, Any]:
    """The fields of a dataclass that stand on the command line; it knows the other defaults."""
    values = vars(arguments)
    return {f.name: values[f.name] for f in dataclasses.fields(options) if f.name in values}


def positive(text: str) -> int:
    """A whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"give a whole number of at least 1, not {text!r}")
    return number


def lengths(text: str) -> tuple[int, ...]:
    """Lengths in tokens, as `2048,8192`."""
    return tuple(positive(part) for part in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """Names, as `full,streaming`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
