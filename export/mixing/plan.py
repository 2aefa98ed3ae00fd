"""From what a user asks for (a size, a loss, calibrated rounding) to a recipe and its integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeinfinite.export.backend import Backend, Integers
from edgeinfinite.export.default_text import chosen_text
from edgeinfinite.export.mixing.calibrated import CalibratedRounding
from edgeinfinite.export.mixing.curvature import Progress
from edgeinfinite.export.mixing.knapsack import (
    Choice,
    Mix,
    bytes_read,
    within_bytes,
    within_loss,
)
from edgeinfinite.export.mixing.measure import (
    AS_LOADED,
    Choices,
    Rows,
    measure,
    statistics_of,
    subject_of,
)
from edgeinfinite.export.mixing.rotation import rotate_residual
from edgeinfinite.export.options import QuantizationOptions
from edgeinfinite.export.recipes import Recipe, WeightFormat, computed_bits, exact_recipe
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

_ROOM_TO_READ = 1.07
"""Times the bytes that plain int4 reads. On two cores a token of SmolLM2 takes 2.8 ms and 0.036 ms
for each MB of weights (docs/develop/quantization.md), so this keeps 0.96 of the speed."""


@dataclass(frozen=True)
class QuantizationPlan:
    """What a back end is given.

    Args:
        recipe: a format for every weight.
        integers: weights whose codes are chosen already.
        calibrated: by a text, so that nothing but the artifact has the scaled and rounded weights.
        turned: whether the model's residual stream was turned, and nothing else (`rotation.py`).
        notes: one sentence for each default that mattered.
    """

    recipe: Recipe
    integers: Integers
    calibrated: bool = False
    turned: bool = False
    notes: tuple[str, ...] = ()


def plan_quantization(
    backbone: Backbone,
    backend: Backend,
    recipe: Recipe,
    options: QuantizationOptions,
    size: Callable[[], float],
    progress: Progress,
) -> QuantizationPlan:
    """Decides formats, then integers.

    Args:
        backbone: loaded. Its model may be changed and computes the same function: its residual
            stream is turned, or its channels are scaled (`scaling.py`).
        backend: which will pack them.
        recipe: of `--quantize`.
        options: see there.
        size: bytes that `max_mb` leaves for what the recipe names.
        progress: told what is done.

    Raises:
        EdgeInfiniteError: the text is too short, or nothing fits.
    """
    integers = dict(backbone.integers) if recipe.keeps_integers else {}
    mixes = options.max_mb is not None or options.max_loss is not None
    if not options.calibrates:
        # Weights of 4 bits lose more by a turn than activations gain, and a file's own integers
        # weren't measured (docs/results/quantization.md).
        floats_to_bytes = recipe.name == "int8" and not backbone.integers
        turns = backend.menu.rounds_by_token and floats_to_bytes
        turned = turns and rotate_residual(backbone.model)
        return QuantizationPlan(recipe, integers, turned=turned)
    text, _ = chosen_text(options.calibrate)
    digest = subject_of(backbone, backend, text)  # before the model is scaled
    statistics = statistics_of(backbone, backend, text, progress, options.report)
    rounding = CalibratedRounding(backbone.model, backend, statistics(), progress, backbone.release)
    if not mixes:
        rounded = rounding.round(recipe, integers)
        return QuantizationPlan(recipe, integers | rounded, calibrated=True)
    rows = options.report and Rows(options.report, digest)
    choices = measure(
        backbone,
        backend,
        recipe,
        statistics,
        progress,
        known=rows.rows if rows else (),
        save=rows.add if rows else lambda _: None,
    )

    def left(of: Choices) -> float:
        return size() - _left_alone(backbone, recipe, of)

    def best(of: Choices) -> Mix:
        if options.max_mb is not None:
            return within_bytes(of, left(of), _read_limit(of, recipe, options))
        return within_loss(of, options.max_loss or 0.0)

    # Rounding by inputs spares some weights more than others, so the mix is chosen once more.
    mix = best(choices)
    first, kept = _as_recipe(recipe, mix, integers)
    rounded = rounding.round(first, kept)
    choices = rounding.choices(choices, mix, rounded)
    mix = best(choices)
    chosen, kept = _as_recipe(recipe, mix, integers)
    rounded = rounding.round(chosen, kept, rounded)
    notes: tuple[str, ...] = ()
    if options.max_mb is not None and options.max_read_mb is None:
        notes = _price_of_speed(mix, within_bytes(choices, left(choices)))
    return QuantizationPlan(chosen, kept | rounded, calibrated=True, notes=notes)


def _price_of_speed(chosen: Mix, unlimited: Mix) -> tuple[str, ...]:
    """What the default of `max_read_mb` costs, where it costs anything."""
    read, more = bytes_read(chosen) / 1e6, bytes_read(unlimited) / 1e6
    if more <= read:
        return ()
    lost, less = (sum(choice.loss for choice in mix.values()) for mix in (chosen, unlimited))
    return (
        f"weights: {read:,.1f} MB are read for a token, about as much as with plain int4, at an "
        f"estimated loss of {lost:.4f} nats; --max-read-mb {math.ceil(more)} gives {less:.4f}",
    )


def _read_limit(choices: Choices, recipe: Recipe, options: QuantizationOptions) -> float:
    """Bytes of weights that decoding a token may read."""
    if options.max_read_mb is not None:
        return 1e6 * options.max_read_mb
    return _ROOM_TO_READ * bytes_read({n: _plain(of, recipe, n) for n, of in choices.items()})


def _plain(options: Sequence[Choice], recipe: Recipe, name: str) -> Choice:
    """What `--quantize int4` makes of a weight when no size is asked for."""
    by_format = {option.format: option for option in options}
    if AS_LOADED in by_format:
        return by_format[AS_LOADED]
    form = recipe.format_of(name)
    assert form is not None  # or it wouldn't have been measured
    if str(form) in by_format:
        return by_format[str(form)]
    # The back end lacks it, and takes one of as many bits in memory.
    bits = computed_bits(form.bits)
    alike = [
        option
        for option in options
        if computed_bits(WeightFormat.parse(option.format).bits) == bits
    ]
    return min(alike or options, key=lambda option: option.read)


def _left_alone(backbone: Backbone, recipe: Recipe, choices: Choices) -> int:
    """Bytes of weights that the recipe names and no format fits."""
    named = backbone.model.named_parameters()
    return sum(4 * p.numel() for name, p in named if recipe.format_of(name) and name not in choices)


def _as_recipe(
    recipe: Recipe, mix: Mix, integers: dict[str, GroupedWeight]
) -> tuple[Recipe, dict[str, GroupedWeight]]:
    """Exact rules; the checkpoint's integers stay where the mix chose them."""
    kept = {
        name: weight
        for name, weight in integers.items()
        if name not in mix or mix[name].format == AS_LOADED
    }
    formats = {
        name: WeightFormat(kept[name].bits, kept[name].group, kept[name].symmetric)
        if name in kept
        else WeightFormat.parse(choice.format)
        for name, choice in mix.items()
    }
    return exact_recipe(recipe.name, formats), kept
