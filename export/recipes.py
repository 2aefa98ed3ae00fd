"""Quantization recipes: which weight gets how many bits. How they are packed is the back end's.

5 and 6 bits are stored as such and computed as 8 (`onnx/passes/narrow_codes.py`), or packed as 8
where a back end has nothing else.

A recipe is an ordered list of rules over the names of weights, as `model.state_dict()` has them;
the first rule that matches decides, None (and no rule at all) leaves the weight alone. An
embedding that is tied to the LM head goes by the embedding's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError


def computed_bits(bits: int) -> int:
    """Bits of a code in memory and in the operators: 4 or 8."""
    return 4 if bits == 4 else 8


@dataclass(frozen=True)
class WeightFormat:
    """Integers with one scale for every group of consecutive inputs of an output row.

    Args:
        bits: 4, 5, 6 or 8.
        group: inputs that share a scale.
        symmetric: False gives each group a zero point as well.
        leading: so many of the first inputs have 8 bits instead, with one scale a row; a multiple
            of the group.
        offsets: gives each group an offset, a multiple of one step a row. It does what a zero
            point does, where an operator has symmetric groups only (`executorch/layers.py`).
    """

    bits: int
    group: int = 32
    symmetric: bool = True
    leading: int = 0
    offsets: bool = False

    def __str__(self) -> str:
        symmetry = "symmetric" if self.symmetric else "asymmetric"
        leading = f", the first {self.leading} inputs int8" if self.leading else ""
        offsets = ", offsets" if self.offsets else ""
        return f"int{self.bits} {symmetry} g{self.group}{offsets}{leading}"

    @classmethod
    def parse(cls, text: str) -> WeightFormat:
        """From what `str` gives, whatever follows; without a group it is 32.

        Raises:
            EdgeInfiniteError: it is something else.
        """
        match = re.match(
            r"int(\d) (a?)symmetric(?: g(\d+))?(, offsets)?(?:, the first (\d+) inputs int8)?",
            text,
        )
        if match is None:
            raise EdgeInfiniteError(f"{text!r} is no format of weights")
        bits, asymmetric, group, offsets, leading = match.groups()
        symmetric, first = not asymmetric, int(leading or 0)
        return cls(int(bits), int(group or 32), symmetric, first, offsets=bool(offsets))


@dataclass(frozen=True)
class Rule:
    """Weights whose name contains a match of `pattern` get `format`."""

    pattern: str
    format: WeightFormat | None


@dataclass(frozen=True)
class Recipe:
    """An ordered list of rules under a name.

    Args:
        name: as `--quantize` and the manifest have it.
        rules: see above.
        keeps_integers: a weight that the checkpoint has in integers of 4 to 8 bits keeps those,
            whatever bits the rules give: nothing is rounded twice.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    keeps_integers: bool = False

    def format_of(self, weight: str) -> WeightFormat | None:
        """The format of a weight, None to leave it alone."""
        for rule in self.rules:
            if re.search(rule.pattern, weight):
                return rule.format
        return None


_KEPT = (Rule(r"memory_gate\.", None), Rule(r"norm", None), Rule(r"bias$", None))
"""Small, and sensitive."""

_EMBEDDING = r"(embed_tokens|lm_head)\.weight$"

_COSTLY = r"\.(v_proj|down_proj)\.weight$"
"""A third of SmolLM2's weights, and four fifths of what 4 bits cost it: values go straight into the
residual stream, and the MLP's inner channels have outliers (docs/results/quantization.md)."""

_FORGETTING = r"\.in_proj_(a|b|ba)\.weight$"
"""A few rows that say how much a gated delta rule forgets: their errors add up over a text."""

_EXPERTS = r"\.experts\.(gate_up_proj|up_proj|down_proj)$"
"""Parameters of all experts of a layer, which have no `.weight` of their own."""

_ROUTER = r"(mlp|moe|feed_forward|ffn)\.(gate|gate\.wg|router|router\.\w+)\.weight$"
"""A few rows that choose a token's experts: a rounded one chooses others."""

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("none"),
        Recipe(
            "int8",
            (
                *_KEPT,
                Rule(_ROUTER, None),
                Rule(_EXPERTS, WeightFormat(8)),
                Rule(r"\.weight$", WeightFormat(8)),
            ),
        ),
        Recipe(
            "int4",
            (
                *_KEPT,
                Rule(_ROUTER, None),
                Rule(_EXPERTS, WeightFormat(4, symmetric=False)),
                Rule(_EMBEDDING, WeightFormat(8)),
                Rule(_COSTLY, WeightFormat(6)),
                Rule(_FORGETTING, WeightFormat(8)),
                Rule(r"\.weight$", WeightFormat(4, symmetric=False)),
            ),
            keeps_integers=True,
        ),
    )
}


def exact_recipe(name: str, formats: Mapping[str, WeightFormat]) -> Recipe:
    """A recipe with one rule a weight; what isn't named is left alone.

    Args:
        name: of the recipe that it was made from.
        formats: by weight.
    """
    rules = (Rule(f"^{re.escape(weight)}$", form) for weight, form in formats.items())
    return Recipe(name, tuple(rules), keeps_integers=True)


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
