"""Compares an artifact with its reference operation by operation, on the artifact's own values.

Layers that round their inputs to 8 bits drive any two implementations apart (`sensitivity.py`), so
the comparison of whole calls can't tell a small fault of a late layer from rounding. Here nothing
adds up: the reference runs with the artifact's own input and output in every quantized product. So
what stands between two products (norms, attention, activations, residual sums) is compared on
equal numbers, and so is each product. The artifact's products don't round their inputs here.

Letters: T tokens, I inputs, O outputs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from torch import nn

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.state_errors import copy_state, readable
from edgeinfinite.models.attention.readers import layers_by_input, readers_of_attention
from edgeinfinite.models.weights.row_modules import plain_product
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.state import State

TOKENS = 16
"""Of a compared call."""

BETWEEN_LIMIT = 1e-4
"""Of what is computed in float32 between two products."""

ATTENTION_LIMIT = 1e-2
"""Of attention with a float16 cache: Q, K, V and the result have 11 bits. SmolLM2-135M's and Gemma
3 270M's errors are within 2e-3."""

PRODUCT_LIMIT = 1e-4
"""Of a product of equal numbers, in float32."""

CHANNEL_FACTOR = 8.0
"""A single channel of T tokens may be off by this many times the limit of all."""


@dataclass(frozen=True)
class Product:
    """One product that the artifact computed, of one layer or of several at once.

    Args:
        name: of the layer in the reference, of several of the first.
        given: its input `[1, T, I]`, or of the newest token alone `[1, 1, I]`; perhaps with further
            columns of the back end's own. Beside experts rows stand without the first axis.
        made: its output, `[1, T, O]` or `[1, 1, O]`, of several layers one behind the other.
    """

    name: str
    given: torch.Tensor
    made: torch.Tensor


class Observed(Protocol):
    """An artifact whose products can be seen."""

    def run(self, tokens: np.ndarray, state: State) -> list[Product]:
        """Reads tokens `[1, T]` as `prefill_segment` does; the state's caches are changed."""
        ...


@dataclass(frozen=True)
class OperationError:
    """How far one operation is off.

    Args:
        name: the layer's.
        kind: `between` the product before and this one, or the `product`.
        value: the relative error, over all channels, or of the worst one divided by
            `CHANNEL_FACTOR`, whichever is larger.
        limit: what it may be.
    """

    name: str
    kind: str
    value: float
    limit: float


class OperationParity:
    """Runs the reference beside an observed artifact.

    Args:
        observed: the artifact.
        reference: over the same weights.
        rounds: whether the artifact's KV cache rounds what is written into it.
    """

    def __init__(self, observed: Observed, reference: TorchEngine, *, rounds: bool) -> None:
        self._observed = observed
        self._reference = reference
        model = reference.model
        self._layers = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear)}
        self._groups = layers_by_input(model)
        self._after_attention = readers_of_attention(model) if rounds else set()
        self._errors: list[OperationError] = []

    def compare(
        self, tokens: np.ndarray, artifact_state: State, reference_state: State
    ) -> list[OperationError]:
        """Compares one call.

        Args:
            tokens: `[1, T]` int64.
            artifact_state, reference_state: equal before the call; both are changed by it.

        Raises:
            EdgeInfiniteError: the products aren't those of the reference's layers.
        """
        self._errors = []
        with torch.inference_mode(), ExitStack() as hooks:
            calls: dict[str, deque[Product]] = defaultdict(deque)
            ran = [_with_batch(one) for one in self._observed.run(tokens, artifact_state)]
            for name, product in self._by_layer(ran):
                calls[name].append(product)
            for name, products in calls.items():
                layer = self._layers[name]
                hooks.callback(layer.register_forward_pre_hook(self._before(name, products)).remove)
                hooks.callback(layer.register_forward_hook(self._after(name, products)).remove)
            self._reference.prefill_segment(tokens, reference_state)
        return self._errors

    def compare_from(
        self, state: State, new_state: Callable[[], State], tokens: Iterator[int]
    ) -> list[OperationError]:
        """Compares one call of up to `TOKENS` tokens from a state, which stays as it is.

        Args:
            state: the artifact's.
            new_state: makes an empty one for it.
            tokens: the next of the text.
        """
        begun, room = readable(state, self._reference.geometry)
        chosen = np.array([list(islice(tokens, min(TOKENS, room)))], dtype=np.int64)
        states = new_state(), self._reference.new_state()
        for copied in states:
            copy_state(begun, copied)
        return self.compare(chosen, *states) if chosen.size else []

    def _by_layer(self, products: Sequence[Product]) -> Iterator[tuple[str, Product]]:
        """The products of single layers.

        What is computed at once has the name of its first layer; the others over the same input
        come next, but for layers that have a product of their own: K's, if Q and V are computed at
        once.
        """
        own = {product.name for product in products}
        for product in products:
            following = self._layers_from(product.name, own)
            at, outputs = 0, product.made.shape[2]
            while at < outputs:
                name = next(following, None)
                size = self._layers[name].out_features if name else 0
                if not name or not 0 < size <= outputs - at:
                    raise EdgeInfiniteError(
                        f"the artifact's product {product.name} gives {outputs} numbers, which "
                        "none of the checkpoint's layers do; export it again"
                    )
                part = product.made[..., at : at + size]
                yield name, Product(name, product.given, part)
                at += size

    def _layers_from(self, first: str, own: Collection[str]) -> Iterator[str]:
        """A layer, then those after it over the same input that aren't in `own`.

        Nothing if there is no such layer.
        """
        if first in self._layers:
            group = self._groups.get(first, [first])
            yield first
            yield from (name for name in group[group.index(first) + 1 :] if name not in own)

    def _before(
        self, name: str, products: deque[Product]
    ) -> Callable[[nn.Module, tuple[torch.Tensor]], tuple[torch.Tensor]]:
        """The first of a layer's products is that of the call at hand; others may follow."""

        def hook(_: nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            product = products[0]
            rows, columns = product.given.shape[1], inputs[0].shape[-1]
            given, whole = product.given[..., :columns], _batched(inputs[0])
            limit = ATTENTION_LIMIT if name in self._after_attention else BETWEEN_LIMIT
            self._note(name, "between", given, whole[:, -rows:], limit)
            return (_with_last_rows(whole, given).view(inputs[0].shape),)

        return hook

    def _after(
        self, name: str, products: deque[Product]
    ) -> Callable[[nn.Module, tuple[torch.Tensor], torch.Tensor], torch.Tensor]:
        def hook(layer: nn.Module, _: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
            assert isinstance(layer, nn.Linear)
            product = products.popleft()
            wanted = plain_product(layer, product.given[..., : layer.in_features])
            self._note(name, "product", product.made, wanted, PRODUCT_LIMIT)
            return _with_last_rows(_batched(output), product.made).view(output.shape)

        return hook

    def _note(
        self, name: str, kind: str, value: torch.Tensor, wanted: torch.Tensor, limit: float
    ) -> None:
        self._errors.append(OperationError(name, kind, operation_error(value, wanted), limit))


def checks_of(errors: Sequence[OperationError]) -> list[Check]:
    """`parity:between_products` and `parity:products`: the error nearest to its limit."""
    checks = []
    for kind, name in (("between", "between_products"), ("product", "products")):
        of_kind = [error for error in errors if error.kind == kind]
        if of_kind:
            # A NaN is worse than any number.
            worst = max(of_kind, key=lambda e: np.inf if np.isnan(e.value) else e.value / e.limit)
            passed = worst.value <= worst.limit
            checks.append(Check(f"parity:{name}", passed, worst.value, worst.limit))
    return checks


def operation_error(value: torch.Tensor, wanted: torch.Tensor) -> float:
    """The relative error, over all channels or of the worst one, see `OperationError`."""
    difference = (value - wanted)[0]
    size = wanted[0].norm()
    if not torch.isfinite(difference).all() or size == 0:
        return 0.0 if bool((difference == 0).all()) else float("nan")
    # A channel that is nearly zero is measured against a tenth of the average one.
    channels = wanted[0].norm(dim=0) + 0.1 * size / wanted.shape[2] ** 0.5
    worst = (difference.norm(dim=0) / channels).max() / CHANNEL_FACTOR
    return float(torch.maximum(difference.norm() / size, worst))


def _batched(rows: torch.Tensor) -> torch.Tensor:
    """`[1, T, I]` of such a tensor, or of `[T, I]`."""
    return rows if rows.dim() == 3 else rows.unsqueeze(0)


def _with_batch(product: Product) -> Product:
    return Product(product.name, _batched(product.given), _batched(product.made))


def _with_last_rows(whole: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """A copy of `[1, T, I]` whose last rows are others."""
    result = whole.clone()
    result[:, whole.shape[1] - rows.shape[1] :] = rows
    return result
