"""`evaluate perplexity`: the loss of every token of long texts, averaged by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD, ArtifactReader
from edgeinfinite.evaluation.methods import GATE_CONTROLS, Reader, check_methods, reads_whole
from edgeinfinite.evaluation.options import PerplexityOptions, Setting
from edgeinfinite.evaluation.results import Progress, Results, Row
from edgeinfinite.files import read_text_file
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.runtime_py.engines import Engine
from edgeinfinite.training.texts import excerpt


def measure_perplexity(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    setting: Setting,
    options: PerplexityOptions,
    results: Results,
    progress: Progress,
) -> None:
    """Measures every text that isn't in `results` yet, method by method for each document.

    Full attention stops at the end of the backbone's trained positions and has no later bins.

    Args:
        model: the backbone, any dtype; this function attaches it.
        tokenizer: its own.
        documents: texts that no trained part has seen.
        setting: what the methods are built from.
        options: what to measure.
        results: takes the rows.
        progress: see `results.Progress`.

    Raises:
        EdgeInfiniteError: a method is unknown, or a document too short.
    """
    check_methods(options.methods, setting, GATE_CONTROLS)
    chosen = documents[: options.documents]
    for index, path in enumerate(chosen):
        for method in options.methods:
            tokens = _length(method, options, model)
            if results.has(method=method, document=path.name):
                progress("", tokens)
                continue
            text = text_of(path, tokenizer, options)[:tokens]
            other: list[int] = []
            if method == "swapped-memory":
                if len(chosen) < 2:
                    raise EdgeInfiniteError("swapped-memory needs two documents or more")
                other = text_of(chosen[(index + 1) % len(chosen)], tokenizer, options)
            reader = Reader(model, method, setting, tokens, other)
            prediction = reader.read(
                text,
                lambda new, method=method: progress(method, new),  # type: ignore[misc]
            )
            results.add(_bins(prediction.nats, method, path.name, reader.state_bytes, options))


def measure_artifact(
    engine: Engine,
    tokenizer: PreTrainedTokenizerBase,
    documents: Sequence[Path],
    options: PerplexityOptions,
    results: Results,
    progress: Progress,
) -> None:
    """As `measure_perplexity`, of an exported artifact as it is, token by token.

    Args:
        engine: of the artifact.
        tokenizer: its own.
        documents, options, results, progress: see there.
    """
    for path in documents[: options.documents]:
        if results.has(method=ARTIFACT_METHOD, document=path.name):
            progress("", options.tokens)
            continue
        text = text_of(path, tokenizer, options)
        reader = ArtifactReader(engine)
        reader.skip(text[:1], lambda new: progress(ARTIFACT_METHOD, new))
        predicted = reader.read(text[1:], lambda new: progress(ARTIFACT_METHOD, new)).nats
        nats = np.concatenate(([np.nan], predicted))
        results.add(_bins(nats, ARTIFACT_METHOD, path.name, reader.state_bytes, options))


def planned_tokens(documents: int, options: PerplexityOptions, model: PreTrainedModel) -> int:
    """Total number of tokens that the methods read."""
    count = min(documents, options.documents or documents)
    return count * sum(_length(method, options, model) for method in options.methods)


def text_of(
    path: Path, tokenizer: PreTrainedTokenizerBase, options: PerplexityOptions
) -> list[int]:
    """The stretch of a document that all methods read, after BOS where the tokenizer adds one."""
    random = np.random.default_rng(options.seed)
    start = list(tokenizer("").input_ids)
    return (start + excerpt(read_text_file(path), tokenizer, options.tokens, random))[
        : options.tokens
    ]


def _length(method: str, options: PerplexityOptions, model: PreTrainedModel) -> int:
    if reads_whole(method, options.tokens, model):
        return options.tokens
    longest = architecture_of(model).positions
    return max(options.bin_length, longest // options.bin_length * options.bin_length)


def _bins(
    nats: np.ndarray, method: str, document: str, state_bytes: int, options: PerplexityOptions
) -> Iterator[Row]:
    for start in range(0, len(nats), options.bin_length):
        part = nats[start : start + options.bin_length]
        part = part[~np.isnan(part)]  # nothing predicts the first token
        yield {
            "method": method,
            "document": document,
            "bin_start": start,
            "bin_end": min(start + options.bin_length, len(nats)),
            "tokens": len(part),
            "nats_per_token": float(part.mean()),
            "state_bytes": state_bytes,
        }
