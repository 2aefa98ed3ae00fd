"""The examples that a scorer is fitted to: cached pairs, and what later text paid to them.

Letters: L layers, K KV heads, n pairs, T tokens, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.files import read_text_file
from edgeinfinite.models.recall.rotary import rotary_tables
from edgeinfinite.training.scorer.composed import Composed, TextSource
from edgeinfinite.training.scorer.facts import draw_facts
from edgeinfinite.training.scorer.observe import Observation, observe
from edgeinfinite.training.scorer.options import TARGETS, PassOptions
from edgeinfinite.training.texts import encode, excerpt

_FLOOR = 1e-6
"""Attention below it counts as none: its logarithm says nothing about what is worth keeping."""


@dataclass(frozen=True)
class Pairs:
    """Cached pairs of all passes, and what later text paid to them.

    L here are the layers that were watched (`observe.watched_layers`).

    Args:
        inputs: `[L, K, n, 2D]` float16: the un-rotated key, then the value.
        paid: for each name of `TARGETS` and for `asked`, `[L, K, n]` float32: the logarithm of what
            `Observation` has under that name.
        planted: `[n]` bool, tokens of what is asked for: planted facts, sentences that answer.
        text: `[n]` int64, the index of the pair's pass.
    """

    inputs: torch.Tensor
    paid: dict[str, torch.Tensor]
    planted: torch.Tensor
    text: torch.Tensor


def collect_pairs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    options: PassOptions,
    passes: int,
    seed: int,
    progress: Callable[[int], None],
    sources: Sequence[TextSource] = (),
) -> Pairs:
    """Watches the backbone read `passes` texts.

    Args:
        model: the backbone.
        tokenizer: its own.
        documents: excerpts are drawn from them.
        options: see there.
        passes: how many.
        seed: of everything random.
        progress: called with the number of passes done.
        sources: texts with questions that people asked, one after the other.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    random = np.random.default_rng(seed)
    texts = [read_text_file(path) for path in documents]
    order = [int(index) for _ in range(passes) for index in random.permutation(len(texts))]
    positions = model.config.get_text_config().max_position_embeddings
    tables = rotary_tables(model, min(2 * options.tokens, positions))
    inputs: list[torch.Tensor] = []
    paid: dict[str, list[torch.Tensor]] = {name: [] for name in (*TARGETS, "asked")}
    marks: list[torch.Tensor] = []
    for index in range(passes):
        source = options.source_of_pass(index, len(sources))
        if source is None:
            document = options.document_of_pass(index, len(sources))
            tokens, facts = options.of_pass(document, positions)
            text = compose(texts[order[document]], tokenizer, tokens, facts, random)
        else:
            tokens, _ = options.of_pass(index // options.asked, positions)
            text = sources[source].compose(tokenizer, tokens, random)
        places, planted = _places(text, options, random)
        seen: list[tuple[torch.Tensor, torch.Tensor]] = []

        def keep(
            layer: int,
            of: Observation,
            places: torch.Tensor = places,
            seen: list[tuple[torch.Tensor, torch.Tensor]] = seen,
        ) -> None:
            raw = tables[layer].shift_back(of.key[:, places], places)
            each = torch.stack([getattr(of, name)[:, places] for name in paid])
            seen.append((torch.cat((raw, of.value[:, places]), dim=-1).half(), each))

        observe(model, text.tokens, options.gap, text.asking, keep)
        inputs.append(torch.stack([pairs for pairs, _ in seen]))
        each = torch.stack([each for _, each in seen], dim=1).float().clamp(min=_FLOOR).log()
        for name, values in zip(paid, each, strict=True):
            paid[name].append(values)
        marks.append(planted)
        progress(index + 1)
    return Pairs(
        torch.cat(inputs, dim=2),
        {name: torch.cat(parts, dim=2) for name, parts in paid.items()},
        torch.cat(marks),
        torch.cat([torch.full((len(mark),), index) for index, mark in enumerate(marks)]),
    )


def compose(
    document: str,
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    facts: int,
    random: np.random.Generator,
) -> Composed:
    """An excerpt of `length` tokens with facts in its first 70 % and their questions at the end.

    Raises:
        EdgeInfiniteError: the document is too short.
    """
    drawn = draw_facts(facts, random)
    asked = [drawn[index] for index in random.permutation(len(drawn))]
    separator = "\n\n" if random.random() < 0.5 else "\n"
    end = encode("".join(f"{separator}{f.question}{f.answer}." for f in asked), tokenizer)
    around = ("\n\n", "\n\n") if random.random() < 0.5 else (" ", " ")
    statements = [encode(f"{around[0]}{fact.statement}{around[1]}", tokenizer) for fact in drawn]
    body = excerpt(document, tokenizer, length - len(end) - sum(map(len, statements)), random)
    cuts = sorted(int(random.integers(16, len(body) * 7 // 10)) for _ in statements)
    tokens: list[int] = []
    planted: list[int] = []
    before = 0
    for cut, statement in zip(cuts, statements, strict=True):
        tokens += body[before:cut]
        planted += range(len(tokens), len(tokens) + len(statement))
        tokens += statement
        before = cut
    return Composed(tokens + body[before:] + end, planted, len(end))


def _places(
    text: Composed, options: PassOptions, random: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions whose pairs are kept, and which are planted; later queries can reach all."""
    reachable = len(text.tokens) - options.gap
    planted = {place for place in text.planted if place < reachable}
    chosen = set(random.permutation(reachable)[: options.kept_pairs].tolist())
    places = sorted(chosen | planted)
    return torch.tensor(places), torch.tensor([place in planted for place in places])
