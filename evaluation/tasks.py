"""`passkey` and `perplexity`, whole: from a source and texts to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD, ArtifactReader
from edgeinfinite.evaluation.documents import unseen_documents
from edgeinfinite.evaluation.methods import GATE_CONTROLS, check_methods
from edgeinfinite.evaluation.options import PasskeyOptions, PerplexityOptions
from edgeinfinite.evaluation.passkey import measure_passkey, planned, tokens_to_read
from edgeinfinite.evaluation.perplexity import (
    measure_artifact,
    measure_perplexity,
    planned_tokens,
)
from edgeinfinite.evaluation.questions.options import EMPTY
from edgeinfinite.evaluation.questions.prompts import Prompt
from edgeinfinite.evaluation.questions.systems import NO_QUESTION_METHODS, model_system
from edgeinfinite.evaluation.results import Results, Shown, unseen
from edgeinfinite.evaluation.sources import Artifact, Source, named_part


def run_passkey(
    source: Source,
    data: Sequence[Path],
    options: PasskeyOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results:
    """Plants facts in long texts and asks for them.

    Args:
        source: of an artifact, `methods` don't count.
        data: texts, or folders of them; those that training has seen are left out.
        options: what to measure.
        rows: file to write them to and to resume from; None keeps them in memory.
        shown: see `Shown`.

    Raises:
        EdgeInfiniteError: a method is unknown or lacks what it needs, a text is too short, or the
            file holds other rows.
    """
    if isinstance(source, Artifact):
        documents, results = _prepared("passkey", source, data, options, rows)
        readings = planned(options, [ARTIFACT_METHOD])
        with shown(sum(length for length, _, _ in readings)) as progress:
            measure_passkey(
                readings,
                lambda method, length: ArtifactReader(source.engine),
                source.tokenizer,
                documents,
                options,
                results,
                progress,
            )
        return results
    check_methods(options.methods, source.setting, (EMPTY, *NO_QUESTION_METHODS))
    documents, results = _prepared("passkey", source, data, options, rows)
    system = model_system(source.backbone, source.setting, options.methods)
    readings = planned(
        options,
        options.methods,
        lambda m, n: tokens_to_read((n, 0, m)) <= (system.longest(m) or n),
    )
    with shown(sum(map(tokens_to_read, readings))) as progress:
        measure_passkey(
            readings,
            lambda method, length: system.open(method, Prompt([], 0), length),
            source.tokenizer,
            documents,
            options,
            results,
            progress,
        )
    return results


def run_perplexity(
    source: Source,
    data: Sequence[Path],
    options: PerplexityOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results:
    """Measures the loss of every token of long texts, by position.

    Args:
        source, data, options, rows, shown: as for `run_passkey`.

    Raises:
        EdgeInfiniteError: as `run_passkey`.
    """
    if isinstance(source, Artifact):
        documents, results = _prepared("perplexity", source, data, options, rows)
        count = min(len(documents), options.documents or len(documents))
        with shown(count * options.tokens) as progress:
            measure_artifact(source.engine, source.tokenizer, documents, options, results, progress)
        return results
    check_methods(options.methods, source.setting, GATE_CONTROLS)
    documents, results = _prepared("perplexity", source, data, options, rows)
    model = source.backbone.model
    with shown(planned_tokens(len(documents), options, model)) as progress:
        measure_perplexity(
            model, source.tokenizer, documents, source.setting, options, results, progress
        )
    return results


def _prepared(
    task: str,
    source: Source,
    data: Sequence[Path],
    options: PasskeyOptions | PerplexityOptions,
    rows: Path | None,
) -> tuple[list[Path], Results]:
    """The documents that no trained part has seen, and the rows so far."""
    documents = unseen_documents(data, source.trained)
    depends_on = source.depends_on | _of_the_texts(options, documents)
    return documents, Results(rows, f"evaluate {task}", depends_on)


def _of_the_texts(
    options: PasskeyOptions | PerplexityOptions, documents: Sequence[Path]
) -> dict[str, Any]:
    """What rows depend on beside the model; a later run may ask for more lengths or samples."""
    asked = asdict(options) | {"documents": [path.name for path in documents]}
    # Older files without these options can be resumed.
    for name in ("questions", "in_turn", "turns"):
        if not asked.get(name):
            asked.pop(name, None)
    if "questions" in asked:
        asked["questions"] = named_part(asked["questions"])
    return {n: v for n, v in asked.items() if n not in ("methods", "lengths", "samples")}
