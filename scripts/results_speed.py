"""Tables of `bench`: time, memory and size of systems."""

from __future__ import annotations

from results_tables import Grid, Line, one

_PEERS, _SIZES = "peers-8000.json", "sizes-8000.json"


def _ours(label: str, settings: str, default: bool = False) -> Line:
    return Line((label,), _SIZES, {"settings": settings}, default)


def _peer(label: str, settings: str) -> Line:
    return Line((label,), _PEERS, {"settings": settings})


_LLAMA = "flash attention, swa_full off, {} cache"
SPEED = Grid(
    ("system",),
    (
        ("first token", one("ttft_s", "{:.1f} s")),
        ("decode, tokens/s", one("decode_tokens_per_s", "{:.0f}")),
        ("peak memory", one("peak_rss_bytes", "{:,.0f} MB", 1e6)),
        ("state", one("state_bytes", "{:.1f} MB", 1e6)),
        ("loss, nats", one("nats_per_token", "{:.3f}")),
    ),
    (
        _ours("**EdgeInfinite int4**", "carry-26.7-int8", default=True),
        _ours("`--recall-slots trained:512`", "carry-512-int8"),
        _ours("EdgeInfinite, ExecuTorch", "executorch"),
        _ours("transformers float32", "sdpa, float32"),
        _peer("llama.cpp Q4_1", _LLAMA.format("f16")),
        _peer("llama.cpp Q4_1, q8_0 cache", _LLAMA.format("q8_0")),
        _peer("onnxruntime-genai int8", "int8"),
    ),
)


def _gemma(tokens: int, file: str) -> tuple[Line, ...]:
    systems = {
        "**8.3 MB, the default**": "gemma-default",
        "12.8 MB": "gemma-13",
        "26.7 MB": "gemma-26.7",
        "llama.cpp": _LLAMA.format("f16"),
        "llama.cpp, q8_0 cache": _LLAMA.format("q8_0"),
    }
    return tuple(
        Line((f"{tokens:,}", label), file, {"settings": settings, "prompt_tokens": tokens})
        for label, settings in systems.items()
    )


GEMMA = Grid(
    ("tokens of a book", "system"),
    (
        ("first token, s", one("ttft_s", "{:.2f}")),
        ("decode, tokens/s", one("decode_tokens_per_s", "{:.0f}")),
        ("peak of the process, MB", one("peak_rss_bytes", "{:,.0f}", 1e6)),
        ("state or cache, MB", one("state_bytes", "{:.1f}", 1e6)),
    ),
    tuple(
        line
        for tokens, file in (
            (512, "gemma-to-7500.json"),
            (2048, "gemma-to-7500.json"),
            (7500, "gemma-to-7500.json"),
            (16000, "gemma-30000.json"),
            (30000, "gemma-30000.json"),
        )
        for line in _gemma(tokens, file)
    ),
)

EXECUTORCH = Grid(
    ("", "prompt"),
    (
        ("prefill, tokens/s", one("prefill_tokens_per_s", "{:,.0f}")),
        ("decode, tokens/s", one("decode_tokens_per_s", "{:.1f}")),
        ("median token, ms", one("median_token_s", "{:.1f}", 1e-3)),
        ("peak MB", one("peak_rss_bytes", "{:,.0f}", 1e6)),
        ("file MB", one("file_bytes", "{:.1f}", 1e6)),
    ),
    tuple(
        Line((label, f"{n:,}"), "executorch.json", {"settings": settings, "prompt_tokens": n})
        for n in (512, 2048)
        for label, settings in (
            ("ExecuTorch", "paper-executorch"),
            ("ONNX, float16 cache", "paper-float16"),
            ("ONNX, float32 cache", "paper-float32"),
        )
    ),
)


def _int8(tokens: int) -> tuple[Line, ...]:
    systems = {
        "float16, 512 slots": "carry-512-slots",
        "int8, 512 slots": "carry-512-slots-int8",
        "**int8, 1,536 slots, the default**": "carry-26.7-int8",
    }
    return tuple(
        Line(
            (f"{tokens:,}", label),
            "int8.json",
            {"settings": settings, "prompt_tokens": tokens},
            default=settings == "carry-26.7-int8",
        )
        for label, settings in systems.items()
    )


INT8 = Grid(
    ("prompt", "cache"),
    SPEED.columns,
    tuple(line for tokens in (512, 2048, 8000) for line in _int8(tokens)),
)
