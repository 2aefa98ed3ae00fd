"""One measurement: the case that a worker process gets, and the row that it returns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Case:
    """One system at one context length.

    Args:
        system: `edgeinfinite-onnx`, `edgeinfinite-executorch`, `llama.cpp`, ...
        model: the artifact's folder, or what the peer loads.
        settings: a peer's settings, such as `q8_0 cache`; part of the row's name.
        prompt_tokens: length of the prompt.
        new_tokens: tokens decoded after the first one.
        threads: CPU threads.
        vocabulary: without `words`, the prompt's tokens are drawn from it.
        words: token ids of a text: the prompt is the text, again from its start where it ends.
        text: token ids to measure the loss on instead of the speed; empty for speed.
    """

    system: str
    model: str
    settings: str
    prompt_tokens: int
    new_tokens: int
    threads: int
    vocabulary: int
    text: tuple[int, ...] = ()
    words: tuple[int, ...] = ()


@dataclass(frozen=True)
class Row:
    """The row of `bench --json`; times in seconds, sizes in bytes, None where `error` says why.

    `state_bytes` is the KV cache (and memory) as allocated; `peak_rss_bytes` the largest resident
    memory of the process that ran the case, weights and runtime included. `nats_per_token` is the
    loss on a text so short that every system attends to all of it: it shows the weights' quality.
    The shares are of the machine's limits in the same run, see `machine.with_shares`.
    """

    system: str
    quantization: str
    policy: str
    settings: str
    prompt_tokens: int
    new_tokens: int
    threads: int
    load_s: float | None = None
    ttft_s: float | None = None
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    median_token_s: float | None = None
    slowest_token_s: float | None = None
    peak_rss_bytes: float | None = None
    state_bytes: float | None = None
    file_bytes: float | None = None
    nats_per_token: float | None = None
    bandwidth_share: float | None = None
    multiply_share: float | None = None
    repeats: int = 1
    error: str | None = None


_MEASURED = (
    "load_s",
    "ttft_s",
    "prefill_tokens_per_s",
    "decode_tokens_per_s",
    "median_token_s",
    "slowest_token_s",
    "peak_rss_bytes",
    "state_bytes",
    "file_bytes",
)


def median_row(rows: Sequence[Row]) -> Row:
    """Medians of the repeats of one case; one failed repeat makes the whole row a failure."""
    failed = [row for row in rows if row.error]
    if failed:
        return replace(failed[0], repeats=len(rows))
    medians = {
        name: statistics.median(values)
        for name in _MEASURED
        if (values := [v for row in rows if (v := getattr(row, name)) is not None])
    }
    return replace(rows[0], repeats=len(rows), **medians)


def row_from(answer: dict[str, object]) -> Row:
    """A worker's JSON as a row; unknown keys are refused by the constructor."""
    known = {field.name for field in fields(Row)}
    return Row(**{name: value for name, value in answer.items() if name in known})  # type: ignore[arg-type]
