"""Questions of others to a checkpoint's methods, or to artifacts: from their sources to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import fingerprint, read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD, trained_parts
from edgeinfinite.evaluation.processes import this_share
from edgeinfinite.evaluation.questions.measure import Case, measure_questions, planned
from edgeinfinite.evaluation.questions.options import QuestionOptions
from edgeinfinite.evaluation.questions.systems import System, artifact_system, model_system
from edgeinfinite.evaluation.results import Results, Shown, unseen
from edgeinfinite.evaluation.sources import Checkpoint


@dataclass(frozen=True)
class Subject:
    """What is asked: a checkpoint's methods, or artifacts.

    Args:
        system: has the methods.
        depends_on: what its rows depend on, apart from the questions.
        trained: files of trained parts, which name their training texts.
    """

    system: System
    depends_on: Mapping[str, Any] = field(default_factory=dict)
    trained: Sequence[str | None] = ()

    def of_texts(self, **found: Any) -> Subject:
        """The same, with more that the rows depend on."""
        return replace(self, depends_on={**self.depends_on, **found})


def checkpoint_subject(source: Checkpoint, methods: Sequence[str]) -> Subject:
    """The methods of a checkpoint.

    Args:
        source: loaded.
        methods: some of `METHODS` and `QUESTION_METHODS`.

    Raises:
        EdgeInfiniteError: a method is unknown, or lacks what it needs.
    """
    system = model_system(source.backbone, source.setting, methods)
    return Subject(system, source.depends_on, source.trained)


def artifacts_subject(folders: Mapping[str, Path], threads: int | None = None) -> Subject:
    """Exported artifacts of one backbone; see `artifact_system`.

    Raises:
        EdgeInfiniteError: an artifact is damaged, or the backbones differ.
    """
    system = artifact_system(folders, threads)
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    trained = [
        part for name, found in manifests.items() for part in trained_parts(folders[name], found)
    ]
    depends_on = {
        name: {"artifact": fingerprint(found), "geometry": found.geometry.to_dict()}
        for name, found in manifests.items()
    }
    return Subject(system, {"artifacts": depends_on}, trained)


def named_folders(given: Sequence[str]) -> dict[str, Path]:
    """Artifacts by the name of their method, from `NAME=DIR` or `DIR`.

    Raises:
        EdgeInfiniteError: two artifacts have the same name.
    """
    folders: dict[str, Path] = {}
    for text in given:
        name, found, folder = text.partition("=")
        if not found or Path(text).is_dir():
            folder = text
            name = ARTIFACT_METHOD if len(given) == 1 else Path(text).resolve().name
        if name in folders:
            raise EdgeInfiniteError(f"two artifacts are called {name}; give --artifact NAME=DIR")
        folders[name] = Path(folder)
    return folders


def asked(
    task: str,
    subject: Subject,
    cases: Sequence[Case],
    options: QuestionOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results | None:
    """Measures this process's share of the questions.

    Args:
        task: `longbench` or `babilong`.
        subject: what is asked.
        cases: the questions.
        options: how they are read.
        rows: file to write them to and to resume from; several processes need one.
        shown: see `Shown`.

    Returns:
        The rows of all processes, in the first of them; None in the others.
    """
    system, measures = subject.system, sorted(options.measures)
    depends_on = {**subject.depends_on, "measures": measures, "cut_length": options.cut_length}
    if options.cut_methods:  # so that older files resume
        depends_on["cut_methods"] = dict(options.cut_methods)
    share = this_share()
    results = Results(rows, f"evaluate {task}", depends_on, share)
    readings = planned(cases, system, options)
    own = share.of(readings)
    tokens = sum(reading.tokens for reading in own)
    with (shown if share.index == 0 else unseen)(tokens) as progress:
        measure_questions(own, system, measures, results, progress)
    share.wait()
    if share.index:
        return None
    places = {reading.key: place for place, reading in enumerate(readings)}
    fields = ("method", *cases[0].key)
    results.merge(lambda row: places.get(tuple(row[name] for name in fields), len(places)))
    return results
