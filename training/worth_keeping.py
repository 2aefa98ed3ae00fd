"""From which rank on a pair stays for its rank (`models.scorer`, `worth_keeping`).

Letters: L layers, K KV heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.models.rotary import rotary_tables
from edgeinfinite.models.scorer import EVERYTHING, RetentionScorer, agreed, with_neighbours
from edgeinfinite.models.texts import excerpt
from edgeinfinite.text_file import read_text_file
from edgeinfinite.training.observe import Observation, observe

SHARE = 0.05
"""Of the tokens of ordinary text so many rank higher. Measured in docs/recall.md."""


def fit_worth(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    scorers: Sequence[RetentionScorer],
    *,
    tokens: int,
    passes: int,
    seed: int,
    progress: Callable[[int], None],
) -> None:
    """Sets `worth_keeping` of all heads that score, by texts in which nothing is planted.

    Args:
        model: the backbone.
        tokenizer: its own.
        documents: excerpts are drawn from them.
        scorers: of all layers, otherwise finished; changed in place.
        tokens: T of a pass.
        passes: how many.
        seed: which documents, and which excerpts.
        progress: called with the number of passes done.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    scoring = {layer: scorer for layer, scorer in enumerate(scorers) if not scorer.by_age}
    random = np.random.default_rng(seed)
    tables, places = rotary_tables(model, tokens), torch.arange(tokens)
    chosen = random.choice(len(documents), passes, replace=passes > len(documents))
    ranks: list[torch.Tensor] = []
    for index in chosen:
        text = excerpt(read_text_file(documents[index]), tokenizer, tokens, random)
        own: dict[int, torch.Tensor] = {}

        def keep(layer: int, of: Observation, own: dict[int, torch.Tensor] = own) -> None:
            if layer in scoring:
                raw = tables[layer].shift_back(of.key, places)
                own[layer] = scoring[layer](raw[None], of.value[None])

        observe(model, text, tokens, 1, keep)
        heads = agreed([own[layer] for layer in scoring], list(scoring.values()))
        ranks.append(torch.stack([with_neighbours(head)[0] for head in heads]))
        progress(len(ranks))
    worth = torch.cat(ranks, dim=-1).quantile(1 - SHARE, dim=-1, keepdim=True)
    for scorer, least in zip(scoring.values(), worth, strict=True):
        scorer.worth_keeping.copy_(torch.where(scorer.scoring.bool(), least, EVERYTHING))
