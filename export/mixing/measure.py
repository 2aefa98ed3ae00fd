"""For every weight and every format of a back end the loss that it costs and its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.backend import Backend
from edgeinfinite.export.mixing.calibration import READING, calibration_texts, read_texts
from edgeinfinite.export.mixing.curvature import Progress, WeightStatistics
from edgeinfinite.export.mixing.knapsack import Choice
from edgeinfinite.export.mixing.ordering import can_be_ordered, order_inputs
from edgeinfinite.export.mixing.scaling import scale_inputs
from edgeinfinite.export.mixing.stream import shares_inputs
from edgeinfinite.export.recipes import Recipe, WeightFormat, computed_bits
from edgeinfinite.models.attach import config_of
from edgeinfinite.models.checkpoint.loading import Backbone
from edgeinfinite.models.experts import as_rows, calls_interface
from edgeinfinite.models.weights.grouped_weight import GroupedWeight

AS_LOADED = "as in the checkpoint"
"""The choice of taking over the integers that the checkpoint has."""

Row = dict[str, Any]
"""`weight`, and `format`, `bytes` and `loss` of a `Choice`."""

Rounded = Iterator[tuple[int, tuple[torch.Tensor, int]]]
"""Parts of a weight: the first row, the rows as the artifact would compute with them, their bytes.
"""

_PART = 2**22
"""Numbers of a weight that are rounded at a time: an embedding can take half of a model's memory,
and choosing its codes some ten times as much."""

Choices = dict[str, list[Choice]]
Statistics = dict[str, WeightStatistics]


def measure(
    backbone: Backbone,
    backend: Backend,
    recipe: Recipe,
    statistics: Callable[[], Statistics],
    progress: Progress,
    *,
    known: Sequence[Row] = (),
    save: Callable[[Row], None] = lambda _: None,
) -> Choices:
    """Rounds every weight to every format, and asks the statistics what the error costs.

    Args:
        backbone: loaded; its model attached or not.
        backend: whose formats.
        recipe: what it leaves alone isn't measured.
        statistics: of the model, see `collect`; called when the first weight needs them.
        progress: told what is done.
        known: rows of a run before, see `Row`; they aren't measured again.
        save: is given every new row.
    """
    choices: Choices = {}
    done = {(row["weight"], row["format"]): _choice(row) for row in known}
    gathered: Statistics | None = None
    weights, alike = list(_weights(backbone, recipe)), shares_inputs(backbone.model)
    for index, (name, owner) in enumerate(weights):
        progress(f"measuring {name}", index / len(weights))
        for label, rounded in _candidates(backbone, backend, name, owner):
            choice = done.get((name, label))
            if choice is None:
                gathered = gathered or statistics()
                weight = _matrix(owner, backbone.model.get_parameter(name)).detach().float()
                loss, size = 0.0, 0
                for start, (values, taken) in rounded():
                    error = values - weight[start : start + len(values)]
                    loss, size = loss + gathered[name].loss(error, start), size + taken
                    backbone.release()
                choice = Choice(label, size, loss)
                save(_row(name, choice))
            sums = backend.menu.offsets_read // alike.get(id(backbone.model.get_parameter(name)), 1)
            choice = replace(choice, read=_bytes_read(backbone, name, choice, sums))
            choices.setdefault(name, []).append(choice)
    return choices


def _row(name: str, choice: Choice) -> Row:
    return {
        "weight": name,
        "format": choice.format,
        "bytes": choice.bytes,
        "loss": choice.loss,
    }


def _bytes_read(backbone: Backbone, name: str, choice: Choice, sums: int) -> int:
    """What decoding a token reads of a weight: all of it, but only a row of an embedding.

    Args:
        backbone, name, choice: the weight and its format.
        sums: added where it has offsets.
    """
    weight = backbone.model.get_parameter(name)
    head = backbone.model.get_output_embeddings().weight
    if weight is backbone.model.get_input_embeddings().weight and weight is not head:
        return 0
    loaded = choice.format == AS_LOADED
    form = None if loaded else WeightFormat.parse(choice.format)
    bits = backbone.integers[name].bits if form is None else form.bits
    more = sums if form is not None and form.offsets else 0
    return choice.bytes + weight.numel() * (computed_bits(bits) - bits) // 8 + more


def _choice(row: Row) -> Choice:
    return Choice(row["format"], row["bytes"], row["loss"])


def _weights(backbone: Backbone, recipe: Recipe) -> Iterator[tuple[str, nn.Module]]:
    for name, _ in backbone.model.named_parameters():
        owner = backbone.model.get_submodule(name.rpartition(".")[0])
        known = isinstance(owner, nn.Linear | nn.Embedding) or calls_interface(owner)
        if recipe.format_of(name) and known:
            yield name, owner


def _matrix(owner: nn.Module, weight: torch.Tensor) -> torch.Tensor:
    """`[O, I]`; of experts the rows of one after the other."""
    return as_rows(owner, weight) if calls_interface(owner) else weight


def _candidates(
    backbone: Backbone, backend: Backend, name: str, owner: nn.Module
) -> Iterator[tuple[str, Callable[[], Rounded]]]:
    """Labels, and functions that give the rounded weight and its bytes."""
    weight = _matrix(owner, backbone.model.get_parameter(name))
    # Experts have no place for offsets, as embeddings haven't.
    embedding = isinstance(owner, nn.Embedding) or calls_interface(owner)
    integers = backbone.integers.get(name)
    if integers is not None and backend.held(integers.rows(slice(1)), embedding=embedding):
        yield AS_LOADED, partial(_held, backend, integers, embedding)
    for form in _formats(backbone, backend, weight, embedding=embedding):
        if weight.shape[1] % form.group == 0:
            yield str(form), partial(_rounded, backend, weight, form, embedding)


def _formats(
    backbone: Backbone, backend: Backend, weight: torch.Tensor, *, embedding: bool
) -> Iterator[WeightFormat]:
    """What a weight may have, also with more bits for its first inputs."""
    inputs = weight.shape[1]
    group = WeightFormat(4).group
    if embedding:
        head = weight is backbone.model.get_output_embeddings().weight
        ordered = backend.menu.leading_shares and can_be_ordered(backbone.model, backbone.integers)
        # Rounding an LM head's inputs costs three times as much with one scale for all of them.
        first = group if head and ordered and inputs > group else 0
        yield from (replace(form, leading=first) for form in backend.menu.embedding_formats)
        return
    yield from backend.menu.formats
    leading = {round(share * inputs / group) * group for share in backend.menu.leading_shares}
    for form in backend.menu.formats:
        if form.bits == 4:
            yield from (replace(form, leading=first) for first in sorted(leading - {0, inputs}))


def _held(backend: Backend, integers: GroupedWeight, embedding: bool) -> Rounded:
    for start in _starts(integers.codes):
        part = integers.rows(slice(start, start + _rows(integers.codes)))
        held = backend.held(part, embedding=embedding)
        assert held is not None
        yield start, held


def _rounded(
    backend: Backend, weight: torch.Tensor, form: WeightFormat, embedding: bool
) -> Rounded:
    for start in _starts(weight):
        part = weight.detach()[start : start + _rows(weight)]
        yield start, backend.rounded(part, form, embedding=embedding)


def _starts(weight: torch.Tensor) -> range:
    return range(0, len(weight), _rows(weight))


def _rows(weight: torch.Tensor) -> int:
    """Rows of one part."""
    return max(1, _PART // weight.shape[1])


class Rows:
    """A file of measured rows that a killed run leaves behind, and the next one goes on with.

    Args:
        path: the file; its first line says what was measured.
        subject: the checkpoint's digest, the back end and the text.
    """

    def __init__(self, path: Path, subject: dict[str, str]) -> None:
        self._path = path
        self.rows: list[Row] = []
        if path.is_file():
            first, *rest = path.read_text(encoding="utf-8").splitlines() or ["{}"]
            if json.loads(first) != subject:
                raise EdgeInfiniteError(
                    f"{path} is of another model, back end, text or version; remove it or name "
                    "another"
                )
            self.rows = [json.loads(line) for line in rest if line.endswith("}")]
        self._write("w", json.dumps(subject), *map(json.dumps, self.rows))

    def add(self, row: Row) -> None:
        """Appends a row."""
        self.rows.append(row)
        self._write("a", json.dumps(row))

    def _write(self, mode: str, *lines: str) -> None:
        with self._path.open(mode, encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


def subject_of(backbone: Backbone, backend: Backend, text: str) -> dict[str, str]:
    """What rows are about, for their file's first line."""
    return {
        "model": backbone.name,
        "weights_sha256": backbone.weights_sha256,
        "backend": backend.name,
        "text_sha256": _digest(text),
        "reading": READING,
    }


def statistics_of(
    backbone: Backbone, backend: Backend, text: str, progress: Progress, rows: Path | None = None
) -> Callable[[], Statistics]:
    """Collects them once, when they are first asked for, and scales and orders the model by them.

    Args:
        backbone: attached; its model is changed then (`scaling.py`, `ordering.py`), it computes the
            same function.
        backend: whose formats its channels are ordered for.
        text: for calibration.
        progress: told what is done.
        rows: the report's file; what was read of the text is kept beside it, so that a killed run
            goes on, and an export after a report doesn't read again.
    """
    known: list[Statistics] = []
    texts = calibration_texts(backbone.tokenizer, text)
    subject = {
        "weights_sha256": backbone.weights_sha256,
        "text_sha256": _digest(text),
        "reading": READING,
        "geometry": json.dumps(config_of(backbone.model).geometry.to_dict()),
    }
    kept = rows and rows.with_name(f"{rows.name}.statistics")

    def gathered() -> Statistics:
        if not known:
            memory = backbone.memory
            found = read_texts(
                backbone.model, texts, progress, kept=kept, subject=subject, memory=memory
            )
            known.append(found)
            scale_inputs(backbone.model, found, backbone.integers)
            if backend.menu.leading_shares:
                order_inputs(backbone.model, found, backend, backbone.integers)
            backbone.release()
        return known[0]

    return gathered


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
