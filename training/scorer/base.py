"""A scorer that is there already, and gets a second network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import RANK_RULE, load_scorers, read_rank_rule
from edgeinfinite.models.trained_file import read_metadata


@dataclass(frozen=True)
class Base:
    """What a scorer's file holds.

    Args:
        scorers: of all layers.
        rule: the rank rule.
        card: everything else on its card.
    """

    scorers: list[RetentionScorer]
    rule: RankRule
    card: dict[str, str]


def read_base(path: Path, backbone: Backbone) -> Base:
    """Reads a scorer of this checkpoint.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, or for another checkpoint.
    """
    facts = architecture_of(backbone.model)
    scorers = load_scorers(path, len(facts.layers), facts.kv_heads, facts.head_dim, facts.heads)
    rule, card = read_rank_rule(path), read_metadata(path)
    if card.get("weights_sha256") != backbone.weights_sha256:
        raise EdgeInfiniteError(f"scorer file {path} was trained for another checkpoint than this")
    return Base(scorers, rule, {name: card[name] for name in card if name != RANK_RULE})
