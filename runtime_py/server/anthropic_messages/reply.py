"""A message: as an object, and as the events by which it grows."""

from __future__ import annotations

import json
from typing import Any

from edgeinfinite.runtime_py.server.anthropic_messages.errors import error_of
from edgeinfinite.runtime_py.server.events import (
    Finished,
    Piece,
    Reading,
    Started,
)
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.streaming import event
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Thought

_Object = dict[str, Any]


class MessageWriter:
    """See `streaming.Writer`. Content blocks grow in place; at most the last one is open.

    Args:
        number: of the message, unguessable; ids are made of it.
        model: its name.
    """

    def __init__(self, number: str, model: str) -> None:
        self._number = number
        self._model = model
        self._blocks: list[_Object] = []
        self._arguments = ""
        self._open = False

    def first(self, started: Started) -> bytes:
        usage = _input_usage(started) | {"output_tokens": 0}
        message = self._message(usage) | {"content": []}
        return event({"type": "message_start", "message": message}, "message_start")

    def reading(self, started: Started, reading: Reading) -> bytes | None:
        return None

    def silence(self, text: str) -> bytes:
        return event({"type": "ping"}, "ping")

    def part(self, happened: object) -> bytes:
        if isinstance(happened, Piece):
            if not happened.text:
                return b""
            return self._add("text", "text", happened.text, {})
        if isinstance(happened, Thought):
            return self._add("thinking", "thinking", happened.text, {"signature": ""})
        if isinstance(happened, CallBegun):
            at = len(self._blocks)
            return self._begin(
                {
                    "type": "tool_use",
                    "id": f"toolu_{self._number[:20]}{at:04x}",
                    "name": happened.name,
                    "input": {},
                }
            )
        assert isinstance(happened, CallPiece)
        self._arguments += happened.text
        return self._delta({"type": "input_json_delta", "partial_json": happened.text})

    def last(self, started: Started, finished: Finished) -> bytes:
        closed = self._close()
        if not self._blocks:
            closed += self._begin({"type": "text", "text": ""}) + self._close()
        ended = {
            "type": "message_delta",
            "delta": _end(finished),
            "usage": usage_of(started, finished),
        }
        return (
            closed + event(ended, "message_delta") + event({"type": "message_stop"}, "message_stop")
        )

    def whole(self, started: Started, finished: Finished) -> _Object:
        self._close()
        return self._message(usage_of(started, finished)) | _end(finished)

    def failed(self, problem: ApiProblem) -> bytes:
        return event(error_of(problem), "error")

    def _message(self, usage: _Object) -> _Object:
        return {
            "id": f"msg_{self._number}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": self._blocks,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }

    def _add(self, kind: str, field: str, text: str, more: _Object) -> bytes:
        told = b""
        if not self._open or self._blocks[-1]["type"] != kind:
            told = self._begin({"type": kind, field: "", **more})
        self._blocks[-1][field] += text
        return told + self._delta({"type": f"{kind}_delta", field: text})

    def _begin(self, block: _Object) -> bytes:
        told = self._close()
        self._blocks.append(block)
        self._open, self._arguments = True, ""
        at = len(self._blocks) - 1
        begun = {"type": "content_block_start", "index": at, "content_block": dict(block)}
        return told + event(begun, "content_block_start")

    def _delta(self, delta: _Object) -> bytes:
        at = len(self._blocks) - 1
        grown = {"type": "content_block_delta", "index": at, "delta": delta}
        return event(grown, "content_block_delta")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = False
        block, told = self._blocks[-1], b""
        if block["type"] == "tool_use":
            block["input"] = _input(self._arguments)
        if block["type"] == "thinking":  # clients expect one; nobody checks it
            told = self._delta({"type": "signature_delta", "signature": ""})
        stopped = {"type": "content_block_stop", "index": len(self._blocks) - 1}
        return told + event(stopped, "content_block_stop")


def _input(arguments: str) -> _Object:
    """A call's arguments; empty where the answer was cut within them."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _end(finished: Finished) -> _Object:
    reason = {"calls": "tool_use", "length": "max_tokens"}.get(finished.reason, "end_turn")
    if finished.reason == "stop" and finished.stop is not None:
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": finished.stop}


def _input_usage(started: Started) -> _Object:
    return {
        "input_tokens": started.prompt_tokens - started.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": started.cached_tokens,
    }


def usage_of(started: Started, finished: Finished) -> _Object:
    """Tokens, in this API's words; what the state holds of all that was read beside them."""
    return _input_usage(started) | {
        "output_tokens": finished.new_tokens,
        "exact_tokens": finished.held.exact,
        "older_tokens": finished.held.older,
        "recall_slots": finished.held.slots,
    }
