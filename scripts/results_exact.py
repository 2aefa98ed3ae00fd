"""Tables of exact attention: its methods, and states of a fixed size beside it."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row, one, rows_of, share_of

_METHODS = (
    "standard",
    "last-token-head",
    "chunked-prefill",
    "mini-sequence",
    "offload",
    "mom-paper",
    "mom",
)
_STANDARD = {"method": "standard"}
_SIZE = "activation_bytes"
_4096, _OLD = "mom/smollm2-4096.json", "mom/smollm2.json"
_BUDGET, _GEMMA = "mom/budget-80mb.json", "mom/gemma-methods.json"


def _methods(file: str, **where: object) -> tuple[Line, ...]:
    there = {row["method"] for row in rows_of(file)}
    return tuple(
        Line((f"`{name}`",), file, {"method": name, **where}) for name in _METHODS if name in there
    )


def _memory(file: str, tokens: int) -> tuple[tuple[str, Cell], ...]:
    """Peak above the weights at a length of prompt, and by `standard`'s."""
    where: Row = {"prompt_tokens": tokens, "error": None}
    return (
        (f"{tokens:,} tokens", one(_SIZE, "{:,.0f} MB", 1e6, **where)),
        ("/ standard", share_of(file, _SIZE, _STANDARD, **where)),
    )


EXACT_4096 = Grid(
    ("method, 4,096 tokens",),
    (
        ("memory", one(_SIZE, "{:,.0f} MB", 1e6)),
        ("/ standard", share_of(_4096, _SIZE, _STANDARD)),
        ("on disk", one("disk_bytes", "{:,.0f} MB", 1e6)),
        ("CPU", one("prefill_cpu_s", "{:.1f} s")),
        ("first token", one("ttft_s", "{:.0f} s")),
        ("decode", one("decode_tokens_per_s", "{:.1f} t/s")),
        ("loss", one("nats_per_token", "{:.3f}")),
    ),
    _methods(_4096),
)
EXACT_OLD = Grid(
    ("method, glibc's default",),
    (
        *_memory(_OLD, 2048),
        *_memory(_OLD, 8192),
        ("CPU at 8,192", one("prefill_cpu_s", "{:.1f} s", prompt_tokens=8192)),
    ),
    _methods(_OLD),
)
_LENGTH = "prompt_tokens"


def _longest(rows: list[Row]) -> str:
    (row,) = (row for row in rows if "budget_bytes" in row)
    return f"{row[_LENGTH]:,}" if row[_LENGTH] else "less than 128"


EXACT_BUDGET = Grid(
    ("method",),
    (
        ("longest context", _longest),
        ("/ standard", share_of(_BUDGET, _LENGTH, _STANDARD, "{:.1f}", budget_bytes=80e6)),
        (
            "/ chunked prefill",
            share_of(_BUDGET, _LENGTH, {"method": "chunked-prefill"}, budget_bytes=80e6),
        ),
    ),
    _methods(_BUDGET, budget_bytes=80e6),
)
EXACT_GEMMA = Grid(
    ("method",),
    (
        *_memory(_GEMMA, 2048),
        ("CPU", one("prefill_cpu_s", "{:.1f} s", prompt_tokens=2048)),
        *_memory(_GEMMA, 8192),
        ("on disk", one("disk_bytes", "{:,.0f} MB", 1e6, prompt_tokens=8192)),
        ("CPU", one("prefill_cpu_s", "{:.1f} s", prompt_tokens=8192)),
        ("longest context in 100 MB", _longest),
    ),
    _methods(_GEMMA),
)

_FILE = "mom/exact-and-fixed.json"
_SYSTEMS = {
    "fixed": "fixed state, recall slots, int4",
    "streaming": "StreamingLLM, as many slots, int4",
    "mom": "exact: --engine mom, float32",
    "llama.cpp": "llama.cpp, q8_0 cache, Q4_1",
    "part": "exact beyond 8k, prefill from 3 of 30 layers",
}
_LENGTHS = (2048, 4096, 8192, 16384, 32768, 65536, 131072)


def _prefill(rows: list[Row]) -> str:
    """Processor time of the prefill; of a part, two layers of which attend in full, times 29/2."""
    (row,) = rows
    scale = 29 / 2 if row["system"] == "part" else 1
    return f"{row['prefill_cpu_s'] * scale:,.1f}"


def _told(rows: list[Row]) -> str:
    (row,) = rows
    return f"{row['exact']} of {row['facts']}" if "facts" in row else "–"


def _lines() -> tuple[Line, ...]:
    within, beyond = ("fixed", "streaming", "mom", "llama.cpp"), ("fixed", "streaming", "part")
    return tuple(
        Line((f"{tokens:,}", _SYSTEMS[system]), _FILE, {"system": system, "prompt_tokens": tokens})
        for tokens in _LENGTHS
        for system in (within if tokens <= 8192 else beyond)
    )


EXACT_AND_FIXED = Grid(
    ("prompt", "system"),
    (
        ("peak MB", one("peak_rss_bytes", "{:,.0f}", 1e6)),
        ("cache or state MB", one("state_bytes", "{:,.1f}", 1e6)),
        ("prefill CPU s", _prefill),
        ("decode CPU ms a token", one("decode_cpu_ms", "{:,.0f}")),
        ("loss", one("nats_per_token", "{:.3f}")),
        ("facts told", _told),
        ("nats", one("nats_per_answer_token", "{:.2f}")),
    ),
    _lines(),
)
