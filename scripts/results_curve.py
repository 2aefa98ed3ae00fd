"""The size of the state against what it recalls and what it costs, for both models."""

from __future__ import annotations

from typing import Any

from results_tables import Cell, Grid, Line, Row, chosen, count, mean, percent, rows_of

TOKENS = 7500
SPEEDS = {"SmolLM2-135M": "sizes-8000.json", "Gemma 3 270M": "gemma-to-7500.json"}
FACTS = {"SmolLM2-135M": "recall/sizes-smollm2.json", "Gemma 3 270M": "recall/sizes-gemma.json"}
SIZES = {
    "SmolLM2-135M": {
        "carry-512-int8": (13_418_740, "`--recall-slots trained:512`"),
        "carry-26.7-int8": (25_436_404, "nothing, the default"),
        "carry-40-int8": (38_956_276, "`--state-mb 40`"),
        "carry-58.7-int8": (57_001_204, "`--state-mb 58.7`"),
    },
    "Gemma 3 270M": {
        "gemma-default": (8_268_436, "nothing, the default"),
        "gemma-13": (12_825_748, "`--state-mb 13`"),
        "gemma-26.7": (26_695_828, "`--state-mb 26.7`"),
    },
}
"""By model and the name of the artifact in its rows: the state's bytes, and what `export` got."""


def speed_of(model: str, nbytes: int) -> Row:
    """The row of `bench` with a state of so many bytes, after the longest prompt."""
    (settings,) = (name for name, size in SIZES[model].items() if size[0] == nbytes)
    rows = chosen(rows_of(SPEEDS[model]), settings=settings)
    return max(rows, key=lambda row: row["prompt_tokens"])


def _speed(field: str, form: str, unit: float = 1.0) -> Cell:
    def cell(rows: list[Row]) -> str:
        (nbytes,) = {row["state_bytes"] for row in rows}
        (model,) = (
            model
            for model, sizes in SIZES.items()
            if nbytes in (size for size, _ in sizes.values())
        )
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
        Line(
            (model, f"{nbytes / 1e6:.1f}", how),
            FACTS[model],
            {"state_bytes": nbytes, "prompt_tokens": TOKENS},
            default=model.startswith("SmolLM2") and how.endswith("the default"),
        )
        for model, sizes in SIZES.items()
        for nbytes, how in sizes.values()
    ),
    tuple(SPEEDS.values()),
)
