"""An attached model against transformers' own forward pass, before and after tokens are evicted.

What leaves the cache changes what later layers compute, so of a whole model no one else can say
what is right then. Of a single layer transformers can: a token's K and V depend on the token and
its place alone there. So a model of one layer, after any text, computes what transformers computes
from the tokens that were kept, as if they were the whole text. Each kind of layer is tried so, with
its own weights. A layer that reads another one's cache adds no K and V, so with that other one it
is such a model, too. The whole model is compared within the cache. A layer that also keeps a state
of the whole text (Falcon-H1) is given that state by transformers, which has read all of it.

Letters: S sinks, N segment, W window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.state_errors import relative_error
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.attention.call import layer_of
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.recurrent_states import attention_of
from edgeinfinite.models.weights.shared_copy import shared_copy
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session

WITHIN = "parity:transformers"
EVICTED = "parity:transformers_evicted"
LIMIT = 1e-4
"""Both compute in float32; orders of sums differ."""

_WITHIN_SPLIT = (9, 1, 8)
"""Tokens of each call on the whole model."""

_SPLIT = (9, 1, 20, 1, 1, 14, 1, 13)
"""Tokens of each call on a model of one layer."""

_GEOMETRIES = {
    "carry": Geometry(segment_length=8, sink_length=4, window_length=12, policy="carry"),
    "reencode": Geometry(segment_length=16, sink_length=4, window_length=4),
}
_WINDOW = 7
"""Of layers with sliding windows, in models of one layer: so a short text is longer."""

_LONGEST_WINDOW = 1024
"""A window that can't be made shorter is tried as it is, up to here."""


def check_untouched(model: PreTrainedModel, policy: str) -> list[Check]:
    """Compares a model with transformers, see above.

    Args:
        model: float32, attached or not; it stays as it is.
        policy: `carry` or `reencode`.

    Returns:
        `WITHIN` and `EVICTED`, the largest relative errors of the logits.

    Raises:
        EdgeInfiniteError: the model isn't supported.
    """
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        within = _error_of_all(model, policy)
        evicted = max(_error_of_layer(model, layers, policy) for layers in _kinds(model))
    # A NaN passes no comparison.
    return [
        Check(name, error <= LIMIT, error, LIMIT)
        for name, error in ((WITHIN, within), (EVICTED, evicted))
    ]


def refuse_other_results(model: PreTrainedModel, policy: str) -> list[Check]:
    """`check_untouched`, for a model that is to be exported.

    Raises:
        EdgeInfiniteError: the attached model doesn't compute what transformers does, or the model
            isn't supported.
    """
    within, evicted = check_untouched(model, policy)
    about = {
        within.check: "read in several calls, it doesn't compute what transformers does",
        evicted.check: "once tokens have left the cache, it doesn't compute what transformers does "
        f"from those that are left under --policy {policy}",
    }
    for check in (within, evicted):
        if not check.passed:
            raise EdgeInfiniteError(
                f"{type(model).__name__} isn't supported: {about[check.check]} (relative error "
                f"{check.value:.2g}, limit {check.limit:.0e}); please report this with the model's "
                "name"
            )
    return [within, evicted]


def _kinds(model: PreTrainedModel) -> list[list[int]]:
    """The first of each kind of attention layer, by its place in the model.

    A layer that reads the cache of another comes after that one.
    """
    facts = architecture_of(model)
    types = getattr(model.config.get_text_config(), "layer_types", None)
    own = attention_layers(model)
    first: dict[Any, list[int]] = {}
    for layer in model.get_decoder().layers:
        module: Any = attention_of(layer)
        if module is not None:
            number = layer_of(module)
            place, owner = module.layer_idx, own[number].layer_idx
            kind = facts.layers[number], facts.every_heads[number], types and types[place]
            alone = place == owner
            first.setdefault((kind, alone), [place] if alone else [owner, place])
    return list(first.values())


def _error_of_all(model: PreTrainedModel, policy: str) -> float:
    try:
        return _error_within(model, policy)
    except IndexError as error:  # Gemma 4's table of embeddings for every layer, for one
        raise EdgeInfiniteError(
            f"{type(model).__name__} isn't supported: its code fails on tokens of its vocabulary "
            f"of {architecture_of(model).vocabulary} ({error}), as if a table had fewer rows"
        ) from error


def _error_within(model: PreTrainedModel, policy: str) -> float:
    tokens = _tokens(model, sum(_WITHIN_SPLIT))
    session = _session(shared_copy(model), _GEOMETRIES[policy])
    wanted = _logits(shared_copy(model), tokens, len(tokens))
    errors, end = [], 0
    for found in _read(session, tokens, _WITHIN_SPLIT):
        end += found[1]
        errors.append(_relative(found[0], wanted[end - 1]))
    return _largest(errors)


def _error_of_layer(model: PreTrainedModel, layers: Sequence[int], policy: str) -> float:
    try:
        return _error_evicted(model, layers, policy)
    except EdgeInfiniteError:
        raise
    except Exception as error:  # of code that no one here has seen
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise EdgeInfiniteError(
            f"{type(model).__name__} isn't supported: its layer {layers[-1]} doesn't run alone, so "
            f"what it computes once tokens have left the cache can't be checked ({why})"
        ) from error


def _error_evicted(model: PreTrainedModel, layers: Sequence[int], policy: str) -> float:
    single, window = _single(model, layers)
    geometry = _GEOMETRIES[policy]
    split: tuple[int, ...] = _SPLIT
    if window > _WINDOW:
        longer = max(geometry.segment_length, window)
        geometry, split = replace(geometry, segment_length=longer), (*split, *[window] * 3, 1)
    session = _session(single, geometry)
    tokens, errors = _tokens(model, sum(split)), []
    untouched, _ = _single(model, layers)
    end = 0
    for logits, count in _read(session, tokens, split):
        end += count
        kept = [*tokens[: session.engine.geometry.sink_length], *session.residual]
        kept = kept[: session.cached]
        wanted = (
            _logits_of_both(untouched, kept, tokens[:end])
            if architecture_of(single).recurrent
            else _logits(untouched, kept, 1)[-1]
        )
        errors.append(_relative(logits, wanted))
    assert session.compressions > 1
    return _largest(errors)


def _single(model: PreTrainedModel, layers: Sequence[int]) -> tuple[PreTrainedModel, int]:
    """A model of one cache's layers, with a short window if it has one; and the window or 0."""
    attention: Any = model.get_decoder().layers[layers[0]].self_attn
    window = architecture_of(model).layers[layer_of(attention)].sliding_window or 0
    single = shared_copy(model, layers)
    if window <= _WINDOW:
        return single, window
    _replace_window(single, window)
    if architecture_of(single).layers[0].sliding_window == _WINDOW:
        return single, _WINDOW
    single = shared_copy(model, layers)
    return single, window if window <= _LONGEST_WINDOW else 0


def _replace_window(model: PreTrainedModel, window: int) -> None:
    """Writes a short window wherever the long one stands."""
    for holder in (model.config.get_text_config(), *model.modules()):
        for name, value in list(vars(holder).items()):
            if "window" in name and value == window and not isinstance(value, bool):
                holder.__dict__[name] = _WINDOW


def _session(model: PreTrainedModel, geometry: Geometry) -> Session:
    attach(model, EdgeInfiniteConfig(geometry, NO_GATE))
    return Session(TorchEngine(model))


def _read(
    session: Session, tokens: Sequence[int], split: Sequence[int]
) -> Iterator[tuple[np.ndarray, int]]:
    """The logits of each call's last token, and how many the call read."""
    start = 0
    for count in split:
        yield session.append(tokens[start : start + count]), count
        start += count


def _logits(model: PreTrainedModel, tokens: Sequence[int], keep: int) -> np.ndarray:
    """`[keep, V]` of the last tokens, by transformers alone."""
    ids = torch.tensor([list(tokens)], device=model.device)
    output = model(input_ids=ids, use_cache=False, logits_to_keep=keep)
    logits: np.ndarray = output.logits[0, -keep:].float().cpu().numpy()
    return logits


def _logits_of_both(model: PreTrainedModel, kept: Sequence[int], read: Sequence[int]) -> np.ndarray:
    """`[V]` of the last token, by transformers with its own caches.

    Args:
        model: whose layer attends and keeps another state.
        kept: tokens that it attends to, one after the other; the last is the last of `read`.
        read: two tokens or more, of which the other state is.
    """
    cache, state = (_cache_of(model, tokens[:-1]) for tokens in (kept, read))
    for attended, whole in zip(cache.layers, state.layers, strict=True):
        whole.keys, whole.values = attended.keys, attended.values
    output = model(
        input_ids=torch.tensor([[kept[-1]]], device=model.device),
        position_ids=torch.tensor([[len(kept) - 1]], device=model.device),
        past_key_values=state,
        use_cache=True,
    )
    logits: np.ndarray = output.logits[0, -1].float().cpu().numpy()
    return logits


def _cache_of(model: PreTrainedModel, tokens: Sequence[int]) -> Any:
    """Transformers' own, after a text."""
    cache = DynamicCache(config=model.config)
    ids = torch.tensor([list(tokens)], device=model.device)
    model(input_ids=ids, past_key_values=cache, use_cache=True)
    return cache


def _tokens(model: PreTrainedModel, count: int) -> list[int]:
    random = np.random.default_rng(0)
    return random.integers(0, architecture_of(model).vocabulary, count).tolist()


def _relative(found: np.ndarray, wanted: np.ndarray) -> float:
    return relative_error(found - wanted.mean(), wanted - wanted.mean())


def _largest(errors: Sequence[float]) -> float:
    return float(np.max(errors))
