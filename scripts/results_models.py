"""The table of checkpoints: what each takes as an artifact, beside what is known of it."""

from __future__ import annotations

from results_tables import BENCHMARKS, Grid, Line, Row, chosen, one, rows_of

_ROWS = "models.json"
_OF_A_PROCESS = 3
"""Weights and state times this: the largest share that was measured, see docs/models.md."""

_RUN = tuple(
    f"shapes/{row['model']}.json"
    for row in rows_of(_ROWS)
    if (BENCHMARKS / f"shapes/{row['model']}.json").is_file()
)
"""Rows of the shapes that were run."""


def _free(rows: list[Row]) -> str:
    """The most that a process took; of a shape that wasn't run, what it would take at most."""
    (row,) = rows
    if (file := f"shapes/{row['model']}.json") in _RUN:
        ours = chosen(rows_of(file), system="edgeinfinite-onnx")
        return f"{max(one['peak_rss_bytes'] for one in ours) / 1e9:.1f} GB"
    return f"{_OF_A_PROCESS * (row['weights_bytes'] + row['state_bytes']) / 1e9:.1f} GB"


def _checkpoint(name: str, hub: str, licence: str, system: str, tried: str) -> Line:
    return Line((f"`{hub}`", licence, system, tried), _ROWS, {"model": name})


_APACHE, _OWN, _NONE, _RANDOM = "Apache-2.0", "its own", "none", "random weights"

DEVICES = Grid(
    ("checkpoint", "licence", "system prompt of the template", "tried with"),
    (
        ("parameters", one("parameters", "{:,.0f} M", 1e6)),
        ("weights, int4", one("weights_bytes", "{:,.0f} MB", 1e6)),
        ("state", one("state_bytes", "{:.1f} MB", 1e6)),
        ("free memory to have", _free),
        ("full attention, 32,000 tokens", one("full_attention_bytes", "{:,.0f} MB", 1e6)),
    ),
    (
        _checkpoint(
            "smollm2-135m",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            _APACHE,
            _OWN,
            "everything here",
        ),
        _checkpoint(
            "gemma-3-270m",
            "google/gemma-3-270m",
            "Gemma Terms of Use",
            "no template",
            "recall, loss, speed",
        ),
        _checkpoint(
            "smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct", _APACHE, _OWN, "its shape"
        ),
        _checkpoint("qwen3-0.6b", "Qwen/Qwen3-0.6B", _APACHE, _NONE, "its shape"),
        _checkpoint("qwen3.5-0.8b", "Qwen/Qwen3.5-0.8B", _APACHE, _NONE, _RANDOM),
        _checkpoint(
            "gemma-3-1b",
            "google/gemma-3-1b-it",
            "Gemma Terms of Use",
            "in the user's turn",
            "its shape",
        ),
        _checkpoint("lfm2-1.2b", "LiquidAI/LFM2-1.2B", "LFM Open License v1.0", _NONE, _RANDOM),
        _checkpoint(
            "llama-3.2-1b",
            "meta-llama/Llama-3.2-1B-Instruct",
            "Llama 3.2 Community License",
            "dates",
            _RANDOM,
        ),
        _checkpoint(
            "granite-4.0-h-1b",
            "ibm-granite/granite-4.0-h-1b",
            _APACHE,
            "none, or its own, by version",
            _RANDOM,
        ),
        _checkpoint("gemma-4-e2b", "google/gemma-4-E2B-it", _APACHE, _NONE, _RANDOM),
    ),
    beside=_RUN,
)
