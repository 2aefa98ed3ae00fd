"""What clients send along: normalised before it is judged.

A parameter at a value by which it changes nothing is passed over. So is one that never changes an
answer. Any other that isn't understood is refused by name, because it would change the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from edgeinfinite.runtime_py.server.decoding import only_known

MOST_TOKENS = 4_096
"""Of a chat's answer whose client sets no limit, or -1: some (aider) never do, and call an answer
that was cut a failure."""

_SMALLEST_SHARE = 1e-9
"""Of `top_p`: the likeliest token alone."""

# They say who asks, or how to store, bill and route; no answer depends on them.
_IGNORED = {
    *("cache_prompt", "cache_salt", "chat_id", "conversation_id", "id", "keep_alive", "metadata"),
    *("prediction", "priority", "prompt_cache_key", "request_id"),
    *("prompt_cache_retention", "repeat_last_n", "safety_identifier", "service_tier"),
    *("session_id", "store", "trace_id", "user", "user_id"),
}

# Values by which a parameter changes nothing here.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "allowed_openai_params": ([],),
    "audio": ({},),
    "bad_words": ([],),
    "best_of": (1,),
    "detokenize": (True,),
    "documents": ([],),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "early_stopping": (False,),
    "echo": (False,),
    "extra_body": ({},),
    "format": ("",),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "grammar": ("",),
    "id_slot": (-1,),
    "ignore_eos": (False,),
    "include_reasoning": (True, False),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "min_keep": (0, 1),
    "min_tokens": (0,),
    "mirostat": (0,),
    "modalities": (["text"], []),
    "n": (1,),
    "options": ({},),
    "plugins": ([],),
    "reasoning": ({},),
    "repeat_penalty": (1,),
    "response_format": ({"type": "text"},),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "stop_token_ids": ([],),
    "suffix": ("",),
    "tfs_z": (1,),
    "think": (False,),
    "timings_per_token": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "transforms": ([],),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
    "web_search_options": ({},),
    "xtc_probability": (0,),
}

STREAM_NEUTRAL = {"continuous_usage_stats": False}
"""The same for `stream_options`."""

_WHOLE_NUMBERS = (
    *("logprobs", "max_completion_tokens", "max_tokens", "seed", "top_k", "top_logprobs"),
)


def known_fields(given: dict[str, Any], understood: Iterable[str]) -> dict[str, Any]:
    """The fields of a request that mean something here, normalised.

    Args:
        given: the request's fields.
        understood: names of fields that its kind of request has.

    Raises:
        ApiProblem: 400, a field isn't understood and may change the answer.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    if not fields.get("tools"):  # how to call what isn't there
        fields.pop("parallel_tool_calls", None)
        if fields.get("tool_choice") in ("none", "auto"):
            del fields["tool_choice"]
    if fields.get("function_call") == "none":
        fields.pop("functions", None)
    return _normalised(only_known(fields, understood, ignored=_IGNORED, neutral=_NEUTRAL))


def _normalised(fields: dict[str, Any]) -> dict[str, Any]:
    for name in _WHOLE_NUMBERS:
        value = fields.get(name)
        if isinstance(value, float) and value.is_integer():
            fields[name] = int(value)
    for name, meant in _MEANT.items():
        if name in fields:
            value = meant.change(fields[name])
            if value is None:
                del fields[name]
            else:
                fields[name] = value
    return fields


def _count(value: Any) -> Any:
    return MOST_TOKENS if _is(value, -1) else value


def _stream_options(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: one
        for name, one in value.items()
        if one is not None and STREAM_NEUTRAL.get(name, 1) is not one
    }


def _stops(value: Any) -> Any:
    """Without empty strings, which end nothing."""
    if isinstance(value, list):
        return [one for one in value if one != ""] or None
    return None if value == "" else value


class _Meant(NamedTuple):
    """What a value means: None is as if it weren't there. `also` is what its type doesn't say."""

    change: Callable[[Any], Any]
    also: dict[str, Any] | None = None


_MINUS_ONE = {"const": -1}

_MEANT = {
    "logit_bias": _Meant(  # llama.cpp has a list
        lambda value: None if value in ([], {}) else value, {"maxItems": 0, "type": "array"}
    ),
    "logprobs": _Meant(lambda value: None if value is False else value, {"const": False}),
    "max_completion_tokens": _Meant(_count, _MINUS_ONE),
    "max_tokens": _Meant(_count, _MINUS_ONE),
    "model": _Meant(lambda value: None if value == "" else value),
    "seed": _Meant(lambda value: None if _is(value, -1) else value),  # "any"
    "stop": _Meant(_stops),
    "stream_options": _Meant(_stream_options),
    "top_k": _Meant(lambda value: 0 if _is(value, -1) else value, _MINUS_ONE),
    "top_p": _Meant(lambda value: _SMALLEST_SHARE if _is(value, 0) else value, {"const": 0}),
}


def also_taken() -> dict[str, dict[str, Any]]:
    """JSON schemas of what parameters may be beside what their type says, null apart."""
    return {name: meant.also for name, meant in _MEANT.items() if meant.also is not None}


def without_effect() -> dict[str, dict[str, Any]]:
    """JSON schemas of the parameters that are passed over, null apart."""
    neutral = {name: {"enum": [*values]} for name, values in _NEUTRAL.items()}
    return neutral | {name: {} for name in sorted(_IGNORED)}


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == number
