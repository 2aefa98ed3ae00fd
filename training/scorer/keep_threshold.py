"""The keep threshold: the rank above which a pair may stay for its rank (`models.recall.scorer`).

Letters: L layers, K KV heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.files import read_text_file
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.ranking import pooled_scores, with_neighbours
from edgeinfinite.models.recall.scorer import KEEP_ALL, RetentionScorer
from edgeinfinite.training.scorer.observe import Observation, observe
from edgeinfinite.training.texts import excerpt

SHARE = 0.05
"""The share of tokens of ordinary text that rank higher; measured in experiments/recall.md."""


def ordinary_texts(
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    tokens: int,
    passes: int,
    seed: int,
) -> list[list[int]]:
    """Draws `passes` excerpts of `tokens` ids each; nothing is planted in them.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    random = np.random.default_rng(seed)
    chosen = random.choice(len(documents), passes, replace=passes > len(documents))
    return [excerpt(read_text_file(documents[i]), tokenizer, tokens, random) for i in chosen]


def fit_keep_thresholds(
    model: PreTrainedModel,
    texts: Sequence[list[int]],
    scorers: Sequence[RetentionScorer],
    rule: RankRule,
    progress: Callable[[int], None],
) -> None:
    """Sets the keep threshold of all retrieval heads.

    Args:
        model: the backbone.
        texts: `ordinary_texts`, T ids each.
        scorers: of all layers, otherwise finished; changed in place.
        rule: how scores rank pairs.
        progress: called with the number of texts read.
    """
    scoring = {layer: scorer for layer, scorer in enumerate(scorers) if not scorer.streams}
    tokens = len(texts[0])
    tables, positions = rotary_tables(model, tokens), torch.arange(tokens)
    ranks: dict[int, list[torch.Tensor]] = {layer: [] for layer in scoring}
    for done, text in enumerate(texts, 1):
        own: dict[int, torch.Tensor] = {}

        def keep(layer: int, of: Observation, own: dict[int, torch.Tensor] = own) -> None:
            if layer in scoring:
                raw = tables[layer].shift_back(of.key, positions)
                own[layer] = scoring[layer](raw[None], of.value[None])

        observe(model, text, tokens, 1, keep)
        heads = pooled_scores([own[layer] for layer in scoring], list(scoring.values()), rule)
        for layer, scores in zip(scoring, heads, strict=True):
            ranks[layer].append(with_neighbours(scores, rule)[0])
        progress(done)
    for layer, scorer in scoring.items():  # `quantile` takes no more than 16 million numbers
        least = torch.cat(ranks[layer], dim=-1).quantile(1 - SHARE, dim=-1, keepdim=True)
        scorer.keep_threshold.copy_(torch.where(scorer.retrieval.bool(), least, KEEP_ALL))
