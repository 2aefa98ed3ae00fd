"""Times, tokens and memory of one answer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs


@dataclass(frozen=True)
class GenerationStatistics:
    """One answer: the row of `generate --stats-json`. Times in seconds; None where not measured.

    Attributes:
        text: the answer, without special tokens.
        token_ids: its tokens, without the one that stopped it.
        prompt_tokens: tokens read for it (of an appended turn: the turn's own).
        new_tokens: the number of `token_ids`.
        ttft_s: time to first token: reading the prompt and sampling once.
        prefill_tokens_per_s: prompt tokens divided by the time to read them.
        decode_tokens_per_s: tokens after the first, the stop token included, divided by their time.
        median_token_s: median time of the steps after the first token.
        slowest_token_s: the longest of these steps; steps that compress are included.
        compressions: compressions of the session since its start.
        state_bytes: bytes of cache, memory and its norm, the same for any length of text.
        peak_rss_bytes: largest resident memory of the process so far; None on Windows.
        engine: name of the engine.
        artifact: the artifact's folder.
        finish: why it ended, see `Generation`; None if it didn't.
        logprobs: of every token of the answer; None if they weren't asked for.
    """

    text: str
    token_ids: list[int]
    prompt_tokens: int
    new_tokens: int
    ttft_s: float | None
    prefill_tokens_per_s: float | None
    decode_tokens_per_s: float | None
    median_token_s: float | None
    slowest_token_s: float | None
    compressions: int
    state_bytes: int
    peak_rss_bytes: int | None
    engine: str
    artifact: str
    finish: str | None = None
    logprobs: list[TokenLogprobs] | None = None

    def to_row(self) -> dict[str, Any]:
        """The fields by name, as JSON takes them."""
        return asdict(self)

    def table(self) -> str:
        """The statistics as text for people, one per line."""
        rows = [
            ("prompt", f"{self.prompt_tokens:,} tokens{_rate(self.prefill_tokens_per_s)}"),
            ("first token after", _seconds(self.ttft_s)),
            ("answer", f"{self.new_tokens:,} tokens{_rate(self.decode_tokens_per_s)}"),
            ("median token", _seconds(self.median_token_s)),
            ("slowest token", _seconds(self.slowest_token_s)),
            ("compressions", f"{self.compressions:,}"),
            ("state", _megabytes(self.state_bytes)),
            ("peak memory", _megabytes(self.peak_rss_bytes)),
            ("engine", self.engine),
        ]
        return "\n".join(f"{name:<18}{value}" for name, value in rows)


def step_figures(steps: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Steps per second, median and slowest of durations in seconds; None if there are none."""
    if not steps:
        return None, None, None
    return len(steps) / sum(steps), statistics.median(steps), max(steps)


def _rate(tokens_per_s: float | None) -> str:
    return "" if tokens_per_s is None else f", {tokens_per_s:,.1f} tokens/s"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def _megabytes(value: int | None) -> str:
    return "-" if value is None else f"{value / 1e6:,.1f} MB"
