"""JSON schemas of requests: the types that judge them, with what is normalised before."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from edgeinfinite.runtime_py.server.anthropic_messages import request as messages
from edgeinfinite.runtime_py.server.anthropic_messages.request import MessageRequest
from edgeinfinite.runtime_py.server.leniency import STREAM_NEUTRAL, also_taken, without_effect
from edgeinfinite.runtime_py.server.messages import also_in_messages
from edgeinfinite.runtime_py.server.openai_responses import request as responses
from edgeinfinite.runtime_py.server.openai_responses.request import ResponseRequest
from edgeinfinite.runtime_py.server.openapi_apis import passed_over
from edgeinfinite.runtime_py.server.requests import ChatRequest, CompletionRequest

Schema = dict[str, Any]

REF = "#/components/schemas/{name}"

_NULL: Schema = {"type": "null"}


def request_schemas() -> dict[str, Schema]:
    """A schema for each type, by the type's name.

    What a schema refuses is refused. Some of what it takes is refused, too, where fields
    contradict each other or the model can't do what they ask for; then the answer says so.
    """
    completions = (ChatRequest, CompletionRequest)
    kinds = (*completions, ResponseRequest, MessageRequest)
    made = msgspec.json.schema_components(kinds, ref_template=REF)[1]
    schemas: dict[str, Schema] = copy.deepcopy(made)
    for kind in completions:
        _widen(schemas[kind.__name__], also_taken(), without_effect())
    also, zero = also_taken(), {"top_p": {"const": 0}}
    passed = passed_over(sorted(responses.IGNORED), responses.NEUTRAL)
    least = {"max_output_tokens": also["max_tokens"]}
    _widen(schemas["ResponseRequest"], zero | least, passed)
    passed = passed_over(sorted(messages.IGNORED), messages.NEUTRAL)
    _widen(schemas["MessageRequest"], zero | {"top_k": also["top_k"]}, passed)
    neutral = {name: {"enum": [value]} for name, value in STREAM_NEUTRAL.items()}
    _open(schemas["StreamOptions"], neutral)
    for name, field in (("ToolCall", "type"), ("CalledFunction", "arguments")):
        properties = schemas[name]["properties"]
        properties[field] = {"anyOf": [properties[field], _NULL]}
    also_in_messages(schemas)
    prompt = schemas["CompletionRequest"]["properties"]["prompt"]
    one = {"type": "array", "items": dict(prompt, minLength=1), "minItems": 1, "maxItems": 1}
    schemas["CompletionRequest"]["properties"]["prompt"] = {
        "anyOf": [dict(prompt, minLength=1), one]
    }
    return schemas


def _widen(schema: Schema, also: dict[str, Schema], passed: dict[str, Schema]) -> None:
    """Adds to a request's schema what is understood beside its type, and what is passed over."""
    for name, one in also.items():
        if name in schema["properties"]:
            schema["properties"][name] = {"anyOf": [schema["properties"][name], one]}
    about = "Passed over at these values, refused at others."
    _open(
        schema,
        {
            name: dict(one, description=about if one else "Passed over.")
            for name, one in passed.items()
            if name not in schema["properties"]
        },
    )


def _open(schema: Schema, passed: dict[str, Schema]) -> None:
    """Whatever isn't required may be null, and what isn't known may be nothing else."""
    properties = schema["properties"]
    for name, one in properties.items():
        if name not in schema.get("required", ()):
            properties[name] = {"anyOf": [one, _NULL]}
    for name, one in passed.items():
        properties[name] = one if "enum" not in one else dict(one, enum=[*one["enum"], None])
    schema["additionalProperties"] = _NULL
