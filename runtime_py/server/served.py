"""What a server serves: an artifact, or (`cli/mom.py`) a checkpoint, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.shared_engine import SharedEngine
from edgeinfinite.runtime_py.server.state_files import StateFolder
from edgeinfinite.runtime_py.server.states import SavedStates
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.session.state import state_bytes
from edgeinfinite.runtime_py.session.token_array import TokenIds
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer

_MB = 1_000_000
_HALF_FLOAT_BYTES = 2


class States(Protocol):
    """`states.SavedStates` and `exact_states.ExactStates`: sessions that go on with a text."""

    engine: Any
    write_errors: int

    def continued(self, tokens: TokenIds) -> Session:
        """A session that has read a beginning of the text, with at least one token to read."""
        ...

    def keep(self, tokens: TokenIds, session: Session, *, on_disk: bool) -> None:
        """Keeps what the session has read, all of it in `tokens`."""
        ...

    def done(self, session: Session) -> None:
        """The request that had the session has ended."""
        ...

    def figures(self) -> dict[str, int]:
        """For `/metrics`."""
        ...

    def close(self) -> None:
        """At the server's end."""
        ...


@dataclass(frozen=True)
class Served:
    """A model at work.

    Args:
        model: its name for clients.
        fingerprint: of its weights and geometry.
        tokenizer: its own.
        states: know its engine.
        sampling: of a request that doesn't say how.
        about: what `/v1/models` says of it.
        responses: the folder of stored responses; None keeps them in memory.
    """

    model: str
    fingerprint: str
    tokenizer: TextTokenizer
    states: States
    sampling: SamplingOptions
    about: dict[str, Any]
    responses: Path | None = None


def served_artifact(artifact: Path, options: ServeOptions, *, threads: int | None = None) -> Served:
    """Opens an artifact.

    Args:
        artifact: the folder that `edgeinfinite export` wrote.
        options: how much to save, and where.
        threads: CPU threads of the engine; None lets it choose.

    Raises:
        EdgeInfiniteError: the artifact is damaged, its engine isn't installed, or another server
            uses the folder of saved states.
    """
    manifest = load_manifest(artifact)
    # First, while there is room for what its JSON takes.
    tokenizer = load_tokenizer(artifact, vocabulary=manifest.backbone.vocabulary)
    engine = SharedEngine(load_engine(artifact, manifest=manifest, threads=threads))
    folder = None
    if options.cache_dir is not None:
        folder = StateFolder(engine, options.cache_dir, options.cache_dir_mb * _MB)
    backbone = manifest.backbone
    return Served(
        model=artifact.resolve().name,
        fingerprint=engine.fingerprint,
        tokenizer=tokenizer,
        states=SavedStates(engine, options.cache_mb * _MB, folder),
        sampling=SamplingOptions(**conversation_sampling(artifact)),
        about={
            "backbone": backbone.name,
            "chat": tokenizer.has_chat_template,
            "segment_length": manifest.geometry.segment_length,
            "state_bytes": state_bytes(manifest.state),
            # What full attention would need, in float16.
            "full_attention_bytes_per_token": sum(
                2 * _HALF_FLOAT_BYTES * math.prod(backbone.heads_of(layer))
                for layer in range(backbone.layers)
            ),
        },
        responses=None if folder is None else folder.path / "responses",
    )
