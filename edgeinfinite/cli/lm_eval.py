"""`edgeinfinite lm-eval`: lm-evaluation-harness on an artifact or a checkpoint."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from edgeinfinite.cli.arguments import (
    add_options,
    cpu_threads,
    file_option,
    lengths,
    names,
    option,
    positive,
)
from edgeinfinite.cli.measuring import (
    CACHE_TYPE,
    DEVICE,
    OF_THE_MODEL,
    STATE_MB,
    checkpoint_options,
)
from edgeinfinite.cli.notes import note
from edgeinfinite.cli.options import PRE_TOKENIZER
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.options import CheckpointOptions
from edgeinfinite.files import check_writable

if TYPE_CHECKING:
    from lm_eval.tasks import TaskManager

    from edgeinfinite.evaluation.harness import HarnessModel

Options = dict[str, dict[str, Any]]

_OPTIONS: Options = {
    "--model": option("an artifact's folder, or a checkpoint as for export", required=True),
    "--tasks": option("tasks of lm-evaluation-harness", required=True, type=names, metavar="LIST"),
    "--method": option(
        "a checkpoint's method, as in evaluate (default: edgeinfinite); empty reads RULER's "
        "questions without their texts"
    ),
    "--num-fewshot": option("examples before each question", type=int, default=None, metavar="N"),
    "--limit": option("rows of each task (default: all)", type=positive, default=None, metavar="N"),
    "--apply-chat-template": option("apply the chat template", action="store_true", default=False),
    "--lengths": option("lengths in tokens of RULER's generated texts", type=lengths, default=None),
    "--gold-loss": option(
        "also measure RULER's right answers, in nats per token", action="store_true", default=False
    ),
    "--include-path": option("folder with your own tasks", type=Path, default=None),
    "--json": file_option("a row for each metric"),
    "--cache-type": CACHE_TYPE,
    "--state-mb": STATE_MB,
    **PRE_TOKENIZER,
    "--device": DEVICE,
    "--threads": option("threads of the engine", type=cpu_threads, default=None, metavar="N"),
}


def add_lm_eval(commands: argparse._SubParsersAction[Any], geometry: Options) -> None:
    """Adds the command; it imports torch and lm_eval only when it runs.

    Args:
        commands: the command line's.
        geometry: options of a checkpoint's cache.
    """
    about = "Runs tasks of lm-evaluation-harness; needs the extra lm-eval."
    parser = commands.add_parser("lm-eval", help=about, description=about)
    parser.set_defaults(command=lm_eval)
    gate = {"--gate": option("trained gate", metavar="FILE|untrained|none")}
    add_options(parser, _OPTIONS | gate | geometry, CheckpointOptions)


def lm_eval(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    check_writable(arguments.json)
    from lm_eval import simple_evaluate
    from lm_eval.utils import make_table

    from edgeinfinite.evaluation.ruler import no_punkt_download
    from edgeinfinite.rows_file import write_rows

    with (
        TemporaryDirectory() as folder,
        no_punkt_download(arguments.tasks, Path(folder, "nltk")),
    ):
        metadata: dict[str, Any] = {"tokenizer": folder}
        if arguments.lengths:
            metadata["max_seq_lengths"] = list(arguments.lengths)
        manager = _task_manager(arguments, metadata)
        model = _model(arguments)
        model.tokenizer.save_pretrained(folder)  # RULER measures its texts with this tokenizer
        found = simple_evaluate(
            model=model,
            tasks=list(arguments.tasks),
            num_fewshot=arguments.num_fewshot,
            limit=arguments.limit,
            apply_chat_template=arguments.apply_chat_template,
            task_manager=manager,
            metadata=metadata,
            log_samples=False,
        )
    assert found is not None  # only other processes get None
    rows = result_rows(found["results"]) + model.gold_rows()
    print(make_table(found))
    if model.gold_rows():
        print(gold_table(model.gold_rows()))
    if arguments.json:
        write_rows(arguments.json, "lm-eval", rows)
    return 0


def _task_manager(arguments: argparse.Namespace, metadata: dict[str, Any]) -> TaskManager:
    """The harness's tasks, or only RULER's and the user's if these include the requested ones.

    The harness has 13,000 task files, and reading them takes seconds.

    Raises:
        EdgeInfiniteError: the harness has no such task.
    """
    from lm_eval import tasks
    from lm_eval.tasks import TaskManager

    include = [] if arguments.include_path is None else [str(arguments.include_path)]
    ruler = str(Path(tasks.__file__).parent / "ruler")
    few = TaskManager(include_path=[ruler, *include], include_defaults=False, metadata=metadata)
    if set(arguments.tasks) <= set(few.all_tasks):
        return few
    manager = TaskManager(include_path=include, metadata=metadata)
    if unknown := [name for name in arguments.tasks if name not in manager.all_tasks]:
        raise EdgeInfiniteError(f"lm-evaluation-harness has no task {unknown[0]!r}")
    return manager


def result_rows(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The harness's metrics as flat rows: `task, metric, filter, value, stderr`."""
    rows = []
    for task, figures in results.items():
        for name, value in figures.items():
            metric, _, chosen = name.partition(",")
            if metric.endswith("_stderr") or not isinstance(value, int | float) or not chosen:
                continue
            if metric.isdigit() and value == -1:
                continue  # RULER's mark for a length that wasn't requested
            error = figures.get(f"{metric}_stderr,{chosen}")
            error = float(error) if isinstance(error, int | float) else None
            row = {"task": task, "metric": metric, "filter": chosen, "value": float(value)}
            rows.append(row | {"stderr": error})
    return rows


def gold_table(rows: Sequence[dict[str, Any]]) -> str:
    """Nats per token of the right answers, in Markdown.

    Args:
        rows: from `HarnessModel.gold_rows`.
    """
    from edgeinfinite.evaluation.report import markdown

    lines = []
    for row in rows:
        length, error = row["metric"].removesuffix("_nats"), row["stderr"]
        nats = f"{row['value']:.2f}" + ("" if error is None else f" ± {error:.2f}")
        lines.append([row["task"], f"{int(length):,}", nats])
    return markdown(["task", "tokens", "nats per token of the right answer"], lines)


def _model(arguments: argparse.Namespace) -> HarnessModel:
    from edgeinfinite.evaluation.harness import HarnessModel
    from edgeinfinite.evaluation.methods import check_methods
    from edgeinfinite.evaluation.questions.options import EMPTY
    from edgeinfinite.evaluation.questions.prompts import Prompt
    from edgeinfinite.evaluation.questions.systems import (
        NO_QUESTION_METHODS,
        artifact_system,
        model_system,
    )
    from edgeinfinite.evaluation.ruler import question_alone, right_answer
    from edgeinfinite.evaluation.sources import open_checkpoint

    folder = Path(arguments.model)
    if (folder / "manifest.json").is_file():
        own = sorted((OF_THE_MODEL | {"method"}) & set(vars(arguments)))
        if own:
            name = "--" + own[0].replace("_", "-")
            raise EdgeInfiniteError(f"an artifact has its own; leave {name} out")
        method, name = "artifact", folder.resolve().name
        system = artifact_system({method: folder}, arguments.threads)
    else:
        source = open_checkpoint(checkpoint_options(arguments), note)
        method, name = getattr(arguments, "method", "edgeinfinite"), source.backbone.name
        # Those that need to know where the question begins are refused.
        check_methods([method], source.setting, (EMPTY, *NO_QUESTION_METHODS))
        system = model_system(source.backbone, source.setting, [method])
    return HarnessModel(
        lambda tokens: system.open(method, Prompt([], 0), tokens),
        system.tokenizer,
        system.stop_ids,
        f"{name} {method}",
        right_answer if arguments.gold_loss else None,
        shorten=question_alone if method == EMPTY else None,
        compresses=method in NO_QUESTION_METHODS,
    )
