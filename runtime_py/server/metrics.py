"""What `/metrics` shows, in Prometheus's text format."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counters of one server; for any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.requests = self._counter("requests", "Requests answered.", ("route", "status"))
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts.")
        self.cached_tokens = self._counter(
            "cached_tokens", "Tokens of prompts that a saved state had read already."
        )
        self.answer_tokens = self._counter("answer_tokens", "Tokens of answers.")
        self.cancelled = self._counter("cancelled", "Requests whose client went away.")
        self.first_token = Histogram(
            "edgeinfinite_first_token_seconds",
            "Time from a request to its first token, waiting included.",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Adds a gauge whose value is asked for when it is shown."""
        Gauge(f"edgeinfinite_{name}", about, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _counter(self, name: str, about: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(f"edgeinfinite_{name}", about, labels, registry=self._registry)
