"""Training the retention scorer: regression on the attention that later text pays.

For every cached pair the target is the logarithm of the attention that queries of its KV head,
`gap` or more tokens later, paid to it with full attention, in texts with planted facts that are
asked for at the end. Letters: L layers, K KV heads, n pairs, D head dimension.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from transformers import PreTrainedModel

from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.artifact.tensors import Heads
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of, check_supported
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.recall.scorer import RetentionScorer
from edgeinfinite.models.recall.scorer_file import save_scorers
from edgeinfinite.training.scorer.base import Base, read_base
from edgeinfinite.training.scorer.composed import TextSource
from edgeinfinite.training.scorer.fit import fit_networks
from edgeinfinite.training.scorer.head_weights import fit_head_weights
from edgeinfinite.training.scorer.held_out import held_out_score, score_of
from edgeinfinite.training.scorer.keep_threshold import fit_keep_thresholds, ordinary_texts
from edgeinfinite.training.scorer.observe import watched_layers
from edgeinfinite.training.scorer.options import ScorerOptions
from edgeinfinite.training.scorer.pairs import Pairs, collect_pairs
from edgeinfinite.training.scorer.pass_files import PassFiles, pass_files
from edgeinfinite.training.scorer.questions.sources import question_files, question_sources
from edgeinfinite.training.scorer.repetition import Repeated, collect_repeated, fit_repeats
from edgeinfinite.training.scorer.retrieval_heads import (
    planted_attention,
    retrieval_heads,
    retrieval_layers,
)
from edgeinfinite.training.texts import find_documents, split_documents
from edgeinfinite.version import __version__

Progress = Callable[[str, float], None]
"""Called with what is being done, and the share that is done."""

_ON_THE_CARD = (
    "passes",
    "repeated_passes",
    "retrieval_share",
    "emphasis",
    "steps",
    "batch",
    "learning_rate",
    "seed",
)
_EVERY_SLOT = 2**20
"""More slots than any cache has."""

_ORDINARY_PASSES = 8
_WATCHED, _FITTED = 0.75, 0.9
"""Shares of the time after which these steps are done."""


def train_scorer(options: ScorerOptions, progress: Progress) -> dict[str, float]:
    """Collects, fits, measures on held-out documents, and writes the file.

    Returns:
        See `held_out_score`, and `planted_in_retrieval_heads`: how much of the attention paid to
        planted facts of held-out documents is paid by the heads that keep what scores highest.

    Raises:
        EdgeInfiniteError: the model isn't supported, or the data is missing or too short.
    """
    trained, held_out = split_documents(find_documents(options.data), options.hold_out)
    progress("loading the checkpoint", 0.0)
    backbone = load_backbone(options.model, pre_tokenizer=options.pre_tokenizer)
    check_supported(backbone.model)
    trained_positions = backbone.model.config.get_text_config().max_position_embeddings
    if options.watched.tokens > trained_positions:
        raise EdgeInfiniteError(
            f"{options.watched.tokens} tokens are more than the {trained_positions} positions that "
            f"{backbone.name} was trained on; give fewer"
        )
    _refuse_without_recall(backbone)
    ordinary = ordinary_texts(  # before the training: a document that is too short is found at once
        backbone.tokenizer, trained, options.watched.tokens, _ORDINARY_PASSES, options.seed
    )
    sources = question_sources(options.questions, trained, bool(backbone.tokenizer.chat_template))
    held_and_trained = {"trained": trained, "held out": held_out}
    base = read_base(options.base, backbone) if options.base is not None else None
    with pass_files(options.output, _subject(backbone, options, held_and_trained)) as files:
        repeated = _repeat(backbone, trained, options, progress, files, sources)
        if base is not None and repeated is not None:
            return _add_repeats(backbone, base, repeated, options, progress)
        pairs = watch(backbone, trained, held_out, options, progress, files, sources)
        card = {
            "trained_on": json.dumps([path.name for path in trained]),
            "questions": json.dumps([path.name for path in question_files(options.questions)]),
            "held_out_documents": json.dumps([path.name for path in held_out]),
        }
        return _fit_and_save(backbone, *pairs, repeated, ordinary, card, options, progress)


def _subject(
    backbone: Backbone, options: ScorerOptions, documents: dict[str, list[Path]]
) -> dict[str, object]:
    """Everything that decides what is watched; files by their sizes and times."""
    files = documents | {"questions": question_files(options.questions)}
    return {
        "edgeinfinite": __version__,
        "weights": backbone.weights_sha256,
        "watched": asdict(options.watched),
        "passes": [
            options.passes,
            options.held_out_passes,
            options.repeated_passes,
            options.seed,
        ],
        **{
            name: [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
            for name, paths in files.items()
        },
    }


def _fit_and_save(
    backbone: Backbone,
    fitted: Pairs,
    measured: Pairs,
    repeated: Repeated | None,
    ordinary: list[list[int]],
    card: dict[str, str],
    options: ScorerOptions,
    progress: Progress,
) -> dict[str, float]:
    """Fits scorers, heads and thresholds, writes the file with its card, returns the metrics."""
    watched = watched_layers(backbone.model)
    scorers = fit_scorers(fitted, options, progress)
    metrics = held_out_score(scorers, measured)
    layers = len(architecture_of(backbone.model).layers)
    share = min(1.0, options.retrieval_share * layers / len(watched))
    retrieval = retrieval_heads(fitted, share)
    paid = planted_attention(measured)
    is_retrieval = torch.zeros_like(paid, dtype=torch.bool)
    is_retrieval[tuple(zip(*retrieval, strict=True))] = True
    metrics["planted_in_retrieval_heads"] = float(
        paid[is_retrieval].sum() / paid.sum().clamp(min=1e-9)
    )
    _bring_together(scorers, is_retrieval, fitted)
    if repeated is not None:
        metrics["repeated_correlation"] = fit_repeats(
            scorers, repeated, options, _fitting(progress, _FITTED)
        )
    settings = {name: getattr(options, name) for name in _ON_THE_CARD}
    card |= {
        "edgeinfinite": __version__,
        "backbone": backbone.name,
        "weights_sha256": backbone.weights_sha256,
        "options": json.dumps(settings | asdict(options.watched)),
        "held_out_score": json.dumps(metrics),
        "retrieval_heads": json.dumps([(watched[layer], head) for layer, head in retrieval]),
        "retrieval_layers": json.dumps(
            [watched[layer] for layer in retrieval_layers(fitted, share)]
        ),
    }
    rule = _rank_rule(len(watched), layers)
    scorers = _of_every_layer(scorers, watched, architecture_of(backbone.model).every_heads)
    with _fast(backbone.model) as model:
        fit_keep_thresholds(
            model,
            ordinary,
            scorers,
            rule,
            lambda done: progress(
                "reading ordinary text", _FITTED + (1 - _FITTED) * done / _ORDINARY_PASSES
            ),
        )
    _save(options.output, scorers, rule, card)
    return metrics


def _rank_rule(watched: int, layers: int) -> RankRule:
    """How the slots are filled: all of them by rank where other layers have sliding windows.

    There, what is near is held by those layers, bit for bit. Elsewhere the recalling layers have to
    hold it, too (experiments/recall.md).

    Args:
        watched: number of layers that recall.
        layers: of the backbone.
    """
    return RankRule() if watched == layers else RankRule(ranked_slots=_EVERY_SLOT)


def _refuse_without_recall(backbone: Backbone) -> None:
    """Refuses a model without layers that can recall, or whose such layers differ in heads."""
    watched, heads = watched_layers(backbone.model), architecture_of(backbone.model).every_heads
    if len({heads[layer] for layer in watched}) > 1:
        raise EdgeInfiniteError(
            f"the layers of {backbone.name} that see everything differ in heads or their size, and "
            "one scorer network can't read them all; export it without a scorer"
        )
    if not watched:
        raise EdgeInfiniteError(
            f"every layer of {backbone.name} has a sliding window, so nothing can be recalled; "
            "export it without a scorer"
        )


def _of_every_layer(
    scorers: Sequence[RetentionScorer], watched: Sequence[int], heads: Sequence[Heads]
) -> list[RetentionScorer]:
    """The scorers of the watched layers among those of all layers, which score nothing."""
    width = scorers[0].w1.shape[-1]
    of_layer = dict(zip(watched, scorers, strict=True))
    every = []
    for layer, size in enumerate(heads):
        scorer = of_layer.get(layer) or RetentionScorer(*size, width)
        if layer not in of_layer:
            torch.nn.init.zeros_(scorer.w1)
            scorer.make_streaming(torch.ones(size.kv_heads, dtype=torch.bool))
        every.append(scorer.requires_grad_(False))
    return every


def _bring_together(
    scorers: Sequence[RetentionScorer], is_retrieval: torch.Tensor, pairs: Pairs
) -> None:
    """Brings scores to one scale, makes streaming heads of the others, and fits the head weights.

    Args:
        scorers: fitted; changed in place.
        is_retrieval: `[L, K]` bool.
        pairs: what they were fitted to.
    """
    scores = torch.zeros(*is_retrieval.shape, len(pairs.planted))
    for layer, (scorer, inputs) in enumerate(zip(scorers, pairs.inputs, strict=True)):
        scorer.standardise(*inputs[:, ~pairs.planted].float().chunk(2, dim=-1))
        scorer.make_streaming(~is_retrieval[layer])
        scores[layer] = score_of(scorer, inputs)
    weights = torch.zeros(is_retrieval.shape)
    weights[is_retrieval] = fit_head_weights(scores[is_retrieval], pairs.planted)
    for scorer, of_layer in zip(scorers, weights, strict=True):
        scorer.head_weights.copy_(of_layer[:, None])


def watch(
    backbone: Backbone,
    trained: Sequence[Path],
    held_out: Sequence[Path],
    options: ScorerOptions,
    progress: Progress,
    files: PassFiles,
    sources: Sequence[TextSource] = (),
) -> tuple[Pairs, Pairs]:
    """Pairs of the passes to fit to, and of those over held-out documents with planted facts."""

    def pairs(
        documents: Sequence[Path], passes: int, before: int, sources: Sequence[TextSource] = ()
    ) -> Pairs:
        return collect_pairs(
            backbone.model,
            backbone.tokenizer,
            documents,
            options.watched,
            passes,
            options.seed + before,
            lambda done: progress(
                "watching the backbone's attention",
                _watched(options, options.repeated_passes + before + done),
            ),
            files,
            sources,
        )

    with _fast(backbone.model):
        return (
            pairs(trained, options.passes, 0, sources),
            pairs(held_out, options.held_out_passes, options.passes),
        )


def _watched(options: ScorerOptions, done: int) -> float:
    """The share of the time after so many passes."""
    others = 0 if options.base is not None else options.passes + options.held_out_passes
    return _WATCHED * done / (options.repeated_passes + others)


def _repeat(
    backbone: Backbone,
    documents: Sequence[Path],
    options: ScorerOptions,
    progress: Progress,
    files: PassFiles,
    sources: Sequence[TextSource],
) -> Repeated | None:
    """Pairs of texts that the model repeats; None if none are asked for, or none are needed.

    Where layers have sliding windows, the first network ranks every slot (`_rank_rule`).
    """
    hybrid = len(watched_layers(backbone.model)) < len(architecture_of(backbone.model).layers)
    if hybrid and options.base is not None:
        raise EdgeInfiniteError(
            f"{backbone.name} has layers with sliding windows, where the score ranks every slot; "
            "leave --base out"
        )
    if hybrid or not options.repeated_passes:
        return None
    with _fast(backbone.model):
        return collect_repeated(
            backbone.model,
            backbone.tokenizer,
            documents,
            options.watched,
            options.repeated_passes,
            options.seed,
            lambda done: progress("watching repetitions", _watched(options, done)),
            files,
            sources,
        )


def _add_repeats(
    backbone: Backbone, base: Base, repeated: Repeated, options: ScorerOptions, progress: Progress
) -> dict[str, float]:
    """Fits second networks to the scorers of `options.base` and writes them with their card."""
    watched = watched_layers(backbone.model)
    metrics = {
        "repeated_correlation": fit_repeats(
            [base.scorers[layer] for layer in watched], repeated, options, _fitting(progress, 1.0)
        )
    }
    settings = {name: getattr(options, name) for name in _ON_THE_CARD}
    about = {"options": settings | asdict(options.watched), "held_out_score": metrics}
    _save(options.output, base.scorers, base.rule, base.card | {"repeats": json.dumps(about)})
    return metrics


def _save(
    path: Path, scorers: Sequence[RetentionScorer], rule: RankRule, card: dict[str, str]
) -> None:
    """Writes the file; streaming heads keep what is newest, so they need no second network."""
    for scorer in scorers:
        if scorer.streams:
            scorer.repeats = None
    save_scorers(path, [scorer.half() for scorer in scorers], rule, card)


@contextmanager
def _fast(model: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """The model in bfloat16 where that is much faster; attention is only an estimate here."""
    if torch.cpu._is_avx512_bf16_supported():
        model.bfloat16()
    try:
        yield model
    finally:
        model.float()


def fit_scorers(pairs: Pairs, options: ScorerOptions, progress: Progress) -> list[RetentionScorer]:
    """One scorer for each layer; see `fit_networks`."""
    _, kv_heads, _, width = pairs.inputs.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        scorers = [RetentionScorer(kv_heads, width // 2) for _ in pairs.inputs]
    fit_networks(scorers, pairs.inputs, pairs.paid["largest"], options, _fitting(progress, _FITTED))
    return scorers


def _fitting(progress: Progress, end: float) -> Callable[[float, float], None]:
    def show(done: float, loss: float) -> None:
        progress(f"fitting, loss {loss:.3f}", _WATCHED + (end - _WATCHED) * done)

    return show
