"""The rank that only a few tokens of ordinary text exceed."""

from __future__ import annotations

import torch

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.ranking import pooled_scores, with_neighbours
from edgeinfinite.models.recall.scorer import KEEP_ALL, RetentionScorer
from edgeinfinite.training.scorer.keep_threshold import SHARE, fit_keep_thresholds, ordinary_texts
from edgeinfinite.training.scorer.observe import observe
from edgeinfinite.training.texts import find_documents


def test_the_given_share_of_tokens_ranks_above_the_threshold_in_every_scoring_head(
    checkpoint, texts
):
    """In the second layer of two one head of two scores."""
    backbone = load_backbone(str(checkpoint))
    model = backbone.model
    torch.manual_seed(0)
    scorers = [RetentionScorer(2, 8).requires_grad_(False) for _ in model.model.layers]
    scorers[1].make_streaming(torch.tensor([True, False]))
    done: list[int] = []
    read = ordinary_texts(backbone.tokenizer, find_documents([texts]), 200, 2, 3)
    assert [len(text) for text in read] == [200, 200] and read[0] != read[1]
    rule = RankRule()
    fit_keep_thresholds(model, read, scorers, rule, done.append)
    assert done == [1, 2]
    assert scorers[1].keep_threshold[0] == KEEP_ALL
    higher = torch.zeros(2, 2)
    table = rotary_tables(model, 200)[0]
    for text in read:
        own = []
        observe(
            model,
            text,
            200,
            1,
            lambda layer, of, own=own: own.append(
                scorers[layer](table.shift_back(of.key, torch.arange(200))[None], of.value[None])
            ),
        )
        for layer, scores in enumerate(pooled_scores(own, scorers, rule)):
            rank = with_neighbours(scores, rule)[0]
            higher[layer] += (rank > scorers[layer].keep_threshold).sum(-1)
    assert ((higher / 400 - SHARE).abs() <= 0.01)[[0, 0, 1], [0, 1, 1]].all()
