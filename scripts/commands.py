"""Writes docs/commands.md: every command and option of the command line, from its parsers.

python scripts/commands.py            # `make commands`
python scripts/commands.py --check    # exit code 1 if the page is another one
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from edgeinfinite.cli.main import command_line

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
_HEAD = """# Every command

`make commands` makes this page from the parsers. `edgeinfinite COMMAND --help` prints the same.
Every command has `--traceback`, which shows where an error came from.
Exit codes: 0 done, 1 a check failed, 2 an error that you can mend, 130 Ctrl-C, 143 SIGTERM.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(*command) for command in _commands(command_line()))])


def _commands(
    parser: argparse.ArgumentParser, about: str = ""
) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every parser without commands of its own, with its line of help."""
    subs = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not subs:
        yield parser, about
    for sub in subs:
        helps = {choice.dest: choice.help or "" for choice in sub._choices_actions}
        for name, child in sub.choices.items():
            yield from _commands(child, helps.get(name, ""))


def _section(parser: argparse.ArgumentParser, about: str) -> str:
    shown = [a for a in parser._actions if not {"--help", "--traceback"} & set(a.option_strings)]
    lines = [f"- {_option(parser, action)}" for action in shown if action.help != argparse.SUPPRESS]
    text = parser.description or about
    paragraphs = [f"## {parser.prog.removeprefix('edgeinfinite ')}", text.strip(), "\n".join(lines)]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    value = _value(action)
    names = action.option_strings or [value]
    name = ", ".join(names) + (f" {value}" if value and action.option_strings else "")
    required = " (required)" if action.required and action.option_strings else ""
    about = (action.help or "") % {"prog": parser.prog, "default": action.default}
    return f"`{name}`{required}" + (f": {re.sub(' +', ' ', about)}" if about else "")


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        value = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    elif action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper()
    several = {"*": "[{} ...]", "+": "{} ...", "?": "[{}]"}
    return several.get(str(action.nargs), "{}").format(value)


def main() -> int:
    """Writes the page, or with `--check` compares it.

    Returns:
        0, or 1 if it is another one.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print("docs/commands.md isn't what the parsers say; run `make commands`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
