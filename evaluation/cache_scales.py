"""The scales of an int8 cache, measured as an export measures them, once for a model and policy."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.placement import new_tensors_on
from edgeinfinite.models.attach import attention_layers, config_of
from edgeinfinite.models.int8_cache.measure import add_cache_scales
from edgeinfinite.models.int8_cache.scales import CacheScales

_MEASURED: WeakKeyDictionary[PreTrainedModel, dict[str, list[CacheScales]]] = WeakKeyDictionary()
"""By policy. Methods are attached anew for every text, which forgets the scales."""


def give_scales(model: PreTrainedModel, tokens: Sequence[int]) -> None:
    """Gives an attached model the scales of its int8 cache, in its own dtype and on its device.

    Args:
        model: attached, with a cache of type int8.
        tokens: of an ordinary text, the same for every call; see `add_cache_scales`.

    Raises:
        EdgeInfiniteError: there are no or too few tokens, or K or V isn't finite.
    """
    if not tokens:
        raise EdgeInfiniteError(
            "an int8 cache has scales; give the setting `scale_tokens`, which they are measured on"
        )
    known = _MEASURED.setdefault(model, {})
    policy = config_of(model).geometry.policy
    if policy not in known:
        with new_tensors_on(model.device):
            known[policy] = add_cache_scales(model, tokens)
    for layer, scales in zip(attention_layers(model), known[policy], strict=True):
        layer.cache_scales = scales
