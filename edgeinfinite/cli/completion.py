"""`edgeinfinite completion`: what a shell needs to complete commands, options and paths."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHELLS = ("bash", "zsh", "tcsh")
_ABOUT = "prints a shell's completion of commands, options and paths"
_MORE = (
    ": bash reads it by `source <(edgeinfinite completion bash)`, zsh as a file `_edgeinfinite` "
    "in a folder of its `fpath`"
)


def add_completion(commands: Any, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Adds the command.

    Args:
        commands: the program's subparsers.
        whole: makes the parser of all commands.
    """
    parser = commands.add_parser("completion", help=_ABOUT, description=_ABOUT + _MORE)
    parser.add_argument("shell", choices=SHELLS, help="the shell")

    def completion(arguments: argparse.Namespace) -> int:
        print(completion_of(whole(), arguments.shell))
        return 0

    parser.set_defaults(command=completion)


def completion_of(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of one of `SHELLS`."""
    import shtab

    _complete_paths(parser, shtab.FILE)
    return str(shtab.complete(parser, shell))


def _complete_paths(parser: argparse.ArgumentParser, paths: Any) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _complete_paths(child, paths)
        elif action.type is Path:
            action.complete = paths  # type: ignore[attr-defined]
