"""Tools, calls and results as requests of any API have them, for `ask.Talk`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.text.chat_template import Message
from edgeinfinite.runtime_py.tools.tool import Choice, Tool, Tools

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MOST_TOOLS = 256
_ID_LENGTH = 9
"""Of calls' ids for chat templates: Mistral's take no other."""


def tool_of(given: Mapping[str, Any], where: str, *, schema: str) -> Tool:
    """A declared tool.

    Args:
        given: its `name`, `description` and `strict`.
        where: it stands in the request.
        schema: the name of the field that holds its arguments' schema.

    Raises:
        ApiProblem: 400, it isn't one.
    """
    name, description, parameters = (given.get(key) for key in ("name", "description", schema))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ApiProblem(
            400,
            f"{where}.name is {name!r:.60}; give up to 128 letters, digits, _, - and dots",
            param=f"{where}.name",
        )
    if description is not None and not isinstance(description, str):
        raise ApiProblem(400, f"{where}.description is no text", param=f"{where}.description")
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise ApiProblem(
            400, f"{where}.{schema} is no schema of an object", param=f"{where}.{schema}"
        )
    return Tool(name, description or "", parameters, given.get("strict") is True)


def tools_of(
    declared: Iterable[Tool], choice: Choice, only: Sequence[str], *, parallel: bool
) -> Tools:
    """The tools of a request.

    Raises:
        ApiProblem: 400; two have the same name, the chosen one isn't there, or there are too many.
    """
    tools = tuple(declared)
    names = [tool.name for tool in tools]
    if len(tools) > _MOST_TOOLS:
        raise ApiProblem(400, f"tools: give at most {_MOST_TOOLS}", param="tools")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ApiProblem(400, f"tools: {twice} is declared twice", param="tools")
    missing = next((name for name in only if name not in names), None)
    if missing is not None or (choice == "required" and not tools):
        what = (
            f"tool_choice: there is no tool {missing!r:.80}"
            if missing
            else "tool_choice: tools are missing"
        )
        raise ApiProblem(400, f"{what}; declare it", param="tool_choice")
    one_by_name = choice == "required" and len(only) == 1  # as OpenAI: exactly one call of it
    return Tools(tools, choice, tuple(only), parallel and not one_by_name)


class Calls:
    """The calls of a conversation so far, by which results find theirs.

    Args:
        messages: of an earlier request.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._names = {
            call["id"]: call["function"]["name"]
            for message in messages
            for call in message.get("tool_calls") or ()
        }

    def made(self, number: Any, name: Any, arguments: Any, where: str) -> dict[str, Any]:
        """A call as chat templates know it.

        Args:
            number: the client's id of it.
            name: of the tool.
            arguments: an object, or JSON of one.
            where: it stands in the request.

        Raises:
            ApiProblem: 400, it isn't one.
        """
        if not isinstance(number, str) or not isinstance(name, str):
            raise ApiProblem(400, f"{where} is no call; give its id and name", param=where)
        if isinstance(arguments, str):
            try:
                arguments = msgspec.json.decode(arguments or "{}")
            except (msgspec.DecodeError, RecursionError) as error:
                raise ApiProblem(
                    400, f"{where}: the arguments aren't JSON: {error}", param=where
                ) from error
        if not isinstance(arguments, dict):
            raise ApiProblem(400, f"{where}: the arguments are no object", param=where)
        self._names[_short(number)] = name
        function = {"name": name, "arguments": arguments}
        return {"id": _short(number), "type": "function", "function": function}

    def answered(self, number: Any, result: str, where: str) -> Message:
        """A result as chat templates know it.

        Raises:
            ApiProblem: 400, there is no such call before it.
        """
        name = self._names.get(_short(number)) if isinstance(number, str) else None
        if name is None:
            raise ApiProblem(
                400, f"{where} is the result of no call before it; send the call, too", param=where
            )
        return {
            "role": "tool",
            "content": result,
            "name": name,
            "tool_call_id": _short(str(number)),
        }


def with_calls(content: str, calls: Sequence[dict[str, Any]]) -> Message:
    """An assistant's message."""
    plain = {"role": "assistant", "content": content}
    return plain | {"tool_calls": [*calls]} if calls else plain


def _short(number: str) -> str:
    return hashlib.sha256(number.encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]
