"""The messages of a request, as clients keep them: with ids, notes and empty fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.text.chat_template import Message

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""The kinds of parts that are text, and where theirs stands."""

_THOUGHTS = ("reasoning", "redacted_thinking", "thinking")
"""Parts of an answer that no model is given again, as `reasoning_content` isn't."""

# All other fields of a message say who made it, when, and how: no answer depends on them.
_CONTENT = ("audio", "documents", "files", "function_call", "images")
"""Fields that are part of what is said."""


def normalised_messages(messages: list[Any]) -> list[Any]:
    """Messages with role and content alone; what has another shape is left for the request's type.

    Raises:
        ApiProblem: 400; a message says something that isn't text.
    """
    return [_normalised(message, f"messages[{i}]") for i, message in enumerate(messages)]


def wants_prefix(messages: Sequence[Any]) -> bool | None:
    """Whether the last message says that it is to be continued; None where it says nothing."""
    last = messages[-1] if messages else None
    wanted = last.get("prefix") if isinstance(last, dict) else None
    return wanted if isinstance(wanted, bool) else None


def also_in_messages(schemas: dict[str, dict[str, Any]]) -> None:
    """Widens the schemas of a message and its parts by what is normalised before they are judged.

    Args:
        schemas: by the types' names; changed in place.
    """
    message = schemas["ChatMessage"]
    role, content = message["properties"]["role"], message["properties"]["content"]
    calls = message["properties"]["tool_calls"]
    part = content["anyOf"][1]["items"]
    parts = {"anyOf": [part, {"type": "string"}]}
    text = {"anyOf": [{"type": "string"}, {"type": "array", "items": parts}, part]}
    nothing: dict[str, Any] = {name: {"enum": [None, [], {}, ""]} for name in _CONTENT}
    others = [one for one in role["enum"] if one not in ("assistant", "tool")]
    answer = {"anyOf": [*text["anyOf"], {"type": "null"}]}
    called = {"anyOf": [calls, {"enum": [None, {}, ""]}]}
    result = {"role": {"const": "tool"}, "content": answer, "tool_call_id": {"type": "string"}}
    schemas["ChatMessage"] = {
        "title": message["title"],
        "description": f"{message['description']} Fields that say who made it are passed over.",
        "anyOf": [
            _object({"role": {"enum": others}, "content": text} | nothing, "role", "content"),
            _object(
                {"role": {"const": "assistant"}, "content": answer, "tool_calls": called} | nothing,
                "role",
            ),
            _object(result | nothing, "role", "tool_call_id"),
        ],
    }
    schemas["TextPart"]["anyOf"] = [
        _object({"type": {"const": kind}, field: {"type": "string"}}, "type", field)
        for kind, field in _TEXTS.items()
    ] + [_object({"type": {"enum": [*_THOUGHTS]}}, "type")]
    for name in ("additionalProperties", "properties", "required"):
        del schemas["TextPart"][name]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


def _normalised(message: Any, where: str) -> Any:
    if not isinstance(message, dict):
        return message
    for name in _CONTENT:
        if message.get(name) not in (None, [], {}, ""):
            raise ApiProblem(
                400,
                f"{where} has {name}, which isn't supported here; this model reads text only",
                param=f"{where}.{name}",
                code="unsupported_parameter",
            )
    content = message.get("content")
    if content is None and message.get("role") in ("assistant", "tool"):
        content = message.get("refusal") or ""
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        if message.get("role") == "assistant":
            content = [part for part in content if not _is_thought(part)]
        content = [_part(part, where) for part in content]
    fields = {"role": message.get("role"), "content": content}
    if message.get("tool_calls") and message.get("role") == "assistant":
        fields["tool_calls"] = _without_null(message["tool_calls"])
    if message.get("role") == "tool":
        fields["tool_call_id"] = message.get("tool_call_id")
    return {name: value for name, value in fields.items() if value is not None}


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _THOUGHTS


def _without_null(calls: Any) -> Any:
    """Calls without fields that say nothing; what is in their arguments stays."""
    if not isinstance(calls, list):
        return calls
    kept = [
        {name: value for name, value in call.items() if value is not None}
        if isinstance(call, dict)
        else call
        for call in calls
    ]
    for call in kept:
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call["function"] = {k: v for k, v in call["function"].items() if v is not None}
    return kept


def _part(part: Any, where: str) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return part
    if kind not in _TEXTS:
        raise ApiProblem(
            400,
            f"{where} has a part of type {kind[:40]}; this model reads text only",
            param=f"{where}.content",
        )
    return {"type": "text"} | ({"text": part[_TEXTS[kind]]} if _TEXTS[kind] in part else {})


def continues_answer(
    messages: Sequence[Message], wanted: bool | None, add_generation_prompt: bool | None
) -> bool:
    """Whether the answer goes on with the last message instead of beginning a new one.

    An assistant's last message is continued, as vLLM's and llama.cpp's clients expect, unless
    `wanted` says no.

    Args:
        messages: at least one.
        wanted: `continue_final_message`, or the last message's `prefix`.
        add_generation_prompt: as the request has it.

    Raises:
        ApiProblem: 400; the two contradict each other or the messages.
    """
    is_answer = messages[-1]["role"] == "assistant"
    if not wanted:
        return is_answer and wanted is None
    if add_generation_prompt:
        raise ApiProblem(
            400,
            "continue_final_message and add_generation_prompt can't both be true; leave one out",
            param="continue_final_message",
        )
    if not is_answer:
        raise ApiProblem(
            400,
            "continue_final_message continues an assistant's message, and the last one is the "
            f"{messages[-1]['role']}'s; put the answer's beginning last",
            param="continue_final_message",
        )
    return True
