"""`quantize-report`: the measured rows as a table by kind of weight, and as a plot."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.export.backend import Progress, backend_named
from edgeinfinite.export.default_text import chosen_text
from edgeinfinite.export.mixing.calibration import load_in_files
from edgeinfinite.export.mixing.knapsack import Choice, within_bytes
from edgeinfinite.export.mixing.measure import (
    Choices,
    Rows,
    measure,
    statistics_of,
    subject_of,
)
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.files import check_writable
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.defaults import ModelOptions, resolve
from edgeinfinite.models.geometry_options import GeometryOptions


@dataclass(frozen=True)
class ReportOptions:
    """What to measure.

    Args:
        model: what `load_backbone` takes.
        output: file of the rows, one JSON object a line; a run that ended early is gone on with.
        backend: whose formats are tried.
        calibrate: text that the statistics are taken from, or `default`.
        plot: file for the picture, None for none.
        geometry, scorer: of the session that reads the text, as for an export.
        pre_tokenizer: see `load_backbone`.
    """

    model: str
    output: Path
    backend: str = "onnx"
    calibrate: str = "default"
    plot: Path | None = None
    geometry: GeometryOptions = field(default_factory=GeometryOptions)
    scorer: str | None = None
    pre_tokenizer: str | None = None


def quantize_report(options: ReportOptions, progress: Progress) -> Choices:
    """Measures what `output` doesn't hold yet.

    Returns:
        The choices of every weight.

    Raises:
        EdgeInfiniteError: `output` is of another model, the back end doesn't run this one, or the
            text is too short.
    """
    if options.plot:
        check_writable(options.plot)
    text, _ = chosen_text(options.calibrate)
    backbone = load_in_files(options.model, pre_tokenizer=options.pre_tokenizer)
    backend = backend_named(options.backend)
    asked = ModelOptions(options.geometry, scorer=options.scorer)
    config = resolve(backbone, asked).config
    attach(backbone.model, config)
    backend.check_architecture(architecture_of(backbone.model), config.geometry)
    rows = Rows(options.output, subject_of(backbone, backend, text))
    choices = measure(
        backbone,
        backend,
        recipe_named("int4"),
        statistics_of(backbone, backend, text, progress, options.output),
        progress,
        known=rows.rows,
        save=rows.add,
    )
    if options.plot:
        plot(choices, options.plot)
    return choices


def table(choices: Mapping[str, Sequence[Choice]]) -> Iterator[str]:
    """Lines: for each kind of weight and format the losses and bytes of all layers together."""
    sums: dict[tuple[str, str], tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for name, options in choices.items():
        for choice in options:
            key = (kind_of(name), choice.format)
            loss, size = sums[key]
            sums[key] = (loss + choice.loss, size + choice.bytes)
    width = 2 + max(len(form) for _, form in sums)
    yield f"{'weights':<24}{'format':<{width}}{'nats':>9}{'MB':>9}"
    for (kind, form), (loss, size) in sums.items():
        yield f"{kind:<24}{form:<{width}}{loss:>9.4f}{size / 1e6:>9.2f}"


def kind_of(name: str) -> str:
    """A weight's name without the layer's number: `mlp.down_proj`."""
    parts = re.sub(r"\.\d+\.", ".", name.removesuffix(".weight")).split(".")
    return ".".join(part for part in parts if part not in ("model", "layers"))


def frontier(choices: Mapping[str, Sequence[Choice]], points: int = 40) -> list[Choice]:
    """The best mixes of some sizes, from the smallest on; `format` is empty."""
    smallest = sum(min(c.bytes for c in options) for options in choices.values())
    largest = sum(max(c.bytes for c in options) for options in choices.values())
    found = []
    for index in range(points):
        mix = within_bytes(choices, smallest + (largest - smallest) * index / (points - 1))
        total = sum(c.bytes for c in mix.values()), sum(c.loss for c in mix.values())
        found.append(Choice("", *total))
    return found


def plot(choices: Mapping[str, Sequence[Choice]], path: Path) -> None:
    """Loss against bytes: every format used throughout, and the best mixes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    mixes = frontier(choices)
    axes.plot([c.bytes / 1e6 for c in mixes], [c.loss for c in mixes], label="best mix")
    for form in dict.fromkeys(c.format for options in choices.values() for c in options):
        same = _throughout(choices, form)
        if len(same) == len(choices):
            size, loss = sum(c.bytes for c in same), sum(c.loss for c in same)
            axes.plot(size / 1e6, loss, "o", label=f"{form} throughout")
    axes.set(xlabel="MB of weights", ylabel="nats a token, to second order", yscale="log")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def _throughout(choices: Mapping[str, Sequence[Choice]], form: str) -> list[Choice]:
    """One format for all weights that have a choice; shorter if one of them lacks it."""
    found = []
    for options in choices.values():
        found += [c for c in options if c.format == form or len(options) == 1]
    return found
