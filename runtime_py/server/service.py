"""One artifact at work: its engine, tokenizer, saved states and threads."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.sampling import SamplingOptions
from edgeinfinite.runtime_py.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.server.answers import Answers
from edgeinfinite.runtime_py.server.jobs import Jobs
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.replies import Reply
from edgeinfinite.runtime_py.server.state_files import StateFolder
from edgeinfinite.runtime_py.server.states import SavedStates
from edgeinfinite.runtime_py.server.turns import SharedEngine
from edgeinfinite.runtime_py.state import state_bytes
from edgeinfinite.runtime_py.tokenizer import load_tokenizer

_MB = 1_000_000
_HALF_FLOAT_BYTES = 2


class Service:
    """Everything behind the routes.

    Args:
        artifact: the folder that `edgeinfinite export` wrote.
        options: see there.
        threads: CPU threads of the engine; None lets it choose.

    Raises:
        EdgeInfiniteError: the artifact is damaged, its engine isn't installed, or another server
            uses the folder of saved states.
    """

    def __init__(
        self, artifact: Path, options: ServeOptions, *, threads: int | None = None
    ) -> None:
        manifest = read_manifest(artifact)  # `load_engine` checks the files
        engine = SharedEngine(load_engine(artifact, threads=threads))
        tokenizer = load_tokenizer(artifact, vocabulary=engine.vocabulary)
        folder = None
        if options.cache_dir is not None:
            folder = StateFolder(engine, options.cache_dir, options.cache_dir_mb * _MB)
        self.options = options
        self.model = artifact.resolve().name
        self.metrics = Metrics()
        self.states = SavedStates(engine, options.cache_mb * _MB, folder)
        self.jobs = Jobs(options.parallel, options.waiting)
        self.answers = Answers(tokenizer, self.states, self.metrics)
        self.sampling = SamplingOptions(**conversation_sampling(artifact))
        self._tokenizer = tokenizer
        self._created = int(time.time())
        self._fingerprint = hashlib.sha256(engine.fingerprint.encode()).hexdigest()[:16]
        backbone = manifest.backbone
        self._about = {
            "backbone": backbone.name,
            "chat": tokenizer.has_chat_template,
            "segment_length": manifest.geometry.segment_length,
            "state_bytes": state_bytes(manifest.state),
            # What full attention would need, in float16.
            "full_attention_bytes_per_token": (
                2 * _HALF_FLOAT_BYTES * backbone.layers * backbone.kv_heads * backbone.head_dim
            ),
        }
        self._watch()

    def about(self) -> dict[str, Any]:
        """The model as `/v1/models` shows it."""
        return {
            "id": self.model,
            "object": "model",
            "created": self._created,
            "owned_by": "edgeinfinite",
            "edgeinfinite": self._about,
        }

    def reply(self, *, chat: bool, logprobs: bool) -> Reply:
        """How an answer is written."""
        return Reply(self.model, self._fingerprint, chat, self._tokenizer if logprobs else None)

    def check_model(self, name: str | None) -> None:
        """Whether a request asks for the model that is here; without a name it does.

        Raises:
            ApiProblem: 404.
        """
        if name is not None and name != self.model:
            raise ApiProblem(
                404,
                f"there is no model {name[:80]!r} here; this server has {self.model!r}",
                param="model",
                code="model_not_found",
            )

    def close(self) -> None:
        """Ends all work; what was to be saved on disk is."""
        self.jobs.close()
        self.states.close()

    def _watch(self) -> None:
        watch, figures = self.metrics.watch, self.states.figures
        watch("running", "Requests at work.", lambda: self.jobs.running)
        watch("waiting", "Requests that wait.", lambda: self.jobs.waiting)
        watch("saved_states", "Saved states in memory.", lambda: figures()["states"])
        watch("saved_state_bytes", "Their bytes.", lambda: figures()["bytes"])
        watch("state_files", "Saved states on disk.", lambda: figures()["files"])
        watch("state_file_bytes", "Their bytes.", lambda: figures()["file_bytes"])
        watch("state_write_errors", "States not written.", lambda: self.states.write_errors)
