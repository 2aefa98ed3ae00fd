"""`edgeinfinite adapt`: from a checkpoint to an artifact with a scorer of its own and a card."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import MANIFEST_FILE, SCORER_FILE
from edgeinfinite.cli.arguments import add_options, given, option
from edgeinfinite.cli.card import CARD, written
from edgeinfinite.cli.export import export_options
from edgeinfinite.cli.notes import note
from edgeinfinite.cli.options import EXPORT, MODEL
from edgeinfinite.cli.steps import Done, Run, Step, read_record, run_steps
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.model_card.options import CardOptions
from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.output_folder import check_output
from edgeinfinite.files import held_alone

Options = dict[str, dict[str, Any]]
Parse = Callable[[Sequence[str]], argparse.Namespace]

_WORK = ".adapt"
_SCORER, _STEPS, _REPORT = "scorer.safetensors", "steps.json", "report.jsonl"
_OF_CARD = ("--lengths", "--samples", "--methods", "--parts", "--threads")
_NOT_OF_EXPORT = {"--model", "--output", "--scorer", "--report", "--dry-run"}
_EXPORT: Options = {name: s for name, s in EXPORT.items() if name not in _NOT_OF_EXPORT}
_QUANTIZE = "int4"
_OWN: Options = {
    "--model": option("the checkpoint", metavar=MODEL, required=True),
    "--output": option("the artifact's folder", type=Path, metavar="DIR", required=True),
    "--scorer": option("retention scorer; nothing is trained then", default=None, metavar="FILE"),
    "--data": option(
        "texts to train the scorer on (default: books that come with the package)",
        nargs="+",
        type=Path,
        default=[],
        metavar="FOLDER|FILE",
    ),
    "--questions": option(
        "texts with questions that people asked, as for train-scorer",
        nargs="+",
        type=Path,
        default=[],
        metavar="FOLDER|FILE",
    ),
    "--train-options": option(
        "more options of train-scorer, such as '--passes 24'", default="", metavar="OPTIONS"
    ),
    "--card-options": option(
        "more options of card, such as '--tokens 16384 --documents 4'",
        default="",
        metavar="OPTIONS",
    ),
    "--base-model": CARD["--base-model"],
    "--license": CARD["--license"],
}


def add_adapt(commands: argparse._SubParsersAction[Any], parse: Parse, run: Run) -> None:
    """Adds the command to the parser; it imports torch only when it runs.

    Args:
        commands: the command line's.
        parse: parses a command of this program.
        run: runs one.
    """
    about = "Trains a scorer for a model, exports, verifies and measures it, and writes its card."
    parser = commands.add_parser("adapt", help=about, description=about)
    parser.set_defaults(command=lambda arguments: adapt(arguments, parse, run))
    card = {name: CARD[name] for name in _OF_CARD}
    kept = {name: _as_typed(settings) for name, settings in (_EXPORT | card).items()}
    kept["--quantize"] = kept["--quantize"] | {"help": f"(default: {_QUANTIZE})"}
    add_options(parser, _OWN | kept, ExportOptions, CardOptions)


def adapt(arguments: argparse.Namespace, parse: Parse, run: Run) -> int:
    """Does what isn't done yet; a killed run goes on when the same command is given again."""
    output = arguments.output.absolute()
    argv = _export_argv(arguments, output)
    exported = parse(_words(argv))
    export_options(exported)  # wrong ones are refused before anything is loaded
    check_output(output)
    card = parse(["card", str(output), "--model", arguments.model, *_card_options(arguments)])
    options = CardOptions(**given(card, CardOptions))
    work = output.with_name(output.name + _WORK)
    train = Step("train-scorer", _train_argv(arguments, work), _stamp(arguments.model))
    parse(_words(train.argv))  # wrong options are refused before the checkpoint is loaded
    with _working_in(work):
        done = _made(arguments, train, argv, exported, work, run)
        path = written(output, options, arguments, done, run)
        shutil.rmtree(work)
    print(path)
    return 0


def _made(
    arguments: argparse.Namespace,
    train: Step,
    argv: tuple[str | Path, ...],
    exported: argparse.Namespace,
    work: Path,
    run: Run,
) -> list[Done]:
    """Makes scorer and artifact, as far as they aren't there; returns the steps that made them."""
    known = _known(work, exported.output)
    steps, scorer = [], arguments.scorer and Path(arguments.scorer)
    trained = any(one.digest == train.digest for one in known)
    if scorer is None and (trained or _is_to_be_trained(arguments, exported)):
        steps, scorer = [train], work / _SCORER
    if scorer is not None:
        argv += ("--scorer", scorer)
    if exported.__dict__.get("max_mb") or exported.__dict__.get("max_loss"):
        argv += ("--report", work / _REPORT)
    made_of = _stamp(arguments.model, scorer)
    steps.append(Step("export", argv, steps[0].digest if steps else made_of))
    current = {step.digest for step in steps}
    return run_steps(steps, work / _STEPS, [one for one in known if one.digest in current], run)


def _stamp(*sources: str | Path | None) -> str:
    """Sizes and times of files and folders: what was made of others isn't gone on with."""
    paths = [Path(source) for source in sources if source is not None]
    files = [f for path in paths for f in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return " ".join(f"{s.st_size}:{s.st_mtime_ns}" for f in files if f.exists() for s in [f.stat()])


def _known(work: Path, output: Path) -> list[Done]:
    """Steps that are done, of this run or of one that made the artifact, if their files are there.

    The scorer of a finished run lies in the artifact.
    """
    from edgeinfinite.evaluation.model_card.sections import FOLDER, STEPS

    known = read_record(work / _STEPS) or read_record(output / FOLDER / STEPS)
    if not (work / _SCORER).is_file() and (output / SCORER_FILE).is_file():
        shutil.copyfile(output / SCORER_FILE, work / _SCORER)
    needed = {"train-scorer": work / _SCORER, "export": output / MANIFEST_FILE}
    return [one for one in known if one.name in needed and needed[one.name].is_file()]


def _is_to_be_trained(arguments: argparse.Namespace, exported: argparse.Namespace) -> bool:
    """Whether the artifact will have recall slots, and no scorer for them is shipped."""
    policy, slots = (getattr(exported, name, None) for name in ("policy", "recall_slots"))
    if policy == "reencode" or slots == 0:
        return False
    from edgeinfinite.models.architecture import architecture_of, check_supported
    from edgeinfinite.models.checkpoint.loading import load_backbone
    from edgeinfinite.models.shipped import shipped_scorer

    backbone = load_backbone(arguments.model, pre_tokenizer=vars(arguments).get("pre_tokenizer"))
    check_supported(backbone.model)
    if all(architecture_of(backbone.model).sliding_windows):
        note(f"every layer of {backbone.name} has a sliding window: no scorer is needed")
        return False
    shipped = shipped_scorer(backbone.weights_sha256)
    if shipped is None or arguments.data or arguments.questions or arguments.train_options:
        return True
    note(f"the shipped scorer {shipped.name} fits; --data or --train-options train another")
    return False


def _train_argv(arguments: argparse.Namespace, work: Path) -> tuple[str | Path, ...]:
    argv: tuple[str | Path, ...] = ("train-scorer", "--model", arguments.model)
    if "pre_tokenizer" in arguments:
        argv += ("--pre-tokenizer", arguments.pre_tokenizer)
    for name in ("data", "questions"):
        paths: list[Path] = getattr(arguments, name)
        argv += (f"--{name}", *paths) if paths else ()
    return (*argv, "--output", work / _SCORER, *_split(arguments.train_options, "--train-options"))


def _export_argv(arguments: argparse.Namespace, output: Path) -> tuple[str | Path, ...]:
    given_ = vars(arguments)
    argv: tuple[str | Path, ...] = ("export", "--model", arguments.model, "--output", output)
    if "quantize" not in given_:
        argv += ("--quantize", _QUANTIZE)
    for name in _EXPORT:
        field = name.removeprefix("--").replace("-", "_")
        argv += (name, given_[field]) if field in given_ else ()
    return argv


def _card_options(arguments: argparse.Namespace) -> list[str]:
    words = []
    for name in _OF_CARD:
        field = name.removeprefix("--")
        words += [name, vars(arguments)[field]] if field in arguments else []
    return words + _split(arguments.card_options, "--card-options")


def _split(words: str, name: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise EdgeInfiniteError(f"{name} {words!r} can't be read: {error}") from error


def _words(argv: Sequence[str | Path]) -> list[str]:
    return [str(word) for word in argv]


def _as_typed(settings: dict[str, Any]) -> dict[str, Any]:
    """An option that is checked now and passed on as it was typed."""
    check = settings.get("type")
    if check is None:
        return settings

    def typed(text: str) -> str:
        check(text)
        return text

    typed.__name__ = getattr(check, "__name__", "value")  # argparse's messages have it
    return settings | {"type": typed}


@contextmanager
def _working_in(work: Path) -> Iterator[None]:
    """A folder for what isn't finished, which only one process has at a time."""
    work.parent.mkdir(parents=True, exist_ok=True)
    with held_alone(work):
        work.mkdir(exist_ok=True)
        yield
