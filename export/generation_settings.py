"""What an artifact's `generation_config.json` says, made of the checkpoint's.

Checkpoints have settings that no run can use, and that change nothing: a padding token one past the
vocabulary, `top_k: -1` for "all". They are left out or written as they are meant; what would change
an answer is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from transformers import GenerationConfig

from edgeinfinite.runtime_py.answer.generation_config import checked_stop_ids

_UNUSED = ("bos_token_id", "pad_token_id")
"""The runtime reads neither: a chat template and the tokenizer write the first, nothing pads."""


def usable_settings(generation: GenerationConfig, vocabulary: int) -> dict[str, Any]:
    """The settings as the artifact will have them.

    Args:
        generation: the checkpoint's.
        vocabulary: V of the model.

    Raises:
        EdgeInfiniteError: a token that ends an answer is outside the vocabulary, or a setting of
            the sampler out of range; it names the setting.
    """
    text = generation.to_json_string(use_diff=True, keys_to_pop=["compile_config"])
    fields: dict[str, Any] = json.loads(text)
    for name in _UNUSED:
        if not _fits(fields.get(name), vocabulary):
            del fields[name]
    top_k, top_p = fields.get("top_k"), fields.get("top_p")
    if isinstance(top_k, float) and top_k.is_integer():
        fields["top_k"] = top_k = int(top_k)
    if top_k == -1:  # as vLLM and llama.cpp write "all"
        fields["top_k"] = 0
    if _is_zero(top_p):  # transformers then keeps the likeliest token
        del fields["top_p"]
        fields["top_k"] = 1
    checked_stop_ids(fields, vocabulary)
    return fields


def with_ends(fields: dict[str, Any], ends: Iterable[int]) -> dict[str, Any]:
    """The settings with more tokens that end an answer; the checkpoint's own stay first.

    Args:
        fields: from `usable_settings`.
        ends: ids, in any order.
    """
    known = ids_of(fields.get("eos_token_id"))
    more = sorted(set(ends).difference(known))
    if not more:
        return fields
    ids = [*known, *more]
    return fields | {"eos_token_id": ids if len(ids) > 1 else ids[0]}


def ids_of(value: Any) -> list[Any]:
    """What a setting holds: nothing, one id, or a list of them."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _fits(value: Any, vocabulary: int) -> bool:
    return all(type(one) is int and -1 <= one < vocabulary for one in ids_of(value))


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0
