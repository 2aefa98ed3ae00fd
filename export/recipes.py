"""Quantization recipes: which weight gets how many bits. How they are packed is the back end's.

A recipe is an ordered list of rules over the names of weights, as `model.state_dict()` has them;
the first rule that matches decides, None (and no rule at all) leaves the weight alone. An
embedding that is tied to the LM head goes by the embedding's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError


@dataclass(frozen=True)
class WeightFormat:
    """Integers with one scale for every group of consecutive inputs of an output row.

    Args:
        bits: 4 or 8.
        group: inputs that share a scale.
        symmetric: False gives each group a zero point as well.
    """

    bits: int
    group: int = 32
    symmetric: bool = True

    def __str__(self) -> str:
        return f"int{self.bits} {'symmetric' if self.symmetric else 'asymmetric'} g{self.group}"


@dataclass(frozen=True)
class Rule:
    """Weights whose name contains a match of `pattern` get `format`."""

    pattern: str
    format: WeightFormat | None


@dataclass(frozen=True)
class Recipe:
    """An ordered list of rules under a name."""

    name: str
    rules: tuple[Rule, ...] = ()

    def format_of(self, weight: str) -> WeightFormat | None:
        """The format of a weight, None to leave it alone."""
        for rule in self.rules:
            if re.search(rule.pattern, weight):
                return rule.format
        return None


_KEPT = (Rule(r"memory_gate\.", None), Rule(r"norm", None), Rule(r"bias$", None))
"""Small, and sensitive."""

_EMBEDDING = r"(embed_tokens|lm_head)\.weight$"

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("none"),
        Recipe("int8", (*_KEPT, Rule(r"\.weight$", WeightFormat(8)))),
        Recipe(
            "int4",
            (
                *_KEPT,
                Rule(_EMBEDDING, WeightFormat(8)),
                Rule(r"\.weight$", WeightFormat(4, symmetric=False)),
            ),
        ),
    )
}


def recipe_named(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        EdgeInfiniteError: there is none.
    """
    if name not in RECIPES:
        raise EdgeInfiniteError(
            f"unknown quantization {name!r}; choose one of {', '.join(RECIPES)}"
        )
    return RECIPES[name]
