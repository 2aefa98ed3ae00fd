"""Tools that a request declares, and what an answer's parts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Choice = Literal["auto", "required", "none"]


@dataclass(frozen=True)
class Tool:
    """A function that the model may ask for.

    Args:
        name: of letters, digits, `_`, `-` and `.`.
        description: for the model.
        parameters: the JSON schema of its arguments, an object.
        strict: a schema that can't be held to is refused; else the arguments are any object then.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False

    def declared(self) -> dict[str, Any]:
        """As chat templates know it."""
        function = {"name": self.name, "description": self.description}
        return {"type": "function", "function": function | {"parameters": dict(self.parameters)}}


@dataclass(frozen=True)
class Tools:
    """The tools of a request.

    Args:
        all: those that the model is told of; none for a request without.
        choice: whether it may, must or mustn't call one.
        only: the names of those that it may call; empty for all.
        parallel: it may call several at once.
    """

    all: tuple[Tool, ...] = ()
    choice: Choice = "auto"
    only: tuple[str, ...] = ()
    parallel: bool = True

    @property
    def callable(self) -> tuple[Tool, ...]:
        """Those that may be called now."""
        if self.choice == "none":
            return ()
        return tuple(tool for tool in self.all if not self.only or tool.name in self.only)


NO_TOOLS = Tools()


@dataclass(frozen=True)
class Said:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class Thought:
    """A piece of the model's reasoning, which isn't part of the answer."""

    text: str


@dataclass(frozen=True)
class CallBegun:
    """The answer calls a tool; the call before it, if any, is whole."""

    name: str


@dataclass(frozen=True)
class CallPiece:
    """A piece of the call's arguments, which together are a JSON object."""

    text: str


Part = Said | Thought | CallBegun | CallPiece

Call = tuple[str, dict[str, Any]]
"""A tool's name and arguments."""


def calls_in(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The functions that an assistant's message calls: `name`, and `arguments` as an object."""
    return [call["function"] for call in message.get("tool_calls") or ()]
