"""A response: as an object, and as the events by which it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from edgeinfinite.runtime_py.server.events import (
    Finished,
    Held,
    Piece,
    Reading,
    Started,
)
from edgeinfinite.runtime_py.server.logprobs import logprobs_of
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.streaming import comment, event
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Thought

_Object = dict[str, Any]


class ResponseWriter:
    """See `streaming.Writer`. Output items grow in place; at most the last one is open.

    Args:
        number: of the response, unguessable; ids are made of it.
        head: what the response repeats of its request.
        tokenizer: writes tokens beside their log-probabilities; None where nobody asked for them.
        namespaces: of tools, by `NAMESPACE.NAME`; a call is told as both.
    """

    def __init__(
        self,
        number: str,
        head: _Object,
        tokenizer: TextTokenizer | None,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        self.number = number
        self.output: list[_Object] = []
        self._tokenizer = tokenizer
        self._namespaces = namespaces or {}
        self._events = 0
        self._open = False
        self._response: _Object = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            **head,
            "output": [],
            "usage": None,
        }

    def first(self, started: Started) -> bytes:
        created, going = (
            self._event(f"response.{kind}", response=dict(self._response))
            for kind in ("created", "in_progress")
        )
        return created + going

    def reading(self, started: Started, reading: Reading) -> bytes | None:
        return None

    def silence(self, text: str) -> bytes:
        return comment(text)

    def part(self, happened: object) -> bytes:
        if isinstance(happened, Piece):
            return self._text(happened)
        if isinstance(happened, Thought):
            return self._thought(happened.text)
        if isinstance(happened, CallBegun):
            return self._call(happened.name)
        assert isinstance(happened, CallPiece)
        self.output[-1]["arguments"] += happened.text
        return self._of_item("response.function_call_arguments.delta", delta=happened.text)

    def last(self, started: Started, finished: Finished) -> bytes:
        closed = self._text(Piece("")) if not self.output else b""
        closed += self._close("incomplete" if finished.reason == "length" else "completed")
        response = self.whole(started, finished)
        return closed + self._event(f"response.{response['status']}", response=response)

    def whole(self, started: Started, finished: Finished) -> _Object:
        cut = finished.reason == "length"
        status = "incomplete" if cut else "completed"
        if not self.output:
            self._text(Piece(""))
        self._close(status)
        return self._response | {
            "status": status,
            "completed_at": None if cut else int(time.time()),
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": self.output,
            "usage": usage_of(started, finished),
        }

    def failed(self, problem: ApiProblem) -> bytes:
        code = "server_error" if problem.status >= 500 else "invalid_prompt"
        error = {"code": code, "message": problem.message}
        return self._event(
            "response.failed",
            response=self._response | {"status": "failed", "error": error, "output": self.output},
        )

    def _text(self, piece: Piece) -> bytes:
        told = self._begin(
            "message",
            lambda: {
                "id": f"msg_{self.number}{len(self.output):04x}",
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            },
            {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
        )
        part = self.output[-1]["content"][0]
        part["text"] += piece.text
        logprobs: list[_Object] = []
        if self._tokenizer is not None:
            logprobs = logprobs_of(self._tokenizer, piece.logprobs)["content"]
            part["logprobs"] += logprobs
        if piece.text or logprobs:
            told += self._of_item(
                "response.output_text.delta", content_index=0, delta=piece.text, logprobs=logprobs
            )
        return told

    def _thought(self, text: str) -> bytes:
        told = self._begin(
            "reasoning",
            lambda: {
                "id": f"rs_{self.number}{len(self.output):04x}",
                "type": "reasoning",
                "status": "in_progress",
                "summary": [],
                "content": [],
            },
            {"type": "reasoning_text", "text": ""},
        )
        self.output[-1]["content"][0]["text"] += text
        return told + self._of_item("response.reasoning_text.delta", content_index=0, delta=text)

    def _call(self, name: str) -> bytes:
        told = self._close("completed")
        at = len(self.output)
        space = self._namespaces.get(name)
        named = {"name": name}
        if space is not None:
            named = {"name": name.removeprefix(f"{space}."), "namespace": space}
        self.output.append(
            {
                "id": f"fc_{self.number}{at:04x}",
                "type": "function_call",
                "status": "in_progress",
                "call_id": f"call_{self.number[:20]}{at:04x}",
                **named,
                "arguments": "",
            }
        )
        self._open = True
        return told + self._item("added")

    def _begin(self, kind: str, item: Callable[[], _Object], part: _Object) -> bytes:
        """Makes an item of this kind the open one; nothing where it is."""
        if self._open and self.output[-1]["type"] == kind:
            return b""
        told = self._close("completed")
        self.output.append(item())
        self._open = True
        told += self._item("added")
        self.output[-1]["content"] = [
            dict(part, **({"logprobs": []} if "logprobs" in part else {}))
        ]
        return told + self._of_item("response.content_part.added", content_index=0, part=dict(part))

    def _close(self, status: str) -> bytes:
        if not self._open:
            return b""
        self._open = False
        item = self.output[-1]
        item["status"] = status
        if item["type"] == "function_call":
            done = {"arguments": item["arguments"], "name": item["name"]}
            told = self._of_item("response.function_call_arguments.done", **done)
            return told + self._item("done")
        part = item["content"][0]
        logprobs = {"logprobs": part["logprobs"]} if "logprobs" in part else {}
        kind = f"response.{part['type']}.done"
        told = self._of_item(kind, content_index=0, text=part["text"], **logprobs)
        told += self._of_item("response.content_part.done", content_index=0, part=part)
        return told + self._item("done")

    def _item(self, what: str) -> bytes:
        return self._event(
            f"response.output_item.{what}",
            output_index=len(self.output) - 1,
            item=self.output[-1],
        )

    def _of_item(self, kind: str, **fields: Any) -> bytes:
        at = len(self.output) - 1
        return self._event(kind, item_id=self.output[at]["id"], output_index=at, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number = self._events
        self._events += 1
        return event({"type": kind, "sequence_number": number} | fields, kind)


def usage_of(started: Started, finished: Finished) -> _Object:
    """Tokens, in this API's words; what the state holds of all that was read beside them."""
    return {
        "input_tokens": started.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": started.cached_tokens,
            "cache_write_tokens": 0,
            **held_of(finished.held),
        },
        "output_tokens": finished.new_tokens,
        "output_tokens_details": {"reasoning_tokens": finished.thought_tokens},
        "total_tokens": started.prompt_tokens + finished.new_tokens,
    }


def held_of(held: Held) -> _Object:
    """How much of the text so far is attended to exactly, and how much by recall slots."""
    return {
        "exact_tokens": held.exact,
        "older_tokens": held.older,
        "recall_slots": held.slots,
    }
