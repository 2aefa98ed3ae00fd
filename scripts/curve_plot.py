"""Draws `benchmarks/recall/curve.png`: what a larger state buys, and what it costs.

    python scripts/curve_plot.py

One line a model, from the rows of the table in docs/results/recall.md.
"""

from __future__ import annotations

from statistics import fmean

from matplotlib import pyplot
from results_curve import FACTS, SIZES, TOKENS, speed_of
from results_tables import BENCHMARKS, chosen, rows_of

_PANELS = {
    "loss of planted facts, nats a token": None,
    "first token, s": "ttft_s",
    "decode, tokens/s": "decode_tokens_per_s",
}


def _values(model: str, field: str | None) -> list[float]:
    sizes = [nbytes for nbytes, _ in SIZES[model].values()]
    if field is not None:
        return [speed_of(model, nbytes)[field] for nbytes in sizes]
    rows = chosen(rows_of(FACTS[model]), prompt_tokens=TOKENS)
    name = "nats_per_digit_token"
    return [fmean(row[name] for row in chosen(rows, state_bytes=one)) for one in sizes]


def main() -> None:
    """Writes the picture."""
    figure, axes = pyplot.subplots(1, len(_PANELS), figsize=(10, 3.2), layout="constrained")
    for axis, (title, field) in zip(axes, _PANELS.items(), strict=True):
        for model, sizes in SIZES.items():
            megabytes = [nbytes / 1e6 for nbytes, _ in sizes.values()]
            axis.plot(megabytes, _values(model, field), "o-", label=model)
        axis.set(title=title, xlabel="state, MB", xlim=(0, None), ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.savefig(BENCHMARKS / "recall/curve.png", dpi=120)


if __name__ == "__main__":
    main()
