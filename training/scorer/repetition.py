"""What a text's repetition and answers about it ask for: what a second network is fitted to.

The model reads a text. Then, each apart from the others, it reads the same text again after a
request to repeat it, reads the questions and answers of people where there are some, and answers
requests about documents in its own words. What a repetition attends to is what the model needs in
order to tell what stood there, whoever asks (KVzip, arXiv 2505.23416); answers attend to what
people and models make of a text (experiments/recall.md).

Letters: L layers, K KV heads, n pairs, T tokens, D head dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.models.recall.rotary import RotaryTable, rotary_tables
from edgeinfinite.models.recall.scorer import REPEATS_WIDTH, RetentionScorer
from edgeinfinite.training.scorer.composed import TextSource
from edgeinfinite.training.scorer.fit import fit_networks
from edgeinfinite.training.scorer.held_out import score_of
from edgeinfinite.training.scorer.options import PassOptions, ScorerOptions
from edgeinfinite.training.scorer.own_answers import REQUESTS, framed, own_answers
from edgeinfinite.training.scorer.paid import cached, largest_paid, read_text
from edgeinfinite.training.scorer.pass_files import PassFiles
from edgeinfinite.training.scorer.repeated_texts import RepeatedText, composers
from edgeinfinite.training.texts import encode

REQUEST = "\n\nRepeat the previous context:\n"

_FITTED = 7 / 8
"""Share of the passes that are fitted to; the others measure the fit."""

_LEAST_MEASURED = 16
"""Pairs that a correlation needs."""

_FLOOR = 1e-6
"""Attention below it counts as none, as in `pairs`."""


@dataclass(frozen=True)
class Repeated:
    """Pairs of texts that were repeated and answered about.

    Args:
        inputs: `[L, K, n, 2D]` float16, as in `Pairs`.
        wanted: `[L, K, n]` float32, the mean of two logarithms: of the largest attention that the
            repetition paid, and of the largest that questions and answers paid. What a text's pairs
            have in common is taken out, because only pairs of one text compete for slots.
        fitted: the first so many pairs are fitted to; the others measure the fit.
    """

    inputs: torch.Tensor
    wanted: torch.Tensor
    fitted: int


def collect_repeated(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    options: PassOptions,
    passes: int,
    seed: int,
    progress: Callable[[int], None],
    files: PassFiles,
    sources: Sequence[TextSource] = (),
) -> Repeated:
    """Watches the backbone repeat texts and answer, apart from those that were watched before.

    Documents with planted facts, documents as they are, texts of `sources`, and source code of
    Python's library take turns.

    Args:
        model, tokenizer, documents, passes, seed, progress, files, sources: see `collect_pairs`.
        options: `tokens` of a pass, the repetition included; the other fields as for `of_pass`.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    random = np.random.default_rng(seed)
    length = (options.tokens - len(encode(REQUEST, tokenizer))) // 2
    kinds = composers(documents, tokenizer, length, options.facts, sources)
    tables = rotary_tables(model, options.tokens)
    names = [f"repeated-{seed}-{index}" for index in range(passes)]
    for index, name in enumerate(names):
        turn, kind = divmod(index, len(kinds))
        text = kinds[kind](turn, random)
        chosen = random.permutation(len(text.body))[: options.kept_pairs]
        if not files.has(name):
            request = REQUESTS[turn % len(REQUESTS)]
            places = torch.tensor(sorted(chosen.tolist()))
            watch = _Watch(model, tokenizer, tables, seed + index)
            files.save(name, watch(text, request, places))
        progress(index + 1)
    found = [files.load(name, without="inputs") for name in names]
    counts = [part["repeated"].shape[2] for part in found]
    fitted = sum(counts[: max(1, round(_FITTED * passes))])
    inputs = files.joined(names, "inputs", sum(counts))
    return Repeated(
        inputs, _without_texts([(p["repeated"] + p["asked"]) / 2 for p in found]), fitted
    )


def _without_texts(wanted: Sequence[torch.Tensor]) -> torch.Tensor:
    """Targets of all texts, each head's brought to the same mean in every text.

    Args:
        wanted: `[L, K, n of the text]` each.
    """
    mean = torch.cat(list(wanted), dim=2).mean(2, keepdim=True)
    return torch.cat([of - of.mean(2, keepdim=True) + mean for of in wanted], dim=2)


@dataclass(frozen=True)
class _Watch:
    """One pass of the backbone.

    Args:
        model, tokenizer: the backbone.
        tables: RoPE of every layer.
        seed: of the answers' chance.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    tables: Sequence[RotaryTable]
    seed: int

    def __call__(
        self, text: RepeatedText, request: str, places: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The pairs at some places of a text, and the logarithms of what they were paid.

        Args:
            text: T tokens.
            request: what the model shall answer about a document.
            places: `[n]` int64, positions in the text.

        Returns:
            `inputs` `[L, K, n, 2D]` float16; `repeated` and `asked`, `[L, K, n]` float32.
        """
        before, asked = framed(self.tokenizer, request) if text.document else ([], [])
        cache = read_text(self.model, before + text.body)
        places = places + len(before)
        repeated = self._paid(cache, [encode(REQUEST, self.tokenizer) + text.body])
        told = [self._paid(cache, [text.questions])] if text.questions else []
        if text.document:
            said = own_answers(self.model, self.tokenizer, cache, asked, self.seed)
            told.append(self._paid(cache, said.tolist()))
        logs = [
            of[..., places].clamp(min=_FLOOR).log() for of in (repeated, torch.stack(told).amax(0))
        ]
        return {"inputs": self._inputs(cache, places), "repeated": logs[0], "asked": logs[1]}

    def _paid(self, cache: DynamicCache, later: list[list[int]]) -> torch.Tensor:
        return largest_paid(self.model, cache, torch.tensor(later))

    def _inputs(self, cache: DynamicCache, places: torch.Tensor) -> torch.Tensor:
        return torch.stack(
            [
                torch.cat(
                    (table.shift_back(keys[0][:, places], places), values[0][:, places]), dim=-1
                ).half()
                for table, (keys, values) in zip(self.tables, cached(cache), strict=True)
            ]
        )


def fit_repeats(
    scorers: Sequence[RetentionScorer],
    repeated: Repeated,
    options: ScorerOptions,
    progress: Callable[[float, float], None],
) -> float:
    """Gives every scorer a second network; see `fit_networks`.

    Returns:
        The mean correlation, over the heads, of what the networks say with what is wanted, in the
        passes that weren't fitted to; nan if all were.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        networks = [scorer.add_repeats(REPEATS_WIDTH) for scorer in scorers]
    inputs, wanted = repeated.inputs, repeated.wanted
    first, rest = slice(repeated.fitted), slice(repeated.fitted, None)
    fit_networks(networks, inputs[:, :, first], wanted[..., first], options, progress)
    found = [score_of(n, of[:, rest]) for n, of in zip(networks, inputs, strict=True)]
    told, wanted = torch.stack(found).flatten(0, 1), wanted[..., rest].flatten(0, 1)
    if told.shape[1] < _LEAST_MEASURED:
        return float("nan")
    told, wanted = (t - t.mean(1, keepdim=True) for t in (told, wanted))
    return float(torch.cosine_similarity(told, wanted, dim=1).mean())
