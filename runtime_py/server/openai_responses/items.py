"""The items of a response's input, as messages that a chat template knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeinfinite.runtime_py.server.declared import Calls, with_calls
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.text.chat_template import Message

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""The kinds of parts that are text, and where theirs stands."""

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def messages_of(
    given: str | Sequence[str | dict[str, Any]], earlier: Sequence[Message] = ()
) -> list[Message]:
    """The messages of an input.

    Reasoning isn't given back to the model: chat templates leave that of earlier answers out.

    Args:
        given: a text, or items.
        earlier: the conversation that it follows.

    Raises:
        ApiProblem: 400; an item isn't text, or the result of no call.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[Message] = []
    calls = Calls(earlier)
    for i, item in enumerate(given):
        where = f"input[{i}]"
        if isinstance(item, str):
            item = {"role": "user", "content": item}
        kind = item.get("type") or "message"
        if kind == "message":
            messages.append(_message(item, where))
        elif kind == "function_call":
            name = item.get("name")
            if isinstance(space := item.get("namespace"), str) and space:
                name = f"{space}.{name}"
            call = calls.made(item.get("call_id"), name, item.get("arguments"), where)
            _add_call(messages, call)
        elif kind == "function_call_output":
            result = text_of(item.get("output"), f"{where}.output")
            messages.append(calls.answered(item.get("call_id"), result, where))
        elif kind != "reasoning":
            raise ApiProblem(
                400,
                f"{where} is of type {kind!s:.40}; this model reads text, calls and results only",
                param=where,
            )
    return messages


def _add_call(messages: list[Message], call: dict[str, Any]) -> None:
    """A call belongs to the assistant's message before it, if there is one."""
    before: Message = messages[-1] if messages else {}
    if before.get("role") == "assistant":
        messages[-1] = with_calls(before["content"], [*before.get("tool_calls", ()), call])
    else:
        messages.append(with_calls("", [call]))


def input_items(given: str | Sequence[str | dict[str, Any]], number: str) -> list[dict[str, Any]]:
    """The input as `input_items` lists it: every item with a type and an id.

    Args:
        given: as it came.
        number: of the response, from which ids are made.
    """
    items = [given] if isinstance(given, str) else given
    listed = []
    for i, item in enumerate(items):
        if isinstance(item, str):
            item = {"role": "user", "content": item}
        kind = item.get("type") or "message"
        short = "msg" if kind == "message" else "item"
        whole = {"id": f"{short}_{number}{i:04x}", **item, "type": kind}
        if isinstance(item.get("content"), str) and kind == "message":
            own = "output_text" if item.get("role") == "assistant" else "input_text"
            whole["content"] = [{"type": own, "text": item["content"]}]
        listed.append(whole)
    return listed


def _message(item: dict[str, Any], where: str) -> Message:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ApiProblem(
            400,
            f"{where}.role is {role!r:.40}; one of user, assistant, system, developer",
            param=f"{where}.role",
        )
    content = item.get("content")
    if content is None and role == "assistant":
        content = ""
    return {"role": _ROLES[role], "content": text_of(content, f"{where}.content")}


def text_of(content: Any, where: str) -> str:
    """The text of a content, a string or a list of parts.

    Raises:
        ApiProblem: 400; it holds something else.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ApiProblem(400, f"{where} is no text; give a string or a list of parts", param=where)
    return "".join(_part(part, f"{where}[{i}]") for i, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in _TEXTS:
        raise ApiProblem(
            400, f"{where} is of type {kind!s:.40}; this model reads text only", param=where
        )
    text = part.get(_TEXTS[kind])
    if not isinstance(text, str):
        raise ApiProblem(400, f"{where} has no {_TEXTS[kind]}; give a string", param=where)
    return text
