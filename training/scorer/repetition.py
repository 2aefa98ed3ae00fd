"""What a repetition of the text asks for: what a scorer's second network is fitted to.

The model reads a text and then the same text again, after a request to repeat it. What the second
reading attends to is what the model needs in order to tell what stood there, whoever asks
(KVzip, arXiv 2505.23416).

Letters: L layers, K KV heads, n pairs, D head dimension.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.files import read_text_file
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.recall.scorer import REPEATS_WIDTH, RetentionScorer
from edgeinfinite.training.scorer.composed import Composed, TextSource
from edgeinfinite.training.scorer.fit import fit_networks
from edgeinfinite.training.scorer.held_out import score_of
from edgeinfinite.training.scorer.options import PassOptions, ScorerOptions
from edgeinfinite.training.scorer.pairs import compose, watched_pairs
from edgeinfinite.training.scorer.pass_files import PassFiles
from edgeinfinite.training.texts import encode, excerpt

REQUEST = "\n\nRepeat the previous context:\n"

_FITTED = 7 / 8
"""Share of the passes that are fitted to; the others measure the fit."""

_LEAST_MEASURED = 16
"""Pairs that a correlation needs."""

_CODE_BYTES = (40_000, 250_000)
"""Sizes of the library's files that are read: longer than a pass, and no tables."""


@dataclass(frozen=True)
class Repeated:
    """Pairs of texts that were repeated.

    Args:
        inputs: `[L, K, n, 2D]` float16, as in `Pairs`.
        largest: `[L, K, n]` float32, the logarithm of the largest later attention.
        fitted: the first so many pairs are fitted to; the others measure the fit.
    """

    inputs: torch.Tensor
    largest: torch.Tensor
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
    """Watches the backbone repeat texts, apart from those that were watched before.

    Documents with planted facts, documents as they are, texts of `sources` without their questions,
    and source code of Python's library take turns.

    Args:
        model, tokenizer, documents, passes, seed, progress, files, sources: see `collect_pairs`.
        options: `tokens` of a pass, the repetition included; the other fields as for `of_pass`.

    Raises:
        EdgeInfiniteError: a document is too short, or isn't UTF-8.
    """
    random = np.random.default_rng(seed)
    request = encode(REQUEST, tokenizer)
    length = (options.tokens - len(request)) // 2
    kinds = composers(documents, tokenizer, length, options.facts, sources)
    tables = rotary_tables(model, options.tokens)
    names = [f"repeated-{seed}-{index}" for index in range(passes)]
    for index, name in enumerate(names):
        body = kinds[index % len(kinds)](index // len(kinds), random)[:length]
        chosen = random.permutation(len(body))[: options.kept_pairs]
        places = torch.tensor(sorted(chosen.tolist()))
        if not files.has(name):
            text = Composed(body + request + body, [], len(body))
            files.save(name, watched_pairs(model, text, places, tables, options.gap))
        progress(index + 1)
    largest = [files.load(name, without="inputs")["largest"] for name in names]
    counts = [part.shape[2] for part in largest]
    fitted = sum(counts[: max(1, round(_FITTED * passes))])
    inputs = files.joined(names, "inputs", sum(counts))
    return Repeated(inputs, torch.cat(largest, dim=2), fitted)


def fit_repeats(
    scorers: Sequence[RetentionScorer],
    repeated: Repeated,
    options: ScorerOptions,
    progress: Callable[[float, float], None],
) -> float:
    """Gives every scorer a second network; see `fit_networks`.

    Returns:
        The mean correlation, over the heads, of what the networks say with the logarithm of the
        attention, in the passes that weren't fitted to; nan if all were.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        networks = [scorer.add_repeats(REPEATS_WIDTH) for scorer in scorers]
    inputs, largest = repeated.inputs, repeated.largest
    first, rest = slice(repeated.fitted), slice(repeated.fitted, None)
    fit_networks(networks, inputs[:, :, first], largest[..., first], options, progress)
    found = [score_of(n, of[:, rest]) for n, of in zip(networks, inputs, strict=True)]
    told, wanted = torch.stack(found).flatten(0, 1), largest[..., rest].flatten(0, 1)
    if told.shape[1] < _LEAST_MEASURED:
        return float("nan")
    told, wanted = (t - t.mean(1, keepdim=True) for t in (told, wanted))
    return float(torch.cosine_similarity(told, wanted, dim=1).mean())


Composer = Callable[[int, np.random.Generator], list[int]]
"""Draws the tokens of a kind's text number so and so."""


def composers(
    documents: Sequence[Path],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    facts: int,
    sources: Sequence[TextSource],
) -> list[Composer]:
    """One composer for each kind of text, in the order in which they take turns.

    Args:
        documents: excerpts are drawn from them, with planted facts and without.
        tokenizer: the backbone's.
        length: tokens of a text, or a few more.
        facts: number of planted facts.
        sources: texts with questions, which are left out, one after the other.
    """
    texts = [read_text_file(path) for path in documents]
    code = library_files()

    def planted(_: int, random: np.random.Generator) -> list[int]:
        text = texts[int(random.integers(len(texts)))]
        composed = compose(text, tokenizer, length, facts, random)
        return composed.tokens[: len(composed.tokens) - composed.asking]

    def plain(_: int, random: np.random.Generator) -> list[int]:
        return excerpt(texts[int(random.integers(len(texts)))], tokenizer, length, random)

    def asked(index: int, random: np.random.Generator) -> list[int]:
        composed = sources[index % len(sources)].compose(tokenizer, length * 5 // 4, random)
        return composed.tokens[: len(composed.tokens) - composed.asking]

    def library(_: int, random: np.random.Generator) -> list[int]:
        path = code[int(random.integers(len(code)))]
        return excerpt(read_text_file(path), tokenizer, length, random)

    found: list[Composer] = [planted, plain]
    return found + [asked] * bool(sources) + [library] * bool(code)


def library_files() -> list[Path]:
    """Source files of this Python's library; empty where it has none."""
    least, most = _CODE_BYTES
    folder = Path(sysconfig.get_paths()["stdlib"])
    return [path for path in sorted(folder.glob("*.py")) if least < path.stat().st_size < most]
