"""One model at work: its engine, tokenizer, saved states and threads."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from edgeinfinite.runtime_py.server.answers import Answers
from edgeinfinite.runtime_py.server.jobs import Jobs
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.openai_responses.stored import ResponseStore
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.patience import LARGEST_DOCUMENT
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import default_settings
from edgeinfinite.runtime_py.server.served import Served

_MB = 1_000_000


class Service:
    """Everything behind the routes.

    Args:
        served: what answers.
        options: see there.
    """

    def __init__(self, served: Served, options: ServeOptions) -> None:
        self.options = options
        self.model = served.model
        self.metrics = Metrics()
        self.states = served.states
        self.jobs = Jobs(options.parallel, options.waiting)
        self.answers = Answers(served.tokenizer, self.states, self.metrics)
        self.sampling = served.sampling
        self._created = int(time.time())
        self.fingerprint = hashlib.sha256(served.fingerprint.encode()).hexdigest()[:16]
        self._about = served.about
        self.responses = ResponseStore(
            self.fingerprint,
            options.api_key,
            options.responses_mb * _MB,
            options.responses_days,
            served.responses,
        )
        self._watch()

    def about(self) -> dict[str, Any]:
        """The model as `/v1/models` shows it."""
        return {
            "id": self.model,
            "object": "model",
            "created": self._created,
            "owned_by": "edgeinfinite",
            "edgeinfinite": self._about
            | {
                "defaults": default_settings(self.sampling),
                "largest_document": LARGEST_DOCUMENT,
            },
        }

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
        kept = self.responses.figures
        watch("stored_responses", "Stored responses.", lambda: kept()["responses"])
        watch("stored_response_bytes", "Their bytes.", lambda: kept()["bytes"])
        watch("state_write_errors", "States not written.", lambda: self.states.write_errors)
