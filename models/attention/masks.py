"""What every layer's attention is called with: how often, by which module, under which mask.

Transformers masks as the model's own code asks it to, whatever a layer says of itself to its
attention function. So two tokens run through the decoder with a mask function that remembers which
rule it was to draw, and the rule is tried at distant positions.

Letters: L layers, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from edgeinfinite.models.attention.interface import attention_implementation
from edgeinfinite.models.recurrent_states import attention_of

_NAME = "edgeinfinite-masks"
_PASSED_OVER = {"position_ids", "cache_position", "use_cache", "is_causal", "s_aux"}
"""Arguments of attention that say nothing of who sees what; `s_aux` are the learned sinks."""

_LONGEST = 2**20
"""Positions at which rules are tried, at most: a row of them takes 1 MB."""

Rule = Callable[..., torch.Tensor]
"""`rule(batch, head, query, key)`: whether a query's position sees a key's."""


@dataclass(frozen=True)
class ObservedCall:
    """One call of the attention interface.

    Args:
        module: that called.
        mask: what it gave as mask.
        window: what it said of a sliding window.
        causal: whether a token sees only itself and what is before it, if the mask doesn't say.
        more: names of further arguments that have a value.
        sizes: heads and dimensions of Q, K and V.
        key: K, `[1, K, T, D]`.
    """

    module: nn.Module
    mask: Any
    window: int | None
    causal: bool
    more: tuple[str, ...]
    sizes: tuple[int, ...]
    key: torch.Tensor


class Observed:
    """All calls of one pass through the decoder, in order."""

    def __init__(self) -> None:
        self.calls: list[ObservedCall] = []
        self._rules: dict[int, tuple[torch.Tensor, Rule]] = {}

    def rule_of(self, call: ObservedCall) -> Rule | None:
        """What draws the call's mask; None if transformers' mask functions didn't make it."""
        if not isinstance(call.mask, torch.Tensor):
            return None
        mask, rule = self._rules.get(call.mask.data_ptr(), (None, None))
        return rule if mask is not None and mask.shape == call.mask.shape else None

    def draw(self, rule: Rule, shape: tuple[int, ...], device: Any) -> torch.Tensor:
        """A mask `[B, 1, T, T]` by which the rule is found again."""
        mask = torch.ones(shape, dtype=torch.bool, device=device)
        self._rules[mask.data_ptr()] = mask, rule
        return mask


_observed: ContextVar[Observed] = ContextVar("edgeinfinite_observed")


def observe_calls(model: PreTrainedModel) -> Observed:
    """Runs two tokens through a model's decoder and notes each call of its attention interface."""
    decoder: Any = model.get_decoder()
    with _evaluation(model), torch.no_grad(), attention_implementation(model, _NAME):
        found = Observed()
        before = _observed.set(found)
        try:
            decoder(
                input_ids=torch.tensor([[1, 2]], device=model.device),
                position_ids=torch.tensor([[0, 1]], device=model.device),
                use_cache=False,
            )
        finally:
            _observed.reset(before)
    return found


def measure_windows(model: PreTrainedModel, positions: int) -> list[int | None]:
    """The sliding window of every layer, as transformers masks it; None: it sees everything.

    Where it isn't what the layer says to its attention function, it is noted on the attention
    module, as `edgeinfinite_window`, for `AttentionCall.of`. So is what number a layer has among
    those that hold a cache, and whether it reads the cache of another (`call.layer_of`).

    Args:
        model: a causal LM whose layers hold a `self_attn`, but for those that don't attend.
        positions: that it was trained on.

    Raises:
        ValueError: says what of the layers' attention isn't understood.
    """
    modules = _modules(model)
    observed = observe_calls(model)
    windows = []
    for index, module in enumerate(modules):
        calls = [call for call in observed.calls if call.module is module]
        if not calls:
            raise ValueError("not every layer hands its arguments to the attention interface")
        if len(calls) > 1:
            raise ValueError(f"its layer {index} attends {len(calls)} times")
        windows.append(_window(observed, calls[0], positions))
    for call in observed.calls:
        if not any(call.module is module for module in modules):
            raise ValueError(f"it also attends in {type(call.module).__name__}, beside `self_attn`")
    _number(modules, {id(call.module): call for call in observed.calls})
    return windows


def _modules(model: PreTrainedModel) -> list[nn.Module]:
    """The attention modules in order."""
    layers = enumerate(model.get_decoder().layers)
    held = {i: part for i, layer in layers if (part := attention_of(layer)) is not None}
    modules = list(held.values())
    if len({id(module) for module in modules}) < len(modules):
        raise ValueError("its layers share attention modules")
    if [getattr(module, "layer_idx", None) for module in modules] != list(held):
        raise ValueError("its attention modules don't know the numbers of their layers")
    return modules


def _number(modules: list[nn.Module], calls: dict[int, ObservedCall]) -> None:
    """Numbers those that have keys of their own; the others get the number of those they read.

    Raises:
        ValueError: a layer sees another stretch of the text than the one whose keys it reads.
    """
    owners: dict[int, tuple[int, nn.Module]] = {}
    for module in modules:
        # All calls are held, so no two keys have ever been in one place. What wraps another tensor
        # has none, and is told by itself.
        key = calls[id(module)].key
        place = key.data_ptr() or id(key)
        number, owner = owners.setdefault(place, (len(owners), module))
        if number != module.layer_idx:
            module.__dict__["edgeinfinite_number"] = number
        if owner is not module:
            module.__dict__["edgeinfinite_reads_another"] = True
            if _window_on(module, calls) != _window_on(owner, calls):
                raise ValueError(
                    f"its layer {module.layer_idx} reads the keys of layer {owner.layer_idx} under "
                    "another window"
                )


def _window_on(module: nn.Module, calls: dict[int, ObservedCall]) -> int | None:
    """The window that `_window` found."""
    window: int | None = getattr(module, "edgeinfinite_window", calls[id(module)].window)
    return window


def _window(observed: Observed, call: ObservedCall, positions: int) -> int | None:
    if call.more:
        raise ValueError(f"its attention depends on {', '.join(call.more)}, too")
    if not call.causal:
        raise ValueError("its attention isn't causal")
    rule = observed.rule_of(call)
    if rule is None:
        raise ValueError("its layers mask in a way of their own")
    window = window_of(rule, max(positions, call.window or 0))
    if window != call.window:
        call.module.__dict__["edgeinfinite_window"] = window
    return window


def window_of(rule: Rule, positions: int) -> int | None:
    """The newest tokens that a token sees by a rule, its own included; None for all of them.

    Args:
        rule: of a mask.
        positions: at which it is tried.

    Raises:
        ValueError: says what else the rule lets a token see.
    """
    length = min(positions, _LONGEST) + 9
    rows = sorted({0, 1, 7, length // 3, length // 2, length // 2 + 1, length - 2, length - 1})
    keys, zero = torch.arange(length), torch.tensor(0)
    starts = {}
    for row in rows:
        seen = torch.as_tensor(rule(zero, zero, torch.tensor(row), keys)).expand(length)
        if bool(seen[row + 1 :].any()):
            raise ValueError("a token sees later ones (its mask isn't causal)")
        first = int(seen.int().argmax()) if bool(seen[row]) else row + 1
        if not bool(seen[first : row + 1].all()) or first > row:
            raise ValueError("what a token sees isn't one stretch that ends at itself")
        starts[row] = first
    last = length - 1
    window = last - starts[last] + 1 if starts[last] else None
    if any(first != max(0, row - (window or length) + 1) for row, first in starts.items()):
        raise ValueError("attention is chunked: how far a token sees depends on its position")
    return window


@contextmanager
def _evaluation(model: PreTrainedModel) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any = None,
    scaling: float | None = None,  # noqa: ARG001
    dropout: float = 0.0,  # noqa: ARG001
    sliding_window: int | None = None,
    softcap: float | None = None,  # noqa: ARG001
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The probe's attention function: notes the call and returns zeros `[B, T, H, D]`."""
    causal = others.get("is_causal", getattr(module, "is_causal", None))
    more = [
        name
        for name, value in others.items()
        if name not in _PASSED_OVER and value is not None and value is not False
    ]
    sizes = tuple(size for part in (query, key, value) for size in part.shape[1::2])
    call = ObservedCall(
        module, attention_mask, sliding_window, causal is not False, tuple(more), sizes, key
    )
    _observed.get().calls.append(call)
    batch, heads, tokens, _dim = query.shape
    return value.new_zeros(batch, tokens, heads, value.shape[-1]), None


def _mask(
    batch_size: int = 1,
    q_length: int = 1,
    kv_length: int = 1,
    mask_function: Rule | None = None,
    device: Any = None,
    **_: Any,
) -> torch.Tensor | None:
    """Transformers' mask function for the probe."""
    if mask_function is None:
        return None
    return _observed.get().draw(mask_function, (batch_size, 1, q_length, kv_length), device)


AttentionInterface.register(_NAME, _attend)
AttentionMaskInterface.register(_NAME, _mask)
