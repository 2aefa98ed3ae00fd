"""Shared by all parsers: how options are declared, parsed and passed on."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeinfinite.runtime_py.answer.repetition import NO_DETECTION, RepetitionDetection


def option(about: str | None = None, **more: Any) -> dict[str, Any]:
    """Declares an option. Without a default here, `given` leaves it out and a dataclass decides."""
    return {"help": about, "default": argparse.SUPPRESS, **more}


def file_option(about: str, metavar: str = "FILE") -> dict[str, Any]:
    """Declares an option for a path; None if it isn't given."""
    return option(about, type=Path, default=None, metavar=metavar)


def add_options(
    parser: argparse.ArgumentParser | argparse._MutuallyExclusiveGroup,
    options: Mapping[str, dict[str, Any]],
    *dataclasses_: type[Any],
) -> None:
    """Adds options to a parser; their help ends with the default in a dataclass.

    Args:
        parser: the command's.
        options: from `option`, by name.
        dataclasses_: read the options, see `given`; the first with a field of that name decides.
    """
    defaults: dict[str, Any] = {}
    for dataclass in reversed(dataclasses_):
        defaults |= {field.name: _default(field) for field in dataclasses.fields(dataclass)}
    for name, settings in options.items():
        shown = _shown(defaults.get(name.lstrip("-").replace("-", "_")))
        about = settings.get("help")
        if shown is not None and "default:" not in (about or ""):
            shown = f"default: {shown}"
            settings = settings | {"help": f"{about} ({shown})" if about else shown}
        parser.add_argument(name, **settings)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return None


def _shown(default: Any) -> str | None:
    """A default as a user would type it; None for one that the code computes."""
    if default is None or isinstance(default, bool):
        return None
    if isinstance(default, tuple | list):
        return ",".join(map(str, default)) or None
    if isinstance(default, float):
        return f"{default:.3g}"
    if isinstance(default, Path):
        return None  # a folder in this user's home
    return str(default)


def given(arguments: argparse.Namespace, options: type[Any]) -> dict[str, Any]:
    """The dataclass's fields that the command line gives; the others keep their defaults."""
    values = vars(arguments)
    return {f.name: values[f.name] for f in dataclasses.fields(options) if f.name in values}


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _at_least(1, text)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"give a whole number of at least {least}, not {text!r}")
    return number


def not_negative(text: str) -> int:
    """A whole number of at least 0."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"give a whole number of at least 0, not {text!r}")
    return number


def finite(text: str) -> float:
    """A number; NaN and infinity, which no comparison would refuse, are none."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"give a number, not {text!r}")
    return number


def token_bias(text: str) -> tuple[int, float]:
    """A token id and what is added to its logit, as `42=-100`."""
    token, equals, bias = text.partition("=")
    if not equals or not token.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"give ID=BIAS, such as 42=-100, not {text!r}")
    return int(token), finite(bias)


def repetition_detection(text: str) -> RepetitionDetection:
    """Whether an answer that repeats itself ends: `on` or `off`."""
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"give on or off, not {text!r}")
    return RepetitionDetection() if text == "on" else NO_DETECTION


class Biases(argparse.Action):
    """Gathers the `token_bias` pairs of a repeated option in one mapping."""

    def __call__(
        self, _: Any, arguments: argparse.Namespace, value: Any, option_string: Any = None
    ) -> None:
        token, bias = value
        setattr(arguments, self.dest, {**getattr(arguments, self.dest, {}), token: bias})


def cpu_threads(text: str) -> int:
    """A number of threads up to a sensible maximum, because engines hang on thousands of them."""
    number, most = positive(text), max(16, 4 * (os.cpu_count() or 1))
    if number > most:
        raise argparse.ArgumentTypeError(
            f"give at most {most} threads: this machine has {os.cpu_count()} CPUs"
        )
    return number


def lengths(text: str) -> tuple[int, ...]:
    """Lengths in tokens, such as `2048,8192`."""
    return tuple(positive(part) for part in text.split(","))


def method_lengths(text: str) -> dict[str, int]:
    """Lengths in tokens by method, as `full=7500,streaming=4000`."""
    found = {}
    for part in names(text):
        method, equals, length = part.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"give METHOD=N, not {part!r}")
        found[method] = positive(length)
    return found


def names(text: str) -> tuple[str, ...]:
    """Names, such as `full,streaming`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
