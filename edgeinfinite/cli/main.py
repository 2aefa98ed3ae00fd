"""The command line's entry point: commands and error handling (docs/develop/architecture.md)."""

from __future__ import annotations

import argparse
import errno
import sys
import traceback
from collections.abc import Sequence

from edgeinfinite.cli.adapt import add_adapt
from edgeinfinite.cli.answer import generate
from edgeinfinite.cli.arguments import add_options
from edgeinfinite.cli.bench import bench
from edgeinfinite.cli.bench_methods import BENCH_METHODS
from edgeinfinite.cli.card import add_card
from edgeinfinite.cli.chat import chat
from edgeinfinite.cli.completion import add_completion
from edgeinfinite.cli.evaluate import add_evaluate
from edgeinfinite.cli.export import export, quantize_report
from edgeinfinite.cli.lm_eval import add_lm_eval
from edgeinfinite.cli.mom import MOM
from edgeinfinite.cli.options import (
    ANSWER,
    BENCH,
    CHAT,
    EXPORT,
    FORM,
    GENERATE,
    GEOMETRY,
    PROMPT,
    QUANTIZE_REPORT,
    READ,
    SERVE,
    SESSIONS,
    SOAK,
    VERIFY,
)
from edgeinfinite.cli.parser import Parser
from edgeinfinite.cli.push import PUSH, push
from edgeinfinite.cli.quiet import quieten
from edgeinfinite.cli.read import read, sessions
from edgeinfinite.cli.serve import serve
from edgeinfinite.cli.signals import ended_by_signals
from edgeinfinite.cli.soak import soak
from edgeinfinite.cli.streams import open_closed_streams, output_failure, write_out
from edgeinfinite.cli.terminal import escape_unencodable
from edgeinfinite.cli.train_gate import add_train_gate
from edgeinfinite.cli.train_scorer import add_train_scorer
from edgeinfinite.cli.verify import verify
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.soak.options import SoakOptions
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.installation import install_package
from edgeinfinite.runtime_py.answer.generation import Terminated
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.benchmark.options import BenchOptions
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.version import __version__

_NO_MEMORY = "the memory isn't enough for this; close other programs, or use a smaller model"
_LOADER_HAS_NO_MEMORY = "failed to map segment from shared object"
_TORCH_HAS_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0 done, 1 a check of `verify` or `soak` failed, 2 an error that the user can
        fix, 130 ended by Ctrl-C (`generate`: before any answer), 143 by SIGTERM.
    """
    open_closed_streams()
    return run(command_line().parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Runs the command that was parsed.

    Args:
        arguments: `command`, a function, and its options.

    Returns:
        `main`'s exit code; errors that the user can fix are one line on stderr.
    """
    open_closed_streams()
    quieten()
    escape_unencodable()
    try:
        with ended_by_signals():
            code = int(arguments.command(arguments))
        write_out()
        return code
    except Terminated:
        return 143
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # our output's reader is gone: `edgeinfinite generate | head`
        output_failure()
        return 1
    except Exception as error:
        output_failure()  # what is buffered may fail again at the exit
        message = _told(error)
        if message is None:
            raise
        if getattr(arguments, "traceback", False):
            traceback.print_exc()
    print(f"edgeinfinite: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _told(error: Exception) -> str | None:
    """What a user is told of an error that they can do something about; else None."""
    match error:
        case EdgeInfiniteError():
            return str(error)
        case OSError():
            if error.filename:
                return f"{error.filename}: {error.strerror}; {_advice(error)}"
            return f"{error.strerror}; {_advice(error)}" if _is_full(error) else str(error)
        case MemoryError():
            return _NO_MEMORY
        case RuntimeError() if _TORCH_HAS_NO_MEMORY in str(error):
            return _NO_MEMORY
        case ModuleNotFoundError() if not (error.name or "").startswith("edgeinfinite"):
            return (
                f"this command needs the package {error.name}; {install_package(error.name or '')}"
            )
        case ImportError() if _LOADER_HAS_NO_MEMORY in str(error):
            return _NO_MEMORY
    return None


def _advice(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "check the permissions"
    return "make room on the disk" if _is_full(error) else "check the path"


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="edgeinfinite", description="Long texts in a fixed-size state.")
    parser.add_argument("--version", action="version", version=f"edgeinfinite {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command, options, read_by in (
        (export, EXPORT, (ExportOptions,)),
        (verify, VERIFY, ()),
        (quantize_report, QUANTIZE_REPORT, ()),
        (push, PUSH, ()),
        (generate, GENERATE | ANSWER | MOM, (SamplingOptions,)),
        (chat, CHAT | MOM, (SamplingOptions,)),
        (read, READ, ()),
        (sessions, SESSIONS, ()),
        (serve, SERVE | MOM, (ServeOptions,)),
        (bench, BENCH | BENCH_METHODS, (BenchOptions,)),
        (soak, SOAK, (SoakOptions,)),
    ):
        about = (command.__doc__ or "").strip()
        name = command.__name__.replace("_", "-")
        sub = commands.add_parser(name, help=about, description=about)
        sub.set_defaults(command=command)
        if command is generate:
            add_options(sub.add_mutually_exclusive_group(), PROMPT)
            add_options(sub.add_mutually_exclusive_group(), FORM)
        add_options(sub, options, *read_by)
    add_train_scorer(commands)
    add_train_gate(commands)
    add_evaluate(commands, GEOMETRY)
    add_lm_eval(commands, GEOMETRY)
    add_card(commands, _run)
    add_adapt(commands, _parse, _run)
    add_completion(commands, command_line)
    return parser


def add_export(parser: argparse.ArgumentParser) -> None:
    """Makes a parser of another program's that of `edgeinfinite export`, for `run`."""
    parser.set_defaults(command=export)
    add_options(parser, EXPORT, ExportOptions)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    return command_line().parse_args(argv)


def _run(argv: Sequence[str]) -> int:
    """Runs a command for another one, which handles its errors."""
    arguments = _parse(argv)
    return int(arguments.command(arguments))
