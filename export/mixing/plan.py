"""From what a user asks for (a size, a loss, calibrated rounding) to a recipe and its integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import Backend, Integers
from edgeinfinite.export.default_text import chosen_text
from edgeinfinite.export.mixing.knapsack import Mix, within_bytes, within_loss
from edgeinfinite.export.mixing.measure import (
    AS_LOADED,
    Choices,
    Rows,
    Statistics,
    measure,
    statistics_of,
    subject_of,
)
from edgeinfinite.export.mixing.rounding import inverse_factor, round_by_inputs
from edgeinfinite.export.mixing.statistics import Progress
from edgeinfinite.export.options import QuantizationOptions
from edgeinfinite.export.recipes import Recipe, WeightFormat, exact_recipe
from edgeinfinite.models.grouped_weight import GroupedWeight
from edgeinfinite.models.loading import Backbone


@dataclass(frozen=True)
class QuantizationPlan:
    """What a back end is given.

    Args:
        recipe: a format for every weight.
        integers: weights whose codes are chosen already.
        calibrated: by a text, so that nothing but the artifact has the scaled and rounded weights.
    """

    recipe: Recipe
    integers: Integers
    calibrated: bool = False


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
        backbone: loaded.
        backend: which will pack them.
        recipe: of `--quantize`.
        options: see there.
        size: bytes that `max_mb` leaves for what the recipe names.
        progress: told what is done.

    Raises:
        EdgeInfiniteError: options exclude each other, the text is too short, or nothing fits.
    """
    integers = dict(backbone.integers) if recipe.keeps_integers else {}
    mixes = options.max_mb is not None or options.max_loss is not None
    if not mixes and options.calibrate is None:
        return QuantizationPlan(recipe, integers)
    _check(recipe, options)
    text, _ = chosen_text(options.calibrate)
    digest = subject_of(backbone, backend, text)  # before the model is scaled
    statistics = statistics_of(backbone, text, progress, options.report)
    statistics()
    if mixes:
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
        if options.max_mb is not None:
            mix = within_bytes(choices, size() - _left_alone(backbone, recipe, choices))
        else:
            mix = within_loss(choices, options.max_loss or 0.0)
        recipe, integers = _as_recipe(recipe, mix, integers)
    rounded = _rounded(backbone, backend, recipe, integers, statistics(), progress)
    return QuantizationPlan(recipe, integers | rounded, calibrated=True)


def _rounded(
    backbone: Backbone,
    backend: Backend,
    recipe: Recipe,
    integers: Integers,
    statistics: Statistics,
    progress: Progress,
) -> dict[str, GroupedWeight]:
    """Codes of the linear layers' weights of fewer than 8 bits, chosen by their inputs."""
    found: dict[str, GroupedWeight] = {}
    factor, shared = None, None
    weights = [name for name in statistics if name not in integers and recipe.format_of(name)]
    for index, name in enumerate(weights):
        weight, inputs = backbone.model.get_parameter(name), statistics[name].inputs
        form = _form_of(backend, recipe.format_of(name), weight)
        looked_up = statistics[name].looked_up is not None  # a table isn't for its head alone
        if form is None or inputs is None or looked_up:
            continue
        progress(f"rounding {name}", index / len(weights))
        if inputs is not shared:  # Q, K and V read the same
            factor, shared = inverse_factor(inputs), inputs
        assert factor is not None
        found[name] = round_by_inputs(weight, factor, form, backend.scale_type)
    return found


def _form_of(
    backend: Backend, asked: WeightFormat | None, weight: torch.Tensor
) -> WeightFormat | None:
    """What the back end makes of a rule, if that is worth choosing codes for."""
    if asked is None or asked.bits == 8:
        return None
    for form in (asked, WeightFormat(asked.bits)):
        if form in backend.formats and weight.shape[1] % form.group == 0:
            return form
    return None


def _check(recipe: Recipe, options: QuantizationOptions) -> None:
    if options.max_mb is not None and options.max_loss is not None:
        raise EdgeInfiniteError("--max-mb and --max-loss exclude each other; leave one out")
    if recipe.name != "int4":
        raise EdgeInfiniteError(
            "--max-mb, --max-loss and --calibrate are for --quantize int4, which chooses formats"
        )


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
