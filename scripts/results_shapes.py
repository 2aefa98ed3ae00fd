"""Tables of models in their real shapes, with random weights, beside llama.cpp."""

from __future__ import annotations

from results_tables import Cell, Grid, Line, one, rows_of

_OURS, _LLAMA = "edgeinfinite-onnx", "llama.cpp"
_SHAPES = {
    "lfm2-1.2b": "LFM2 1.2B",
    "qwen3.5-0.8b": "Qwen3.5 0.8B",
    "granite-4.0-h-1b": "Granite 4 H 1B",
    "gemma-4-e2b": "Gemma 4 E2B",
}
_MEASURED = tuple(row["model"] for row in rows_of("shapes/exports.json"))


def _both(head: str, field: str, form: str, unit: float = 1) -> tuple[tuple[str, Cell], ...]:
    """Our column, and llama.cpp's beside it."""
    return (
        (head, one(field, form, unit, system=_OURS)),
        ("llama.cpp", one(field, form, unit, system=_LLAMA)),
    )


def _lines(name: str) -> tuple[Line, ...]:
    """One for each length that was measured."""
    file = f"shapes/{name}.json"
    lengths = sorted({row["prompt_tokens"] for row in rows_of(file)})
    return tuple(
        Line((_SHAPES[name], f"{tokens:,}"), file, {"prompt_tokens": tokens}) for tokens in lengths
    )


SHAPES = Grid(
    ("shape", "tokens"),
    (
        *_both("first token, s", "ttft_s", "{:,.1f}"),
        *_both("decode, tokens/s", "decode_tokens_per_s", "{:.1f}"),
        *_both("peak, MB", "peak_rss_bytes", "{:,.0f}", 1e6),
        *_both("state, MB", "state_bytes", "{:,.1f}", 1e6),
    ),
    tuple(line for name in _MEASURED for line in _lines(name)),
)

EXPORTS = Grid(
    ("shape",),
    (
        ("parameters", one("parameters", "{:,.0f} M", 1e6)),
        ("CPU minutes", one("cpu_seconds", "{:.1f}", 60)),
        ("peak of the export", one("peak_rss_bytes", "{:.1f} GB", 1e9)),
        ("weights, int4", one("weights_bytes", "{:,.0f} MB", 1e6)),
        ("GGUF, Q4_0", one("gguf_bytes", "{:,.0f} MB", 1e6)),
    ),
    tuple(Line((_SHAPES[name],), "shapes/exports.json", {"model": name}) for name in _MEASURED),
)
