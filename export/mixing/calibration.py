"""What of a text is read for calibration, and how a reading that was killed goes on.

Some stretches are read forwards and backwards, with full attention; then longer ones through the
session, so that the statistics of the inputs are those that the artifact will see, with pairs
evicted and recalled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.mixing.curvature import (
    Progress,
    Sums,
    WeightStatistics,
    add_backwards,
    add_session,
)
from edgeinfinite.models.architecture import architecture_of, check_supported
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.models.checkpoint.settings import Judge
from edgeinfinite.models.trained_file import replacing_tensors
from edgeinfinite.models.weights.file_memory import FileMemory
from edgeinfinite.runtime_py.engines.malloc_options import freed_memory_goes_back

SEQUENCES, LENGTH = 24, 512
"""Read forwards and backwards."""

LEAST_SEQUENCES = 8
"""That a text has to have."""

READING = "3"
"""Counts up when the statistics of a text change, so that those of an earlier version aren't used.
"""

LONG_SEQUENCES, LONG_LENGTH = 4, 2048
"""Read through the session. The demo model's cache holds 1,152 tokens."""

_TENSORS = ("inputs", "outputs", "looked_up", "gradients")


@dataclass(frozen=True)
class CalibrationTexts:
    """Stretches of token ids.

    Args:
        short: to be read forwards and backwards.
        long: to be read through the session; none where the model isn't attached.
    """

    short: Sequence[Sequence[int]]
    long: Sequence[Sequence[int]] = ()


def load_in_files(
    source: str, judge: Judge = lambda _: None, pre_tokenizer: str | None = None
) -> Backbone:
    """As `load_backbone`; weights are in memory only while they are used.

    Calibrating touches one weight after the other, so it needs little more than the largest.

    Args:
        source: see `load_backbone`.
        judge: see `Judge`.
        pre_tokenizer: see `load_backbone`.

    Raises:
        EdgeInfiniteError: see `load_backbone` and `architecture_of`.
    """
    memory = FileMemory()
    with freed_memory_goes_back():  # the heap would keep what parsing a file's header took
        backbone = load_backbone(source, memory, judge=judge, pre_tokenizer=pre_tokenizer)
    check_supported(backbone.model)
    with memory.one_layer_at_a_time(backbone.model):
        architecture_of(backbone.model)  # it runs the model, and is asked for again
    return backbone


def calibration_texts(
    tokenizer: PreTrainedTokenizerBase, text: str, *, sequences: int = SEQUENCES
) -> CalibrationTexts:
    """Stretches of the text, evenly spread, as the model reads them.

    Args:
        tokenizer: the model's.
        text: at least `LEAST_SEQUENCES` stretches long.
        sequences: short stretches; fewer of a text that has fewer.

    Raises:
        EdgeInfiniteError: the text is too short.
    """
    start = list(tokenizer("").input_ids)  # BOS, where the tokenizer adds one
    ids = list(tokenizer(text, add_special_tokens=False).input_ids)
    own = LENGTH - len(start)
    needed = min(sequences, LEAST_SEQUENCES) * own
    if len(ids) < needed:
        raise EdgeInfiniteError(
            f"the calibration text has {len(ids):,} tokens; {needed:,} are needed"
        )
    return CalibrationTexts(
        _stretches(ids, start, min(sequences, len(ids) // own), LENGTH),
        _stretches(ids, start, LONG_SEQUENCES, LONG_LENGTH),
    )


def _stretches(ids: list[int], start: list[int], count: int, length: int) -> list[list[int]]:
    own = min(length - len(start), len(ids))
    step = (len(ids) - own) // (count - 1)
    return [start + ids[index * step :][:own] for index in range(count)]


def read_texts(
    model: PreTrainedModel,
    texts: CalibrationTexts,
    progress: Progress,
    *,
    kept: Path | None = None,
    subject: dict[str, str] | None = None,
    memory: FileMemory | None = None,
) -> dict[str, WeightStatistics]:
    """Collects the statistics of all stretches.

    Args:
        model: float32; after `attach` if there are long stretches. It comes back as it was.
        texts: see there.
        progress: told what is done.
        kept: a file that holds what was read so far, written after every stretch; a reading that
            was killed goes on with it. None keeps nothing.
        subject: what `kept` must be about; a file about something else is written anew.
        memory: that the model's weights lie in, and then the statistics; None: the process's own.
    """
    sums = Sums(zeros=memory.zeros if memory else torch.zeros)
    if kept is not None:
        _load(kept, subject or {}, sums)
    readings = [*texts.short, *texts.long]
    total = sum(map(len, readings))
    for index, text in enumerate(readings):
        if index < sums.stretches:
            continue
        progress("reading the calibration text", sum(map(len, readings[:index])) / total)
        with memory.one_layer_at_a_time(model) if memory else nullcontext():
            if index < len(texts.short):
                add_backwards(sums, model, text, seed=index)
            else:
                add_session(sums, model, text)
        if kept is not None:
            _save(kept, sums, subject or {})
    return sums.means() if memory is None else sums.means(memory.release)


def _save(path: Path, sums: Sums, subject: dict[str, str]) -> None:
    """As safetensors; a sum that several weights share is written once."""
    tensors: dict[str, torch.Tensor] = {}
    places: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, statistics in sums.found.items():
        for kind in _TENSORS:
            tensor = getattr(statistics, kind)
            if tensor is None:
                continue
            key = first.setdefault(id(tensor), f"{name}:{kind}")
            places[f"{name}:{kind}"] = key
            tensors[key] = tensor.contiguous()
    forwards = {name: statistics.forwards for name, statistics in sums.found.items()}
    counts = [sums.stretches, sums.backwards]
    about = {"subject": subject, "counts": counts, "forwards": forwards, "places": places}
    with replacing_tensors(path) as unfinished:
        save_file(tensors, unfinished, metadata={"about": json.dumps(about)})


def _load(path: Path, subject: dict[str, str], sums: Sums) -> None:
    """Adds what `_save` wrote to empty sums, unless there is nothing, or about something else."""
    if not path.is_file():
        return
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            if about.get("subject") != subject:
                return
            tensors = {
                key: _copy(file.get_tensor(key), sums if key.endswith(":inputs") else None)
                for key in file.keys()  # noqa: SIM118
            }
    except (SafetensorError, OSError, ValueError):
        return
    sums.stretches, sums.backwards = about["counts"]
    for place, key in about["places"].items():
        name, _, kind = place.rpartition(":")
        setattr(sums.found.setdefault(name, WeightStatistics()), kind, tensors[key])
    for name, count in about["forwards"].items():
        sums.found.setdefault(name, WeightStatistics()).forwards = count


def _copy(tensor: torch.Tensor, sums: Sums | None) -> torch.Tensor:
    """As torch aligns it, or sums would be added up in another order; where `sums` has its own."""
    return tensor.clone() if sums is None else sums.zeros(*tensor.shape).copy_(tensor)
