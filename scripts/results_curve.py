"""The state's size against what it recalls and what it costs, for both models."""

from __future__ import annotations

from typing import Any

from results_tables import Cell, Grid, Line, Row, chosen, count, mean, percent, rows_of

SPEEDS = {"SmolLM2": "sizes-8000.json", "Gemma": "gemma-to-7500.json"}
FACTS = {"SmolLM2": "recall/sizes-smollm2.json", "Gemma": "recall/sizes-gemma.json"}
SIZES = {
    "SmolLM2": {13_374_000: "`--recall-slots trained:512`"},
    "Gemma": {},
}
"""Bytes of the states, and the options of export that make them."""


def speed_of(model: str, nbytes: int) -> Row:
    """The row of `bench` with a state of so many bytes, after the longest prompt."""
    rows = chosen(rows_of(SPEEDS[model]), state_bytes=nbytes)
    return max(rows, key=lambda row: row["prompt_tokens"])


def _speed(field: str, form: str, unit: float = 1.0) -> Cell:
    def cell(rows: list[Row]) -> str:
        (nbytes,) = {row["state_bytes"] for row in rows}
        (model,) = (model for model, sizes in SIZES.items() if nbytes in sizes)
        value: Any = speed_of(model, nbytes)[field]
        return form.format(value / unit)

    return cell


CURVE = Grid(
    ("model", "state, MB", "`export` with"),
    (
        ("facts", count),
        ("exact", percent("correct")),
        ("nats", mean("nats_per_digit_token", "{:.2f}")),
        ("first token, s", _speed("ttft_s", "{:.1f}")),
        ("decode, tokens/s", _speed("decode_tokens_per_s", "{:.0f}")),
        ("peak, MB", _speed("peak_rss_bytes", "{:,.0f}", 1e6)),
    ),
    tuple(
        Line((model, f"{nbytes / 1e6:.1f}", how), FACTS[model], {"state_bytes": nbytes})
        for model, sizes in SIZES.items()
        for nbytes, how in sizes.items()
    ),
    tuple(SPEEDS.values()),
)
