"""Tables of rounded weights: what artifacts lose, and what ways to round lose."""

from __future__ import annotations

import math

from paired import differences, interval
from results_tables import Cell, Grid, Line, Row, rows_of


def _losses(reference: str, lines: dict[str, tuple[str, ...]], *heads: str) -> Grid:
    """What artifacts lose, paired over the same texts, ± 95 %.

    Args:
        reference: a file of the checkpoint's rows in float32.
        lines: by file of rows, the artifact, and what the columns `heads` say of it.
    """
    float32 = f"quantization/{reference}-float32.json"

    def above(rows: list[Row]) -> str:
        values = differences(rows_of(float32) + rows, "artifact", "full", 0, math.inf)
        mean, half = interval(values)
        return f"{mean:.4f} ± {half:.4f}"

    return Grid(
        ("artifact", *heads),
        (("nats above the checkpoint, ± 95 %", above),),
        tuple(Line(labels, f"quantization/{name}.json", {}) for name, labels in lines.items()),
        beside=(float32,),
    )


LOSS_GEMMA = _losses(
    "gemma",
    {
        "gemma-int4": ("Gemma 3 270M, `--quantize int4`", "263.3"),
        "gemma-230mb": ("a mix, `--max-mb 230`, calibrated by default", "229.7"),
        "gemma-int4-executorch": ("`--backend executorch --quantize int4`", "281.2"),
    },
    "MB",
)
LOSS_SHUFFLED = _losses(
    "permuted",
    {
        "permuted-plain": ("shuffled SmolLM2, `--quantize int4`, the rule without a text", "102.7"),
        "permuted-90mb": ("a mix, `--max-mb 90`", "89.6"),
        "permuted-110mb": ("a mix, `--max-mb 110`", "109.4"),
        "permuted-110mb-same-formats": (
            "the same with XNNPACK's weight formats alone (`experiments/same_formats.py`)",
            "109.2",
        ),
        "permuted-110mb-read-200": ("a mix with `--max-read-mb 200` \\*", "109.7"),
        "permuted-110mb-executorch": ("a mix, `--backend executorch --max-mb 110`", "109.8"),
        "permuted-130mb-executorch": ("`--max-mb 130 --max-read-mb 200` \\*", "129.5"),
        "permuted-int8-executorch": ("`--backend executorch --quantize int8`", "143.5"),
        "permuted-int8-executorch-before": (
            "the same before its residual stream was turned",
            "142.3",
        ),
    },
    "MB",
)
LOSS_UNTOUCHED = _losses(
    "untouched",
    {
        "untouched-110mb": ("shuffled SmolLM2, `--max-mb 110`",),
        "untouched-110mb-8-stretches": ("with 8 stretches, 1.09 times the bytes read",),
        "untouched-90mb": ("`--max-mb 90`",),
        "untouched-90mb-8-stretches": ("with 8 stretches, 1.09 times the bytes read",),
        "untouched-110mb-same-formats": ("`--max-mb 110`, XNNPACK's weight formats alone",),
        "untouched-110mb-executorch": ("`--backend executorch --max-mb 110`",),
    },
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
