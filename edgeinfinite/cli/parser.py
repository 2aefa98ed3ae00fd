"""The command line's parser: every error is one line that says what was probably meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from edgeinfinite.cli.streams import output_failure

_MOST_SHOWN = 3
_ALIKE = 0.72
"""How much of two words must be the same for one to be suggested for the other."""


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that suggests commands and options for misspelt ones.

    An unknown option is refused before anything else is, since what else is amiss mostly follows
    from it: `--promt TEXT` would otherwise be told that `--prompt` is required.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # Of every parser, so that it may stand at the end of a command that failed.
        self.add_argument(
            "--traceback",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where an error came from, for a report",
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"edgeinfinite: error: {message}; see `{self.prog} --help`\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if status == 0:  # after --help and --version, whose text may not have been written
            failure = output_failure()
            if failure is not None:
                piped = isinstance(failure, BrokenPipeError)
                why = (
                    None if piped else f"edgeinfinite: error: standard output: {failure.strerror}\n"
                )
                super().exit(1 if piped else 2, why)
        super().exit(status, message)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if args is not None and self._subparsers is None:
            self._refuse_unknown(args)
        return super().parse_known_args(args, namespace)

    def _refuse_unknown(self, args: Sequence[str]) -> None:
        for given in args:
            if given == "--":
                return
            name = given.partition("=")[0]
            if " " in given.strip():  # a value, such as the options of another command
                continue
            if name.startswith("--") and not self._known(name):
                names = [known for known in self._option_string_actions if known.startswith("--")]
                self.error(f"there is no option {name}{_meant(name, names)}")

    def _known(self, name: str) -> bool:
        """Whether it is an option, or begins one or more, which argparse judges."""
        options = self._option_string_actions
        return name in options or any(option.startswith(name) for option in options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        among = f"; choose among {', '.join(choices)}"
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {value!r}{_meant(str(value), choices) or among}")
        raise argparse.ArgumentError(action, f"{value!r} is none of its values{among}")


def _meant(given: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest of the known words, the likeliest first; or nothing.

    A word that has all parts of the given one comes first: `--max-tokens` is `--max-new-tokens`.
    """
    words = list(known)
    parts = [part for part in given.strip("-").split("-") if part]
    holding = [word for word in words if parts and set(parts) <= set(word.strip("-").split("-"))]
    near = difflib.get_close_matches(given, words, _MOST_SHOWN, _ALIKE)
    best = list(dict.fromkeys([*holding, *near]))[:_MOST_SHOWN] if holding else near[:_MOST_SHOWN]
    return f"; did you mean {' or '.join(best)}?" if best else ""
