"""`evaluate conversation`, whole: from a source and texts to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.measure import measure_conversation, planned
from edgeinfinite.evaluation.conversation.options import ConversationOptions
from edgeinfinite.evaluation.conversation.systems import of_artifacts, of_model
from edgeinfinite.evaluation.documents import unseen_documents
from edgeinfinite.evaluation.results import Results, Shown, unseen
from edgeinfinite.evaluation.sources import Artifact, Source

_MAY_CHANGE = ("methods", "lengths", "samples")
"""Options that a later run may give otherwise."""


def run_conversation(
    source: Source,
    cache: Artifact | None,
    data: Sequence[Path],
    options: ConversationOptions,
    rows: Path | None = None,
    shown: Shown = unseen,
) -> Results:
    """Tells facts in chats with tools and asks for them at the end.

    Args:
        source: with the state.
        cache: beside an artifact, another of the same checkpoint and bytes, without recall slots.
        data: texts, or folders of them, to make tool outputs of; those that training has seen are
            left out.
        options: what to measure.
        rows: file to write them to and to resume from; None keeps them in memory.
        shown: see `Shown`.

    Raises:
        EdgeInfiniteError: the artifacts are no such pair, a chat or a window is too short, or the
            file holds other rows.
    """
    depends_on = source.depends_on
    if isinstance(source, Artifact):
        if cache is None:
            raise EdgeInfiniteError(
                "--artifact needs --streaming: the same checkpoint, exported with --recall-slots 0 "
                "and as many bytes"
            )
        system = of_artifacts(source, cache)
        depends_on |= {"streaming": cache.engine.fingerprint}
    else:
        system = of_model(source.backbone, source.setting)
    documents = unseen_documents(data, source.trained)
    depends_on |= {"window": system.window, "documents": [path.name for path in documents]}
    depends_on |= {n: v for n, v in asdict(options).items() if n not in _MAY_CHANGE}
    results = Results(rows, "evaluate conversation", depends_on)
    with shown(sum(length for length, _, _ in planned(options))) as progress:
        measure_conversation(system, documents, options, results, progress)
    return results
