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

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.rotary import RotaryTable
from edgeinfinite.training.scorer.composed import Composed, TextSource
from edgeinfinite.training.scorer.facts import draw_facts
from edgeinfinite.training.scorer.observe import Observation, observe
from edgeinfinite.training.scorer.options import PassOptions
from edgeinfinite.training.scorer.pass_files import PassFiles
from edgeinfinite.training.texts import encode, excerpt

_PAID = ("largest", "asked")
_FLOOR = 1e-6
"""Attention below it counts as none: its logarithm says nothing about what is worth keeping."""

_FIRST_FACT = 16
"""Tokens of a text before its first fact, at least."""

_LEAST_BODY = -(-10 * (_FIRST_FACT + 1) // 7)
"""Tokens of a text beside its facts and their questions: 70 % of them reach beyond the first."""


@dataclass(frozen=True)
class Pairs:
    """Cached pairs of all passes, and what later text paid to them.

    L here are the layers that were watched (`observe.watched_layers`).

    Args:
        inputs: `[L, K, n, 2D]` float16: the un-rotated key, then the value.
        paid: for `largest` and `asked`, `[L, K, n]` float32: the logarithm of what
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
    files: PassFiles,
    sources: Sequence[TextSource] = (),
) -> Pairs:
    """Watches the backbone read `passes` texts, apart from those that were watched before.

    Args:
        model: the backbone.
        tokenizer: its own.
        documents: excerpts are drawn from them.
        options: see there.
        passes: how many.
        seed: of everything random.
        progress: called with the number of passes done.
        files: what is watched; a seed's passes have names of their own.
        sources: texts with questions that people asked, one after the other.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    random = np.random.default_rng(seed)
    texts = [read_text_file(path) for path in documents]
    order = [int(index) for _ in range(passes) for index in random.permutation(len(texts))]
    positions = model.config.get_text_config().max_position_embeddings
    tables = rotary_tables(model, min(2 * options.tokens, positions))
    names = [f"{seed}-{index}" for index in range(passes)]
    for index, name in enumerate(names):
        # The text is composed all the same: what chance gives the next one depends on it.
        source = options.source_of_pass(index, len(sources))
        if source is None:
            document = options.document_of_pass(index, len(sources))
            tokens, facts = options.of_pass(document, positions)
            text = compose(texts[order[document]], tokenizer, tokens, facts, random)
        else:
            tokens, _ = options.of_pass(index // options.asked, positions)
            text = sources[source].compose(tokenizer, tokens, random)
        places, planted = _places(text, options, random)
        if not files.has(name):
            watched = watched_pairs(model, text, places, tables, options.gap)
            files.save(name, watched | {"planted": planted})
        progress(index + 1)
    return _joined(files, names)


def watched_pairs(
    model: PreTrainedModel,
    text: Composed,
    places: torch.Tensor,
    tables: Sequence[RotaryTable],
    gap: int,
) -> dict[str, torch.Tensor]:
    """The pairs at some places of one text, and what was paid to them.

    Args:
        model: the backbone.
        text: T tokens.
        places: `[n]` int64, their positions.
        tables: RoPE of every layer.
        gap: see `observe`.

    Returns:
        `inputs` `[L, K, n, 2D]` float16, and what `Pairs.paid` has, `[L, K, n]` each.
    """
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def keep(layer: int, of: Observation) -> None:
        raw = tables[layer].shift_back(of.key[:, places], places)
        each = torch.stack([getattr(of, name)[:, places] for name in _PAID])
        seen.append((torch.cat((raw, of.value[:, places]), dim=-1).half(), each))

    observe(model, text.tokens, gap, text.asking, keep)
    each = torch.stack([each for _, each in seen], dim=1).float().clamp(min=_FLOOR).log()
    inputs = torch.stack([pairs for pairs, _ in seen])
    return dict(zip(_PAID, each, strict=True)) | {"inputs": inputs}


def _joined(files: PassFiles, names: Sequence[str]) -> Pairs:
    """The pairs of all passes; `inputs`, by far the largest, is mapped from a file."""
    parts = [files.load(name, without="inputs") for name in names]
    counts = torch.tensor([len(part["planted"]) for part in parts])
    return Pairs(
        files.joined(names, "inputs", int(counts.sum())),
        {name: torch.cat([part[name] for part in parts], dim=2) for name in _PAID},
        torch.cat([part["planted"] for part in parts]),
        torch.arange(len(parts)).repeat_interleave(counts),
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
        EdgeInfiniteError: the document is too short, or `length` for so many facts.
    """
    drawn = draw_facts(facts, random)
    asked = [drawn[index] for index in random.permutation(len(drawn))]
    separator = "\n\n" if random.random() < 0.5 else "\n"
    end = encode("".join(f"{separator}{f.question}{f.answer}." for f in asked), tokenizer)
    around = ("\n\n", "\n\n") if random.random() < 0.5 else (" ", " ")
    statements = [encode(f"{around[0]}{fact.statement}{around[1]}", tokenizer) for fact in drawn]
    taken = len(end) + sum(map(len, statements))
    if statements and length - taken < _LEAST_BODY:
        raise EdgeInfiniteError(
            f"{length:,} tokens of a text have no room for {facts} facts with their questions, "
            f"which take {taken:,}; give more --tokens or fewer --facts"
        )
    body = excerpt(document, tokenizer, length - taken, random)
    cuts = sorted(int(random.integers(_FIRST_FACT, len(body) * 7 // 10)) for _ in statements)
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
