"""Tables of exact attention beside states of a fixed size, and of ways to round weights."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row, one

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

_METHODS = {
    "awq-gptq": "**ours, AWQ, then GPTQ on our grids: what `--calibrate` does**",
    "gptq": "ours, GPTQ on our grids",
    "awq": "ours, AWQ, to the nearest",
    "nearest": "ours, to the nearest",
    "llmcompressor-gptq": "llm-compressor 0.14.0.1, `GPTQModifier`, layer by layer",
    "autoround": "AutoRound 0.16.1, 20 steps a layer",
    "ort-hqq": "onnxruntime 1.31.1, HQQ",
    "ort-nearest": "onnxruntime, RTN, `DefaultWeightOnlyQuantConfig`",
    "ort-gptq": "onnxruntime, GPTQ, with our statistics",
    "ort-k-quant": "onnxruntime, k-quant",
    "torchao": "torchao 0.18, affine",
    "torchao-hqq": "torchao, HQQ, symmetric",
}
_READS = ("llmcompressor-gptq", "autoround")


def _loss(rows: list[Row]) -> str:
    (row,) = rows
    return f"{row['nats']:.4f} ± {row['interval']:.4f}"


def _seconds(rows: list[Row]) -> str:
    (row,) = rows
    return f"{row['rounding_s']:.1f}" + (", reading included" if row["method"] in _READS else "")


def _quantizers(label: str, file: str) -> Grid:
    columns: tuple[tuple[str, Cell], ...] = (
        ("nats above the checkpoint", _loss),
        ("seconds of rounding", _seconds),
    )
    lines = tuple(Line((text,), file, {"method": method}) for method, text in _METHODS.items())
    return Grid((label,), columns, lines)


QUANTIZERS = _quantizers("shuffled SmolLM2", "quantization/quantizers-permuted.jsonl")
QUANTIZERS_GEMMA = _quantizers("Gemma 3 270M", "quantization/quantizers-gemma.jsonl")
