"""The table of checkpoints: what each takes as an artifact, beside what is known of it."""

from __future__ import annotations

from results_tables import Grid, Line, Row, one

_ROWS = "models.json"
_OF_A_PROCESS = 3
"""Weights and state times this: the largest share that was measured, see docs/models.md."""


def _free(rows: list[Row]) -> str:
    (row,) = rows
    return f"{_OF_A_PROCESS * (row['weights_bytes'] + row['state_bytes']) / 1e9:.1f} GB"


def _checkpoint(name: str, hub: str, licence: str, system: str, tried: str) -> Line:
    return Line((f"`{hub}`", licence, system, tried), _ROWS, {"model": name})


_APACHE, _OWN, _NONE = "Apache-2.0", "its own", "none"

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
        _checkpoint(
            "gemma-3-1b",
            "google/gemma-3-1b-it",
            "Gemma Terms of Use",
            "in the user's turn",
            "its shape",
        ),
        _checkpoint("lfm2-1.2b", "LiquidAI/LFM2-1.2B", "LFM Open License v1.0", _NONE, "its shape"),
        _checkpoint(
            "llama-3.2-1b",
            "meta-llama/Llama-3.2-1B-Instruct",
            "Llama 3.2 Community License",
            "dates",
            "random weights",
        ),
    ),
)
