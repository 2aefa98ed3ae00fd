"""Files of trained retention scorers, see `trained_file`; the card has the rank rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.artifact.tensors import Heads
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.trained_file import load_into, read_layers, read_metadata, save_layers

RANK_RULE = "rank_rule"
"""The rule's key on a scorer's card."""


def save_scorers(
    path: Path, scorers: Sequence[RetentionScorer], rule: RankRule, metadata: dict[str, str]
) -> None:
    """Writes the scorers of all layers, and the rank rule that they were trained for.

    Args:
        path: the file, replaced atomically.
        scorers: one per layer.
        rule: stored on the card.
        metadata: the rest of the card, string to string.
    """
    save_layers(path, scorers, metadata | {RANK_RULE: rule.to_json()})


def load_scorers(
    path: Path, layers: int, kv_heads: int, head_dim: int, heads: Sequence[Heads] = ()
) -> list[RetentionScorer]:
    """Reads the scorers of all layers.

    Args:
        path: the file.
        layers, kv_heads, head_dim: L, K, D.
        heads: K and D of every layer, where they differ.

    Raises:
        EdgeInfiniteError: the file is missing, damaged, made for another backbone, or holds NaN.
    """
    scorers = []
    sizes = heads or [Heads(kv_heads, head_dim)] * layers
    for size, tensors in zip(sizes, read_layers(path, layers, "scorer"), strict=True):
        scorer = RetentionScorer(*size)
        if "repeats.w1" in tensors:
            scorer.add_repeats(tensors["repeats.w1"].shape[-1])
        scorer.requires_grad_(False)
        load_into(scorer, tensors, path, "scorer")
        scorer.find_retrieval_heads()
        scorers.append(scorer)
    return scorers


def read_rank_rule(path: Path) -> RankRule:
    """The rule on a scorer's card.

    Raises:
        EdgeInfiniteError: the card has no rule, or one that this version doesn't know.
    """
    card = read_metadata(path)
    if RANK_RULE not in card:
        raise EdgeInfiniteError(
            f"scorer file {path} doesn't say how its scores rank pairs, it is from an edgeinfinite "
            "before this one; train it again with train-scorer"
        )
    return RankRule.from_json(card[RANK_RULE])


def untrained_scorers(
    layers: int, kv_heads: int, head_dim: int, seed: int, heads: Sequence[Heads] = ()
) -> list[RetentionScorer]:
    """Random scorers, for tests of the mechanism; arguments as of `load_scorers`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = heads or [Heads(kv_heads, head_dim)] * layers
        return [RetentionScorer(*size).requires_grad_(False) for size in sizes]
