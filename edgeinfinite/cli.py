"""The command line (DESIGN §4): one function a command; what a command needs is imported in it."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from edgeinfinite import EdgeInfiniteError, __version__
from edgeinfinite.arguments import given
from edgeinfinite.evaluation.command import add_evaluate
from edgeinfinite.models.geometry import GeometryOptions
from edgeinfinite.options import (
    ANSWER,
    BENCH,
    CHAT,
    EXPORT,
    GENERATE,
    GEOMETRY,
    QUANTIZE_REPORT,
    VERIFY,
)
from edgeinfinite.runtime_py.generation import Generation, interruptible
from edgeinfinite.runtime_py.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.statistics import GenerationStatistics, write_rows
from edgeinfinite.text_file import check_writable, read_text_file
from edgeinfinite.training.command import add_train_scorer
from edgeinfinite.training.gate_command import add_train_gate

if TYPE_CHECKING:
    from edgeinfinite.runtime_py.engines import Engine
    from edgeinfinite.runtime_py.session import Session
    from edgeinfinite.runtime_py.tokenizer import TextTokenizer


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0 done, 1 a check of `verify` failed, 2 an error that the user can mend,
        130 ended by Ctrl-C (`generate`: before there was an answer).
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone: `edgeinfinite generate | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except EdgeInfiniteError as error:
        message = str(error)
    except OSError as error:
        place = f"{error.filename}: {error.strerror}; check the path"
        message = place if error.filename else str(error)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("edgeinfinite"):
            raise
        message = f"this command needs the package {error.name}; pip install {error.name}"
    print(f"edgeinfinite: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


# ------------------------------------------------------------------------------- commands


def export(arguments: argparse.Namespace) -> int:
    """Writes the artifact of a model."""
    asked = GeometryOptions(**given(arguments, GeometryOptions))
    from edgeinfinite.export.exporter import ExportOptions, export_artifact
    from edgeinfinite.export.loss import told
    from edgeinfinite.export.mixing.plan import QuantizationOptions
    from edgeinfinite.runtime_py.manifest import read_manifest

    quantization = QuantizationOptions(**given(arguments, QuantizationOptions))
    options = ExportOptions(
        **given(arguments, ExportOptions), geometry=asked, quantization=quantization
    )
    folder = export_artifact(options)
    print(f"{folder}: {_folder_bytes(folder) / 1e6:,.1f} MB")
    for line in told(read_manifest(folder).parity):
        print(line, file=sys.stderr if line.startswith("warning") else sys.stdout)
    return 0


def quantize_report(arguments: argparse.Namespace) -> int:
    """Measures what every weight would lose in every format, and how many bytes it would take."""
    check_writable(arguments.output)
    from tqdm import tqdm

    from edgeinfinite.export.mixing import report

    options = report.ReportOptions(**given(arguments, report.ReportOptions))
    with tqdm(
        total=1.0, file=sys.stderr, disable=None, bar_format="{desc}: {bar} {elapsed}"
    ) as bar:

        def show(what: str, done: float) -> None:
            bar.set_description_str(what)
            bar.n = done
            bar.refresh()

        choices = report.quantize_report(options, show)
    for line in report.table(choices):
        print(line)
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Checks an artifact: checksums, inputs and outputs, parity with the checkpoint."""
    check_writable(arguments.json)
    from edgeinfinite.export.verify import verify_artifact

    checks = verify_artifact(
        arguments.artifact,
        against=arguments.against,
        text=arguments.text,
        model=arguments.model,
    )
    for check in checks:
        limit = "" if check.limit is None else f" (limit {check.limit:.3g})"
        print(f"{'ok' if check.passed else 'FAILED':<7}{check.check:<40}{check.value:.3g}{limit}")
    if arguments.json:
        write_rows(arguments.json, "verify", [dataclasses.asdict(check) for check in checks])
    return 0 if all(check.passed for check in checks) else 1


def generate(arguments: argparse.Namespace) -> int:
    """Reads one prompt and streams the answer to stdout."""
    prompt = _prompt(arguments)
    sampler = Sampler(SamplingOptions(**given(arguments, SamplingOptions)))
    check_writable(arguments.stats_json)
    session, tokenizer = _load(arguments)
    if arguments.raw or not tokenizer.has_chat_template:
        if not arguments.raw:
            print("note: no chat template in the artifact, the text is continued", file=sys.stderr)
        tokens = tokenizer.encode_text(prompt)
    else:
        tokens = tokenizer.encode_chat([{"role": "user", "content": prompt}])
    figures = _answer(session, tokenizer, tokens, sampler, arguments)
    if arguments.stats:
        print(figures.table(), file=sys.stderr)
    if arguments.stats_json:
        write_rows(arguments.stats_json, "generate", [figures.to_row()])
    return 130 if session.unread else 0


def chat(arguments: argparse.Namespace) -> int:
    """A conversation: /reset forgets it, /stats shows the last answer's figures, /exit ends."""
    from edgeinfinite.runtime_py.session import Session
    from edgeinfinite.runtime_py.session_file import load_session, save_session

    sampler = Sampler(SamplingOptions(**given(arguments, SamplingOptions)))
    path: Path | None = arguments.session
    check_writable(path)
    session, tokenizer = _load(arguments)
    if path is not None and path.exists():
        session, _ = load_session(session.engine, path)
        print(f"going on after {session.tokens_read:,} tokens", file=sys.stderr)
    figures = None
    for line in _lines("> "):
        if line == "/exit":
            break
        if line == "/stats":
            print(figures.table() if figures else "no answer yet", file=sys.stderr)
            continue
        if line == "/reset":
            session = Session(session.engine)
        else:
            if session.tokens_read or session.unread:
                tokens = tokenizer.encode_turn(line)
            else:
                tokens = tokenizer.encode_chat([{"role": "user", "content": line}])
            figures = _answer(session, tokenizer, tokens, sampler, arguments)
        if path is not None:
            save_session(session, path)
    return 0


def bench(arguments: argparse.Namespace) -> int:
    """Measures speed and memory against prompt length, beside the peers that are installed."""
    from edgeinfinite.runtime_py.benchmark import report
    from edgeinfinite.runtime_py.benchmark.run import BenchOptions, run_bench

    check_writable(arguments.json)
    check_writable(arguments.plot)
    options = BenchOptions(**given(arguments, BenchOptions))

    def peer_model(kind: str, settings: str, model: str) -> Path:
        from edgeinfinite.export.peer_models import prepare_peer_model  # needs torch, we don't

        return prepare_peer_model(kind, settings, model, options.peer_cache)

    rows, limits = run_bench(options, peer_model)
    print(report.table(rows))
    print(
        f"memory reads {limits.read_bytes_per_s / 1e9:.1f} GB/s, float32 matrix products "
        f"{limits.multiply_flops / 1e9:.0f} GFLOP/s with {options.threads} threads"
    )
    if arguments.json:
        write_rows(arguments.json, "bench", [dataclasses.asdict(row) for row in rows])
    if arguments.plot:
        report.plot(rows, arguments.plot)
    return 0


# --------------------------------------------------------------------------- their parts


def _load(arguments: argparse.Namespace) -> tuple[Session, TextTokenizer]:
    from edgeinfinite.runtime_py.engines import load_engine
    from edgeinfinite.runtime_py.session import Session
    from edgeinfinite.runtime_py.tokenizer import load_tokenizer

    if sys.stderr.isatty():
        print(f"loading {arguments.artifact} ...", file=sys.stderr)
    engine: Engine = load_engine(arguments.artifact, threads=arguments.threads)
    return Session(engine), load_tokenizer(arguments.artifact)


def _answer(
    session: Session,
    tokenizer: TextTokenizer,
    tokens: Sequence[int],
    sampler: Sampler,
    arguments: argparse.Namespace,
) -> GenerationStatistics:
    """Streams one answer to stdout; Ctrl-C ends it early, a second one the program."""
    stream = tokenizer.stream()
    text = ""
    with interruptible() as interrupted, _reading(len(session.unread) + len(tokens)) as bar:
        generation = Generation(
            session,
            tokens,
            sampler=sampler,
            stop_ids=tokenizer.stop_ids,
            max_new_tokens=arguments.max_new_tokens,
            cancelled=interrupted,
            progress=bar.update,
        )
        for token in generation:
            bar.close()
            text += _show(stream.push(token))
        text += _show(stream.flush())
    print(flush=True)  # before the figures, which go to stderr
    if session.unread:
        left = f"stopped with {len(session.unread):,} tokens of the message unread"
        print(f"{left}; a chat reads them with the next one, /reset forgets them", file=sys.stderr)
    return generation.statistics(
        text=text, engine=session.engine.name, artifact=str(arguments.artifact)
    )


def _show(piece: str) -> str:
    sys.stdout.write(piece)
    sys.stdout.flush()
    return piece


def _reading(tokens: int) -> Any:
    """A bar on stderr for prompts that take more than a moment; quiet where it isn't a terminal."""
    from tqdm import tqdm

    return tqdm(
        total=tokens,
        desc="reading",
        unit=" tokens",
        delay=0.5,
        leave=False,
        disable=None,  # when stderr isn't a terminal
    )


def _lines(prompt: str) -> Iterator[str]:
    """Lines of stdin that aren't blank, stripped; the prompt is shown on a terminal only."""
    terminal = sys.stdin.isatty()
    if terminal:
        with suppress(ImportError):  # not on Windows
            import readline  # noqa: F401  (gives `input` line editing)
    while True:
        try:
            line = input(prompt if terminal else "").strip()
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise EdgeInfiniteError("standard input isn't UTF-8 text; convert it first") from error
        if line:
            yield line


def _prompt(arguments: argparse.Namespace) -> str:
    path: Path | None = arguments.prompt_file
    text = arguments.prompt if path is None else read_text_file(path)
    if not text.strip():
        raise EdgeInfiniteError(f"prompt is empty; write text into {path or '--prompt'}")
    return text


def _folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# -------------------------------------------------------------------------------- options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"edgeinfinite: error: {message}; see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="edgeinfinite", description="Long texts in a state of fixed size.")
    parser.add_argument("--version", action="version", version=f"edgeinfinite {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command, options in (
        (export, EXPORT),
        (verify, VERIFY),
        (quantize_report, QUANTIZE_REPORT),
        (generate, GENERATE | ANSWER),
        (chat, CHAT | ANSWER),
        (bench, BENCH),
    ):
        about = (command.__doc__ or "").strip()
        sub = commands.add_parser(command.__name__.replace("_", "-"), help=about, description=about)
        sub.set_defaults(command=command)
        prompt = sub.add_mutually_exclusive_group(required=True) if command is generate else sub
        for name, settings in options.items():
            owner = prompt if name.startswith("--prompt") else sub
            owner.add_argument(name, **settings)
    add_train_scorer(commands)
    lengths_only = ("--segment-length", "--sink-length", "--window-length")
    add_train_gate(commands, {name: GEOMETRY[name] for name in lengths_only})
    gate = EXPORT["--gate"] | {"help": "trained gate (default: none)"}
    add_evaluate(commands, {"--gate": gate} | GEOMETRY)
    return parser


if __name__ == "__main__":
    sys.exit(main())
