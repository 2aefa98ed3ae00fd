"""One measurement: the case that a worker process gets, and the row that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError

METHODS = {
    "standard": "transformers as it is: logits of all tokens, cache in memory",
    "last-token-head": "transformers with logits_to_keep=1",
    "chunked-prefill": "transformers, the prompt in chunks, logits_to_keep=1",
    "mini-sequence": "MLPs in chunks, the last layer's MLP and the LM head for the last token",
    "offload": "transformers with logits_to_keep=1, keys and values on disk",
    "mom-paper": "mini-sequence and offload, the paper's combination",
    "mom": "whole layers in chunks, keys and values on disk: `--engine mom`",
}
DEFAULT_METHODS = tuple(METHODS)


@dataclass(frozen=True)
class MemoryOptions:
    """What to measure.

    Args:
        model: the checkpoint, as `load_backbone` takes it.
        methods: of `METHODS`.
        lengths: prompt lengths in tokens.
        new_tokens: tokens decoded after each prompt; with a text, its own next tokens.
        threads: CPU threads.
        repeats: repeats of every case, the methods taking turns; figures are medians.
        time_limit: the most seconds that one repeat may take.
        text: UTF-8 file to read in place of random tokens, which also gives the loss.
        chunk: tokens of a chunk, for all methods that have chunks.
        dtype: float32 or bfloat16.
        budget_mb: also find the longest context whose activations and cache fit so many MB.
        offload_folder: for the caches on disk.
        peer_cache: folder for the converted checkpoint of a .gguf file.
    """

    model: str
    methods: Sequence[str] = DEFAULT_METHODS
    lengths: Sequence[int] = (2048, 8192)
    new_tokens: int = 32
    threads: int = 2
    repeats: int = 3
    time_limit: float = 600.0
    text: Path | None = None
    chunk: int = 512
    dtype: str = "float32"
    budget_mb: float | None = None
    offload_folder: Path | None = None
    peer_cache: Path = field(default=Path("~/.cache/edgeinfinite").expanduser())

    def __post_init__(self) -> None:
        if not self.methods:
            raise EdgeInfiniteError(f"no method given; choose among {', '.join(METHODS)}")
        for method in self.methods:
            if method not in METHODS:
                raise EdgeInfiniteError(f"unknown method {method!r}; choose among " + _names())
        for name in ("new_tokens", "threads", "repeats", "time_limit", "chunk"):
            if getattr(self, name) <= 0:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be greater than 0")
        if self.budget_mb is not None and self.budget_mb <= 0:
            raise EdgeInfiniteError("budget mb must be greater than 0")


def _names() -> str:
    return ", ".join(METHODS)


@dataclass(frozen=True)
class MemoryCase:
    """One method at one length.

    Args:
        method: of `METHODS`.
        model: folder of the checkpoint.
        prompt_tokens: tokens that are read before the first one is chosen.
        new_tokens: tokens decoded after it.
        threads, chunk, dtype, offload_folder: see `MemoryOptions`.
        tokens: `.npy` file of the text's ids, int64, at least `prompt_tokens + new_tokens`; empty
            for random tokens.
        logits: `.npy` file to write the prompt's last logits to; empty for none.
    """

    method: str
    model: str
    prompt_tokens: int
    new_tokens: int
    threads: int
    chunk: int
    dtype: str
    offload_folder: str = ""
    tokens: str = ""
    logits: str = ""


@dataclass(frozen=True)
class MemoryRow:
    """The row of `bench --methods --json`; times in seconds, sizes in bytes.

    `weights_bytes` is the process's resident memory after loading, the Python packages included.
    `peak_bytes` is the largest resident memory of prefill and decode, `activation_bytes` what it
    is above `weights_bytes`: activations, and the cache as far as it is in memory.
    `prefill_bytes` is the same of the prefill alone. `disk_bytes` are keys and values in files.
    Pages of those files in the system's cache, which it drops where memory is short, aren't
    counted. `prefill_cpu_s` is the processor time of the prefill, in all threads and the system: on
    a busy machine it says more than `ttft_s`. `nats_per_token` is the loss of the tokens after the
    prompt. `logit_difference` is the largest difference of the prompt's logits from those of the
    first method at that length.
    """

    method: str
    prompt_tokens: int
    new_tokens: int
    threads: int
    chunk: int
    dtype: str
    weights_bytes: float | None = None
    peak_bytes: float | None = None
    activation_bytes: float | None = None
    prefill_bytes: float | None = None
    disk_bytes: float | None = None
    ttft_s: float | None = None
    prefill_cpu_s: float | None = None
    decode_tokens_per_s: float | None = None
    nats_per_token: float | None = None
    logit_difference: float | None = None
    repeats: int = 1
    error: str | None = None


@dataclass(frozen=True)
class BudgetRow:
    """The longest context of a method in a budget.

    Args:
        method: of `METHODS`.
        budget_bytes: for activations and the cache, without the weights.
        prompt_tokens: the longest prompt that was measured to fit; 0 if none did.
        activation_bytes: what it took.
        limited_by: `memory`, or `time` if a longer prompt took more than the time limit.
    """

    method: str
    budget_bytes: float
    prompt_tokens: int
    activation_bytes: float | None
    limited_by: str
