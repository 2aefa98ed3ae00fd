"""Weights rounded by their inputs, and what formats cost once weights are rounded so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median

import torch
from transformers import PreTrainedModel

from edgeinfinite.export.backend import Backend, Integers
from edgeinfinite.export.mixing.curvature import Progress
from edgeinfinite.export.mixing.knapsack import Mix
from edgeinfinite.export.mixing.measure import AS_LOADED, Choices, Statistics
from edgeinfinite.export.mixing.rounding import inverse_factor, round_by_inputs
from edgeinfinite.export.recipes import Recipe, WeightFormat
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

Rounded = dict[str, GroupedWeight]
"""By weight; without the first inputs where these have 8 bits (`leading` of the format)."""


@dataclass(frozen=True)
class CalibratedRounding:
    """Rounds the weights of linear layers of fewer than 8 bits.

    Args:
        model: scaled already (`scaling.py`); left as it is.
        backend: which will pack the codes.
        statistics: of the model.
        progress: told what is done.
        done: called after each weight.
    """

    model: PreTrainedModel
    backend: Backend
    statistics: Statistics
    progress: Progress
    done: Callable[[], None] = lambda: None

    def round(
        self, recipe: Recipe, integers: Integers, known: Mapping[str, GroupedWeight] | None = None
    ) -> Rounded:
        """Codes for what a recipe names.

        Args:
            recipe: a format for every weight.
            integers: weights whose codes are chosen already; they aren't rounded.
            known: results of a call before; those in the same format are taken again.
        """
        found: Rounded = {}
        factor, shared = None, None
        names = [n for n in self.statistics if n not in integers and recipe.format_of(n)]
        for index, name in enumerate(names):
            weight, inputs = self.model.get_parameter(name), self.statistics[name].inputs
            form = self._form(recipe.format_of(name), weight)
            looked_up = self.statistics[name].looked_up is not None  # not for its head alone
            if form is None or inputs is None or looked_up:
                continue
            before = (known or {}).get(name)
            if before is not None and _is_of(before, form, weight):
                found[name] = before
                continue
            self.progress(f"rounding {name}", index / len(names))
            if inputs is not shared:  # Q, K and V read the same
                factor, shared = inverse_factor(inputs), inputs
            assert factor is not None
            # What its first inputs lose in 8 bits isn't worth making up for.
            rest, own = weight[:, form.leading :], factor[form.leading :, form.leading :]
            found[name] = round_by_inputs(rest, own, form, self.backend.menu.scale_type)
            self.done()
        return found

    def choices(self, choices: Choices, mix: Mix, rounded: Rounded) -> Choices:
        """The losses of formats as they are after this rounding: what it spared one, it spares all.

        A weight that isn't among `rounded` is taken for the median of its kind.

        Args:
            choices: of all weights, their losses those of the nearest codes.
            mix: the formats that were rounded to.
            rounded: by them.
        """
        shares, by_kind = {}, defaultdict(list)
        for name, weight in rounded.items():
            original = self.model.get_parameter(name).detach().float()
            leading = original.shape[1] - weight.codes.shape[1]
            error = weight.dequantized() - original[:, leading:]
            if leading:  # these inputs as they are for every rounding
                form = WeightFormat.parse(mix[name].format)
                first = self.backend.rounded(original, form, embedding=False)[0][:, :leading]
                error = torch.cat((first - original[:, :leading], error), dim=1)
            share = self.statistics[name].loss(error) / max(mix[name].loss, 1e-12)
            shares[name] = min(share, 1.0)
            by_kind[_kind(name)].append(shares[name])
            self.done()
        medians = {kind: median(values) for kind, values in by_kind.items()}
        return {
            name: [
                option
                if option.format == AS_LOADED or WeightFormat.parse(option.format).bits == 8
                else replace(
                    option, loss=option.loss * shares.get(name, medians.get(_kind(name), 1.0))
                )
                for option in options
            ]
            for name, options in choices.items()
        }

    def _form(self, asked: WeightFormat | None, weight: torch.Tensor) -> WeightFormat | None:
        """What the back end makes of a rule, if that is worth choosing codes for."""
        if asked is None or asked.bits == 8:
            return None
        for form in (asked, WeightFormat(asked.bits, leading=asked.leading)):
            known = replace(form, leading=0) in self.backend.menu.formats
            if known and weight.shape[1] % form.group == 0:
                return form
        return None


def _is_of(rounded: GroupedWeight, form: WeightFormat, weight: torch.Tensor) -> bool:
    leading = weight.shape[1] - rounded.codes.shape[1]
    stored = replace(form, symmetric=form.symmetric and not form.offsets, offsets=False)
    return WeightFormat(rounded.bits, rounded.group, rounded.symmetric, leading) == stored


def _kind(name: str) -> str:
    """Without the layer's number."""
    return re.sub(r"\d+", "", name)
