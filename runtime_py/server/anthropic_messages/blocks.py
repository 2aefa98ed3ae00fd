"""Messages of content blocks, as messages that a chat template knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeinfinite.runtime_py.server.declared import Calls, with_calls
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.text.chat_template import Message

_ROLES = ("user", "assistant", "system")
_PASSED_OVER = ("thinking", "redacted_thinking")
"""Reasoning isn't given back to the model: chat templates leave that of earlier answers out."""


def messages_of(system: str | Sequence[Any], given: Sequence[dict[str, Any]]) -> list[Message]:
    """The conversation.

    Raises:
        ApiProblem: 400; a block isn't text, or the result of no call.
    """
    messages: list[Message] = []
    calls = Calls()
    head = system if isinstance(system, str) else _joined(_texts(system, "system"))
    if head:
        messages.append({"role": "system", "content": head})
    for i, message in enumerate(given):
        messages += _messages(message, calls, f"messages[{i}]")
    return messages


def _messages(message: dict[str, Any], calls: Calls, where: str) -> list[Message]:
    """One message; results of tools are messages of their own, before what the user says."""
    role = message.get("role")
    if role not in _ROLES:
        raise ApiProblem(
            400, f"{where}.role is {role!r:.40}; one of {', '.join(_ROLES)}", param=f"{where}.role"
        )
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": str(role), "content": content}]
    others, made, results = [], [], []
    for i, block in enumerate(content if isinstance(content, list) else ()):
        at = f"{where}.content[{i}]"
        if kind_of(block) == "tool_use" and role == "assistant":
            made.append(calls.made(block.get("id"), block.get("name"), block.get("input"), at))
        elif kind_of(block) == "tool_result" and role == "user":
            results.append(calls.answered(block.get("tool_use_id"), _result(block, at), at))
        else:
            others.append(block)
    text = _joined(_texts(others if isinstance(content, list) else content, f"{where}.content"))
    if role == "assistant":
        return [with_calls(text, made)]
    said: list[Message] = [{"role": str(role), "content": text}]
    return [*results, *(said if text or not results else [])]


def _result(block: dict[str, Any], where: str) -> str:
    content = block.get("content") or ""
    text = content if isinstance(content, str) else _joined(_texts(content, f"{where}.content"))
    return f"Error: {text}" if block.get("is_error") is True else text


def _texts(content: Any, where: str) -> list[str]:
    """The texts of a list of blocks."""
    if not isinstance(content, list):
        raise ApiProblem(400, f"{where} is no text; give a string or a list of blocks", param=where)
    texts = []
    for i, block in enumerate(content):
        kind = kind_of(block)
        if kind in _PASSED_OVER:
            continue
        texts.append(text_of(block, f"{where}[{i}]"))
    return texts


def kind_of(block: Any) -> str:
    """A block's type; "" for what is none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def text_of(block: Any, where: str) -> str:
    """The text of a block.

    Raises:
        ApiProblem: 400; it isn't one of text.
    """
    if isinstance(block, str):
        return block
    if kind_of(block) != "text":
        raise ApiProblem(
            400,
            f"{where} is of type {kind_of(block)[:40] or 'none'}; this model reads text only",
            param=where,
        )
    text = block.get("text")
    if not isinstance(text, str):
        raise ApiProblem(400, f"{where} has no text; give a string", param=where)
    return text


def _joined(texts: Sequence[str]) -> str:
    """Blocks are paragraphs: clients send instructions, reminders and questions as blocks."""
    return "\n\n".join(text for text in texts if text)
