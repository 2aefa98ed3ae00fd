"""What a model's loss depends on: the inputs of every weight, and the gradients of its outputs.

To second order, an error E of a weight `[O, I]` costs half of the mean over tokens of (gᵀ E x)²
nats a token, where x are the weight's inputs and g is the gradient of the loss by its outputs, for
labels that the model itself would say (then the Fisher information is the curvature). Taken apart
as in K-FAC (Martens and Grosse 2015, arXiv 1503.05671): sum over rows of E[g²] Eᵀ E[x xᵀ] E / 2.
E[x xᵀ] is also what GPTQ rounds by. Letters: T tokens, O outputs, I inputs, V vocabulary, d width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from edgeinfinite.export.mixing.expert_products import Watch, watched_experts
from edgeinfinite.export.mixing.head import logits_of
from edgeinfinite.models.mini_sequence import decoder_layers
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session

Progress = Callable[[str, float], None]

_HEAD_CHUNK = 64
"""Tokens whose logits are in memory at a time: 512 of Gemma's vocabulary would be 0.5 GB, four
times over."""


@dataclass
class WeightStatistics:
    """Of one weight, summed over tokens until `mean` is taken.

    Args:
        inputs: `[I, I]`, x xᵀ; None for an embedding that is no LM head.
        outputs: `[O]`, g²; `[E * O]` of the E experts of a projection.
        looked_up: `[T]` int64, tokens that an embedding looked up; None for a linear layer.
        gradients: `[T, d]`, of what it looked up.
        forwards: tokens in the sum of `inputs`; a session computes few logits, so few of the head.
    """

    inputs: torch.Tensor | None = None
    outputs: torch.Tensor | None = None
    looked_up: torch.Tensor | None = None
    gradients: torch.Tensor | None = None
    forwards: int = 0

    def loss(self, error: torch.Tensor, first: int = 0) -> float:
        """Nats a token that an error of the weight costs, to second order.

        Args:
            error: `[O, I]`, or some of its rows: the losses of all rows add up.
            first: the first of these rows.
        """
        total, last = 0.0, first + len(error)
        if self.inputs is not None and self.outputs is not None:
            rows = ((error @ self.inputs) * error).sum(1)
            total += 0.5 * float(rows @ self.outputs[first:last])
        if self.looked_up is not None and self.gradients is not None:
            here = (self.looked_up >= first) & (self.looked_up < last)
            moved = (error[self.looked_up[here] - first] * self.gradients[here]).sum(1)
            total += 0.5 * float(moved.square().sum()) / len(self.looked_up)
        return total


@dataclass
class Sums:
    """Statistics that grow with every stretch of text that is read.

    Args:
        found: by the names of `model.named_parameters()`, for linear layers, embeddings and
            experts; `inputs` of layers that read the same tensor are one tensor.
        stretches: that were read.
        backwards: tokens in the sums of `outputs`.
        zeros: makes an array for a sum of `inputs`.
    """

    found: dict[str, WeightStatistics] = field(default_factory=dict)
    stretches: int = 0
    backwards: int = 0
    zeros: Callable[[int, int], torch.Tensor] = torch.zeros

    def means(self, done: Callable[[], None] = lambda: None) -> dict[str, WeightStatistics]:
        """Turns the sums into means, in place: nothing can be added any more.

        Args:
            done: called after each weight's.
        """
        scaled: set[int] = set()
        for statistics in self.found.values():
            for tensor, count in (
                (statistics.inputs, statistics.forwards),
                (statistics.outputs, self.backwards),
            ):
                if tensor is not None and id(tensor) not in scaled:
                    scaled.add(id(tensor))
                    tensor /= count
            done()
        return self.found


def collect(
    model: PreTrainedModel, texts: Sequence[Sequence[int]], progress: Progress, *, seed: int = 0
) -> dict[str, WeightStatistics]:
    """Reads texts forwards and backwards once, each by itself; see `add_backwards`."""
    sums = Sums()
    for index, text in enumerate(texts):
        progress("reading the calibration text", index / len(texts))
        add_backwards(sums, model, text, seed=seed + index)
    return sums.means()


def add_backwards(
    sums: Sums, model: PreTrainedModel, tokens: Sequence[int], *, seed: int = 0
) -> None:
    """Reads a stretch forwards with full attention, and backwards.

    Args:
        sums: to be added to.
        model: float32, attached or not; comes back as it was.
        tokens: ids.
        seed: of the labels drawn from the model's predictions.
    """
    generator = torch.Generator().manual_seed(seed)
    again = _Again()
    with _hooks(model, sums, again), _computed_again(model, again), torch.enable_grad():
        ids = torch.tensor([list(tokens)])
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        leaf = hidden.detach().requires_grad_()
        for part in leaf.split(_HEAD_CHUNK, dim=1):
            logits = logits_of(model, part)[0]
            with torch.no_grad():
                slope = logits.softmax(-1)
                labels = torch.multinomial(slope, 1, generator=generator)
                slope.scatter_add_(1, labels, slope.new_full(labels.shape, -1.0))
            logits.backward(slope)  # that of the labels' cross-entropy
        hidden.backward(leaf.grad)
    sums.stretches += 1
    sums.backwards += len(tokens)


def add_session(sums: Sums, model: PreTrainedModel, tokens: Sequence[int]) -> None:
    """Reads a stretch through the session, as the artifact will: adds to `inputs` alone.

    Args:
        sums: to be added to.
        model: float32, after `attach`.
        tokens: ids, more than the cache holds if evicted pairs are to count.
    """
    with _hooks(model, sums, _Again()):
        Session(TorchEngine(model)).append(tokens)
    sums.stretches += 1


class _Again:
    """Whether a layer is being computed a second time, which is counted once."""

    def __init__(self) -> None:
        self.running = False

    @contextmanager
    def run(self) -> Iterator[None]:
        """The second time."""
        self.running = True
        try:
            yield
        finally:
            self.running = False


@contextmanager
def _computed_again(model: PreTrainedModel, again: _Again) -> Iterator[None]:
    """While it is open, backward computes a layer's activations a second time.

    Only its inputs are kept meanwhile: all activations take about as much as all weights. These are
    also what several layers read, such as Gemma 4's embeddings by layer and shared keys and values.
    """
    layers = decoder_layers(model)
    for layer in layers:
        layer.forward = partial(
            checkpoint,
            layer.forward,
            use_reentrant=False,
            context_fn=lambda: (nullcontext(), again.run()),
            preserve_rng_state=False,
        )
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


@contextmanager
def _hooks(model: PreTrainedModel, sums: Sums, again: _Again) -> Any:
    """While it is open, every linear layer and embedding adds to its weight's statistics."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    seen = _Inputs(sums.zeros, again)
    with ExitStack() as stack:
        for module in model.modules():
            name = names.get(id(getattr(module, "weight", None)))
            if name is None or not isinstance(module, nn.Linear | nn.Embedding):
                continue
            statistics = sums.found.setdefault(name, WeightStatistics())
            hook = _linear_hook if isinstance(module, nn.Linear) else _embedding_hook
            handle = module.register_forward_hook(hook(statistics, seen))
            stack.callback(handle.remove)
        of_experts = partial(_experts_watch, sums, seen)
        stack.enter_context(watched_experts(model, of_experts))
        yield


class _Inputs:
    """Layers over one input (Q, K and V; gate and up) share one sum of x xᵀ."""

    def __init__(self, zeros: Callable[[int, int], torch.Tensor], again: _Again) -> None:
        self._zeros = zeros
        self.again = again
        self._last: torch.Tensor | None = None
        self._sum: torch.Tensor | None = None

    def add(self, statistics: WeightStatistics, x: torch.Tensor) -> None:
        """Adds the inputs `[..., I]` of a call."""
        rows = x.detach().flatten(0, -2)
        statistics.forwards += len(rows)
        if x is self._last and self._sum is not None:
            statistics.inputs = self._sum
            return
        if statistics.inputs is None:
            with torch.inference_mode(False):  # a session reads; others add to it later
                statistics.inputs = self._zeros(rows.shape[1], rows.shape[1])
        statistics.inputs.addmm_(rows.T, rows)
        self._last, self._sum = x, statistics.inputs


def _linear_hook(statistics: WeightStatistics, seen: _Inputs) -> Callable[..., None]:
    def forward(_: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if seen.again.running:
            return
        seen.add(statistics, inputs[0])

        def backward(gradient: torch.Tensor) -> None:
            power = gradient.detach().flatten(0, -2).square().sum(0)
            old = statistics.outputs
            statistics.outputs = power if old is None else old + power

        if output.requires_grad:  # not while a session reads
            output.register_hook(backward)

    return forward


def _experts_watch(sums: Sums, seen: _Inputs, name: str) -> Watch:
    """Of all experts of a projection: `inputs` are those of any, `outputs` `[E * O]` of each.

    A token costs nothing by an expert that it didn't choose, so each expert's share of the tokens
    is in its gradients.
    """
    statistics = sums.found.setdefault(name, WeightStatistics())

    def watch(rows: torch.Tensor, sizes: torch.Tensor, result: torch.Tensor) -> None:
        if seen.again.running:
            return
        seen.add(statistics, rows)

        def backward(gradient: torch.Tensor) -> None:
            parts = gradient.detach().split(sizes.tolist())
            power = torch.cat([part.square().sum(0) for part in parts])
            old = statistics.outputs
            statistics.outputs = power if old is None else old + power

        if result.requires_grad:
            result.register_hook(backward)

    return watch


def _embedding_hook(statistics: WeightStatistics, _: _Inputs) -> Callable[..., None]:
    def forward(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if torch.is_inference_mode_enabled():  # a session reads: there are no gradients
            return
        tokens = inputs[0].flatten()
        factor = float(getattr(module, "embed_scale", 1.0))
        output.requires_grad_(True)  # the graph begins here: weights have no gradients

        def backward(gradient: torch.Tensor) -> None:
            rows = factor * gradient.detach().flatten(0, -2)
            first = statistics.looked_up is None
            looked_up = [tokens] if first else [statistics.looked_up, tokens]
            gradients = [rows] if first else [statistics.gradients, rows]
            statistics.looked_up = torch.cat(looked_up)  # type: ignore[arg-type]
            statistics.gradients = torch.cat(gradients)  # type: ignore[arg-type]

        output.register_hook(backward)

    return forward
