"""Training the memory gate; the backbone's weights don't change by a bit.

Every segment is an optimizer step. The memory that a pass reads was folded from the keys and values
that the same model computed for earlier segments.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import (
    attach,
    attention_layers,
    gate_parameters,
)
from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone, parameters_digest
from edgeinfinite.models.configuration import UNTRAINED_GATE, EdgeInfiniteConfig
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.training.gate.data import Document, Samples, load_documents
from edgeinfinite.training.gate.loss import loss_of, watch_teacher
from edgeinfinite.training.gate.options import GateOptions
from edgeinfinite.training.gate.run import Checkpoint, Metrics
from edgeinfinite.training.gate.score import held_out_losses
from edgeinfinite.training.gate.segments import SegmentState, read_segments
from edgeinfinite.training.gate.steps import GateSteps
from edgeinfinite.training.gate.transfer import transfer
from edgeinfinite.training.texts import split_documents
from edgeinfinite.version import __version__

Progress = Callable[[str, float], None]
"""Called with the name of the current stage and the share that is done."""

_HELD_OUT = 0.25
"""Share of the documents that training leaves alone; the score is measured there."""


def train_gate(options: GateOptions, progress: Progress) -> dict[str, float]:
    """Trains, measures on held-out documents, and writes the file.

    An interrupted run resumes from its checkpoint, with the same result. With several processes
    (`accelerate launch`) each reads its own stretches and gradients are averaged.

    Returns:
        Nats per token of held-out stretches, see `gate_score.SCORES`; empty in all processes but
        the first.

    Raises:
        EdgeInfiniteError: the model isn't supported, the data is missing or too short, the loss
            isn't finite, or this output has the checkpoint of a run with other options.
    """
    accelerator = Accelerator()
    if not accelerator.is_main_process:
        progress = _silent
    checkpoint = Checkpoint(options.output, options.identity())
    state = checkpoint.load()
    progress("loading the checkpoint", 0.0)
    backbone = load_backbone(options.model, pre_tokenizer=options.pre_tokenizer)
    digest = backbone.weights_sha256
    options = options.for_backbone(architecture_of(backbone.model).positions)
    model = _attached(backbone, options, accelerator)
    trained, held_out = _documents(backbone, options, accelerator, progress)
    length = options.lengths.tokens(options.passes)
    measured = Samples(held_out, length, options.seed)
    training = Training(model, options, accelerator, Samples(trained, length, options.seed))
    before = parameters_digest(model, gates=False)
    if state is not None:
        training.restore(state)
    elif options.transfers:
        training.transfer(trained, progress)
        if accelerator.is_main_process:
            checkpoint.save(training.state())
    if accelerator.is_main_process:
        metrics = Metrics(options.output.with_suffix(".jsonl"), training.steps_done)
    while training.samples_done < options.samples:
        rows = list(training.read_samples(progress))
        if accelerator.is_main_process:
            metrics.add(rows)
            checkpoint.save(training.state())
    if parameters_digest(model, gates=False) != before:
        raise EdgeInfiniteError("training changed the backbone; nothing was written, report this")
    if not accelerator.is_main_process:
        return {}
    for parameter in gate_parameters(model):  # measures what will be stored
        parameter.data = parameter.data.half().float()
    losses = held_out_losses(
        model,
        measured,
        options.lengths,
        options.held_out_samples,
        lambda done: progress("measuring on held-out documents", done),
    )
    score = {name: fmean(values) for name, values in losses.items()}
    card = {
        "edgeinfinite": __version__,
        "backbone": backbone.name,
        "weights_sha256": digest,
        "geometry": json.dumps(options.geometry.to_dict()),
        "trained_on": json.dumps([document.name for document in trained]),
        "held_out_documents": json.dumps([document.name for document in held_out]),
        "options": json.dumps(options.card()),
        "tokens": str(training.tokens_done),
        "transfer_explained": json.dumps(training.transfer_explained),
        "held_out_score": json.dumps(score),
        "held_out_stretches": json.dumps(losses),
    }
    save_gate(options.output, attention_layers(model), card)
    metrics.plot(options.plot or options.output.with_suffix(".png"))
    checkpoint.remove()
    return score


def _silent(_what: str, _done: float) -> None:
    """Used in every process but the first, which shows the progress."""


def _attached(
    backbone: Backbone, options: GateOptions, accelerator: Accelerator
) -> PreTrainedModel:
    start = UNTRAINED_GATE if options.start is None else str(options.start)
    new = options.start is None
    config = EdgeInfiniteConfig(
        options.geometry,
        gate=start,
        gate_rank=architecture_of(backbone.model).head_dim if new else None,
        feature_map=options.feature_map,
        opening=options.opening,
        seed=options.seed,
    )
    model = attach(backbone.model, config)
    if new:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            for layer in attention_layers(model):
                layer.memory_gate.begin_with_identity()
    positions = architecture_of(model).positions
    fitting = options.fitting(positions)
    if options.transfers and fitting < 1:
        raise EdgeInfiniteError(
            f"the geometry leaves no room for a transfer within {positions:,} positions; give "
            "--transfer-samples 0"
        )
    if options.loss == "distillation" and options.lengths.tokens(options.passes) > positions + 1:
        raise EdgeInfiniteError(
            f"{options.lengths.tokens(options.passes):,} tokens are more than the {positions:,} "
            f"positions of full attention that distillation needs; give --segments {fitting} or "
            "fewer, a shorter --segment-length, or --loss cross-entropy"
            if fitting > 0
            else f"the geometry leaves no room for distillation within {positions:,} positions; "
            "give --loss cross-entropy"
        )
    if options.dtype == "bfloat16" or (options.dtype == "auto" and _multiplies_bfloat16()):
        model.bfloat16()
        for layer in attention_layers(model):
            layer.memory_gate.float()
    return model.to(accelerator.device)


def _multiplies_bfloat16() -> bool:
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    return torch.cpu._is_avx512_bf16_supported()


def _documents(
    backbone: Backbone, options: GateOptions, accelerator: Accelerator, progress: Progress
) -> tuple[list[Document], list[Document]]:
    """Training and held-out documents; one process tokenises, the others read its cache."""

    def load() -> list[Document]:
        return load_documents(
            options.data,
            backbone.tokenizer,
            options.token_cache,
            lambda name: progress(f"tokenizing {name[:40]}", 0.0),
        )

    with accelerator.main_process_first():
        documents = load()
    _, held_out = split_documents([Path(d.name) for d in documents], _HELD_OUT)
    left = {path.name for path in held_out}
    return [d for d in documents if d.name not in left], [d for d in documents if d.name in left]


class Training:
    """The gates, their optimizer, and the progress of a run.

    Args:
        model: attached; only the gates have gradients.
        options: see there.
        accelerator: connects the processes.
        samples: stretches to read.

    Attributes:
        samples_done: stretches read, by all processes.
        tokens_done: tokens predicted, by all processes.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        options: GateOptions,
        accelerator: Accelerator,
        samples: Samples,
    ) -> None:
        self._model, self._options, self._samples = model, options, samples
        self._accelerator = accelerator
        self._gates: list[Any] = [layer.memory_gate for layer in attention_layers(model)]
        rounds = math.ceil(options.samples / accelerator.num_processes)
        self._steps = GateSteps(self._gates, options.rates, rounds * options.passes, accelerator)
        self.samples_done = self.tokens_done = 0
        self.transfer_explained: list[float] = []

    @property
    def steps_done(self) -> int:
        """Steps of the optimizer."""
        return self._steps.done

    def transfer(self, documents: Sequence[Document], progress: Progress) -> None:
        """The first stage: every process computes it, and all take the first one's result."""
        options, lengths = self._options, self._options.lengths
        segments = min(options.passes, options.fitting(architecture_of(self._model).positions))
        samples = Samples(documents, lengths.tokens(segments), options.seed + 1)
        self.transfer_explained = transfer(
            self._model,
            [
                torch.from_numpy(samples[index]).to(self._accelerator.device)
                for index in range(options.transfers)
            ],
            lengths,
            reads=options.memory,
            epochs=options.transfer_epochs,
            seed=options.seed,
            progress=progress,
        )
        for parameter in self._steps.parameters:
            parameter.grad = None
            parameter.data = broadcast(parameter.data)

    def state(self) -> dict[str, Any]:
        """Everything that decides how the run continues."""
        return {
            "gates": [gate.state_dict() for gate in self._gates],
            "optimizer": self._steps.optimizer.state_dict(),
            "done": [self.samples_done, self.steps_done, self.tokens_done],
            "transfer_explained": self.transfer_explained,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        for gate, tensors in zip(self._gates, state["gates"], strict=True):
            gate.load_state_dict(tensors)
        self._steps.optimizer.load_state_dict(state["optimizer"])
        self.samples_done, self._steps.done, self.tokens_done = state["done"]
        self.transfer_explained = state["transfer_explained"]

    def read_samples(self, progress: Progress) -> Iterator[dict[str, Any]]:
        """Each process reads one stretch and takes its steps; yields their rows for the metrics."""
        began, tokens_before = time.monotonic(), self.tokens_done
        index = self.samples_done + self._accelerator.process_index
        lengths = self._options.lengths
        tokens = torch.from_numpy(self._samples[index])
        tokens = tokens.to(self._accelerator.device)
        distils = self._options.loss == "distillation"
        teacher = watch_teacher(self._model, tokens) if distils else None
        state = SegmentState(self._model, lengths, reads=self._options.memory, trains_keys=True)
        for part in read_segments(self._model, tokens, state, lengths):
            loss = loss_of(part.logits, part.places, tokens, teacher)
            self.tokens_done += len(part.logits) * self._accelerator.num_processes
            row = self._steps.step([loss]) | {"tokens": self.tokens_done}
            speed = (self.tokens_done - tokens_before) / (time.monotonic() - began)
            yield row | {"sample": index, "tokens_per_s": round(speed, 1)}
            progress(f"loss {row['loss']:.3f}, {speed:.0f} tokens/s", self._steps.share_done)
        self.samples_done += self._accelerator.num_processes
