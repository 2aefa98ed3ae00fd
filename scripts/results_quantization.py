"""Tables of ways to round weights."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, Row

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
