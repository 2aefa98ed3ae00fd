"""Reads texts with an exported artifact and measures its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from edgeinfinite.artifact.manifest import Manifest
from edgeinfinite.evaluation.methods import saved
from edgeinfinite.evaluation.reader import Footprint, Prediction
from edgeinfinite.runtime_py.engines import Engine
from edgeinfinite.runtime_py.session.session import Session

ARTIFACT_METHOD = "artifact"
"""The method's name in rows and tables."""


class ArtifactReader:
    """Like `methods.Reader`, with an artifact's graphs, which return only the last token's logits.

    Args:
        engine: the artifact's.
    """

    def __init__(self, engine: Engine) -> None:
        self._session = Session(engine)
        self._last = np.empty(0, np.float32)

    @property
    def session(self) -> Session:
        """What reads."""
        return self._session

    @property
    def state_bytes(self) -> int:
        """Bytes of the state."""
        return self._session.state_bytes

    @property
    def footprint(self) -> Footprint:
        """See `Footprint`: constant over time."""
        return Footprint(self.state_bytes, self.state_bytes, self.state_bytes)

    @property
    def logits(self) -> np.ndarray:
        """`[V]` float32 after the last token read."""
        return self._last

    def skip(self, tokens: Sequence[int], progress: Callable[[int], None] | None = None) -> None:
        """Reads on without measuring."""
        self._last = self._session.append(tokens, progress=progress)

    def read(
        self, tokens: Sequence[int], progress: Callable[[int], None] = lambda _: None
    ) -> Prediction:
        """Reads on token by token; needs at least one token read before."""
        nats, best = [], []
        for token in tokens:
            logits = self._last.astype(np.float64)
            highest = logits.max()
            nats.append(highest + np.log(np.exp(logits - highest).sum()) - logits[token])
            best.append(logits.argmax() == token)
            self._last = self._session.append([token])
            progress(1)
        return Prediction(np.array(nats), np.array(best, bool))

    def end_prompt(self) -> None:
        """Nothing waits for the end of a prompt."""

    def save(self) -> Callable[[], None]:
        """Saves the state; the returned function restores it, any number of times."""
        restore_session, last = saved(self._session), self._last

        def restore() -> None:
            restore_session()
            self._last = last

        return restore


def tokenizer_of(folder: Path) -> PreTrainedTokenizerFast:
    """The artifact's own tokenizer with its chat template, as a transformers tokenizer."""
    return PreTrainedTokenizerFast.from_pretrained(folder)


def trained_parts(folder: Path, manifest: Manifest) -> list[str | None]:
    """Files whose cards name the training documents.

    Args:
        folder: the artifact.
        manifest: the artifact's.
    """
    return [str(folder / name) for name in manifest.files if name.endswith(".safetensors")]
