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

# They say who asks, or how to store, bill, route and measure; no answer depends on them.
_IGNORED = {
    *("cache_control", "cache_prompt", "cache_salt", "chat_id", "conversation_id", "id", "id_slot"),
    *("keep_alive", "metadata", "models", "prediction", "priority", "prompt_cache_key"),
    *("prompt_cache_retention", "provider", "repeat_last_n", "request_id", "route"),
    *("safety_identifier", "service_tier", "session_id", "slot_id", "store", "timings_per_token"),
    *("trace_id", "usage", "user", "user_id"),
    # A client's own, which its library should have kept to itself.
    *("api_base", "api_key", "base_url", "caching", "custom_llm_provider", "drop_params"),
    *("extra_headers", "max_retries", "stream_timeout", "timeout"),
    # How fast, not what.
    *("speculative.n_max", "speculative.n_min", "speculative.p_min"),
}

_DRY = ("dry_allowed_length", "dry_base", "dry_penalty_last_n", "dry_sequence_breakers")
_SWITCHED = {
    **dict.fromkeys(_DRY, "dry_multiplier"),
    "dynatemp_exponent": "dynatemp_range",
    **dict.fromkeys(("mirostat_eta", "mirostat_tau"), "mirostat"),
    "xtc_threshold": "xtc_probability",
}
"""What says nothing while another parameter is off or missing, as llama.cpp's clients send it."""

# Values by which a parameter changes nothing here.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "allowed_openai_params": ([],),
    "audio": ({},),
    "add_bos_token": (True,),
    "background_tasks": ({},),
    "bad_words": ([],),
    "ban_eos_token": (False,),
    "best_of": (1,),
    "detokenize": (True,),
    "do_sample": (True,),
    "documents": ([],),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "early_stopping": (False,),
    "echo": (False,),
    "encoder_repetition_penalty": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "extra_body": ({},),
    "format": ("",),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "grammar": ("",),
    "guidance_scale": (1,),
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
    "n_keep": (0,),
    "n_predict": (-1,),
    "n_probs": (0,),
    "no_repeat_ngram_size": (0,),
    "num_beams": (1,),
    "num_return_sequences": (1,),
    "options": ({},),
    "penalty_alpha": (0,),
    "plugins": ([],),
    "post_sampling_probs": (False,),
    "raw": (False,),
    "reasoning": ({},),
    "reasoning_format": ("auto", "deepseek"),
    "repeat_penalty": (1,),
    "response_format": ({"type": "text"},),
    "return_token_ids": (False,),
    "return_tokens": (False,),
    "return_tokens_as_token_ids": (False,),
    "safe_prompt": (False,),
    "skip_special_tokens": (True,),
    "smoothing_factor": (0,),
    "spaces_between_special_tokens": (True,),
    "stop_token_ids": ([],),
    "suffix": ("",),
    "tfs_z": (1,),
    "think": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_a": (0,),
    "top_n_sigma": (-1,),
    "transforms": ([], ["middle-out"]),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
    "web_search_options": ({},),
    "xtc_probability": (0,),
}

MOST_COUNTED = 10_000_000
"""Tokens of an answer, at most; larger numbers mean "no limit", as 2147483647 does."""

OF_OTHER_APIS: dict[str, tuple[Any, ...]] = {
    "extra_body": ({},),
    "frequency_penalty": (0,),
    "logit_bias": ({}, []),
    "logprobs": (False,),
    "min_p": (0,),
    "n": (1,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "seed": (-1,),
    "stop": ([], ""),
    "top_k": (0, -1),
}
"""What chat completions have and some clients send to every API, at values without effect."""

STREAM_NEUTRAL = {"chunk_include_usage": False, "continuous_usage_stats": False}
"""The same for `stream_options`."""

_WHOLE_NUMBERS = (
    *("logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens", "seed", "top_k"),
    "top_logprobs",
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
        if isinstance(fields.get("parallel_tool_calls"), bool):
            del fields["parallel_tool_calls"]
        if fields.get("tool_choice") in ("none", "auto"):
            del fields["tool_choice"]
    if fields.get("function_call") == "none":
        fields.pop("functions", None)
    for name, switch in _SWITCHED.items():
        if not fields.get(switch):
            fields.pop(name, None)
    if isinstance(fields.get("features"), dict) and not any(fields["features"].values()):
        del fields["features"]  # Open WebUI's: every one of them is off
    return _normalised(only_known(fields, understood, ignored=_IGNORED, neutral=_NEUTRAL))


def whole(fields: dict[str, Any]) -> dict[str, Any]:
    """Whole numbers that a client writes as `100.0`, as what they are; changed in place."""
    for name in _WHOLE_NUMBERS:
        value = fields.get(name)
        if isinstance(value, float) and value.is_integer():
            fields[name] = int(value)
    return fields


def _normalised(fields: dict[str, Any]) -> dict[str, Any]:
    whole(fields)
    for name, meant in _MEANT.items():
        if name in fields:
            value = meant.change(fields[name])
            if value is None:
                del fields[name]
            else:
                fields[name] = value
    return fields


def counted(value: Any) -> Any:
    """A limit of tokens as a client means it."""
    return MOST_TOKENS if _is(value, -1) else value


def _stream_options(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: one
        for name, one in value.items()
        if one is not None and not (name in STREAM_NEUTRAL and one is STREAM_NEUTRAL[name])
    }


def _response_format(value: Any) -> Any:
    """With the schema where OpenAI has it; llama.cpp's, Together's and others' stands beside."""
    if not isinstance(value, dict) or value.get("schema") is None:
        return value
    if value.get("json_schema") is not None:
        return value
    if value.get("type") not in ("json_object", "json_schema"):
        return value
    others = {name: one for name, one in value.items() if name not in ("schema", "json_schema")}
    return others | {"type": "json_schema", "json_schema": {"schema": value["schema"]}}


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
    "max_completion_tokens": _Meant(counted, _MINUS_ONE),
    "max_tokens": _Meant(counted, _MINUS_ONE),
    "model": _Meant(lambda value: None if value == "" else value),
    "response_format": _Meant(
        _response_format,
        {
            "type": "object",
            "properties": {
                "type": {"enum": ["json_object", "json_schema"]},
                "schema": {"type": "object"},
                "json_schema": {"type": "null"},
            },
            "required": ["type", "schema"],
            "additionalProperties": False,
        },
    ),
    "seed": _Meant(lambda value: None if _is(value, -1) else value),  # "any"
    "stop": _Meant(_stops),
    "stream_options": _Meant(_stream_options),
    "tool_choice": _Meant(  # Mistral's
        lambda value: "required" if value == "any" else value, {"const": "any"}
    ),
    "top_k": _Meant(lambda value: 0 if _is(value, -1) else value, _MINUS_ONE),
    "top_p": _Meant(lambda value: _SMALLEST_SHARE if _is(value, 0) else value, {"const": 0}),
}


def also_taken() -> dict[str, dict[str, Any]]:
    """JSON schemas of what parameters may be beside what their type says, null apart."""
    return {name: meant.also for name, meant in _MEANT.items() if meant.also is not None}


def without_effect() -> dict[str, dict[str, Any]]:
    """JSON schemas of the parameters that are passed over, null apart."""
    neutral = {name: {"enum": [*values]} for name, values in _NEUTRAL.items()}
    return neutral | {name: {} for name in sorted({*_IGNORED, *_SWITCHED, "features"})}


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == number
