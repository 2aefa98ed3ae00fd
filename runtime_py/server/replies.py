"""Answers of OpenAI's chat completions and completions: whole, and as server-sent events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.server.events import Finished, Piece, Reading, Started
from edgeinfinite.runtime_py.server.logprobs import (
    Offsets,
    completion_logprobs_of,
    logprobs_of,
)
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.streaming import comment, event
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Thought

DONE = b"data: [DONE]\n\n"

_REPETITION = {"stop_reason": "repetition_detected"}
"""vLLM's name; `finish_reason` stays one that OpenAI's clients know."""


def _end(reason: str | None) -> dict[str, Any]:
    """Why a choice ended."""
    named = {"calls": "tool_calls", "repetition": "stop"}
    more = _REPETITION if reason == "repetition" else {}
    return {"finish_reason": named.get(reason or "", reason)} | more


@dataclass(frozen=True)
class Reply:
    """How one answer is written; see `streaming.Writer`.

    Args:
        model: the model's name.
        fingerprint: of the model's weights and geometry.
        chat: `/v1/chat/completions`, else `/v1/completions`.
        tokenizer: writes tokens beside their log-probabilities; None where nobody asked for them.
        streamed: the answer is written as events, not whole.
        with_progress: the stream says how far the prompt is read.
        with_usage: the stream ends with the tokens' counts.
    """

    model: str
    fingerprint: str
    chat: bool
    tokenizer: TextTokenizer | None
    streamed: bool = False
    with_progress: bool = False
    with_usage: bool = False
    number: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))
    _offsets: Offsets = field(default_factory=Offsets)
    _parts: list[object] = field(default_factory=list)

    def whole(self, started: Started, finished: Finished) -> dict[str, Any]:
        """The answer in one object."""
        pieces = [part for part in self._parts if isinstance(part, Piece)]
        text = "".join(piece.text for piece in pieces)
        logprobs = [one for piece in pieces for one in piece.logprobs]
        content: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if thought := "".join(part.text for part in self._parts if isinstance(part, Thought)):
            content["reasoning_content"] = thought
        if calls := self._calls():
            content |= {"content": text or None, "tool_calls": calls}
        said = {"message": content} if self.chat else {"text": text}
        choice = {
            "index": 0,
            **said,
            "logprobs": self._logprobs(logprobs),
            **_end(finished.reason),
        }
        usage = usage_of(started, finished)
        return self._head("chat.completion") | {"choices": [choice], "usage": usage}

    def first(self, started: Started) -> bytes:
        """The events before the first piece; completions have none but for progress."""
        begun = self._chunk({"role": "assistant", "content": ""}, None) if self.chat else b""
        if self.with_progress:
            begun += self._progress(started, Reading(started.cached_tokens, 0, 0.0))
        return begun

    def part(self, happened: object) -> bytes:
        self._parts.append(happened)
        if not self.streamed:
            return b""
        if isinstance(happened, Piece):
            said = {"content": happened.text} if self.chat else happened.text
            return self._chunk(said, None, happened.logprobs)
        if isinstance(happened, Thought):
            return self._chunk({"reasoning_content": happened.text}, None)
        at = sum(isinstance(part, CallBegun) for part in self._parts) - 1
        if isinstance(happened, CallBegun):
            return self._chunk({"tool_calls": [{"index": at} | self._call(at, happened)]}, None)
        assert isinstance(happened, CallPiece)
        piece = {"index": at, "function": {"arguments": happened.text}}
        return self._chunk({"tool_calls": [piece]}, None)

    def _calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        for part in self._parts:
            if isinstance(part, CallBegun):
                calls.append(self._call(len(calls), part))
            elif isinstance(part, CallPiece):
                calls[-1]["function"]["arguments"] += part.text
        return calls

    def _call(self, at: int, begun: CallBegun) -> dict[str, Any]:
        function = {"name": begun.name, "arguments": ""}
        return {"id": f"call_{self.number}{at:04x}", "type": "function", "function": function}

    def reading(self, started: Started, reading: Reading) -> bytes | None:
        return self._progress(started, reading) if self.with_progress else None

    def last(self, started: Started, finished: Finished) -> bytes:
        """The event that says why the answer ended, the counts if asked for, and the end."""
        ended = self._chunk({} if self.chat else "", finished.reason)
        if self.with_usage:
            head = self._head("chat.completion.chunk")
            ended += event(head | {"choices": [], "usage": usage_of(started, finished)})
        return ended + DONE

    def failed(self, problem: ApiProblem) -> bytes:
        return event(problem.body())

    def silence(self, text: str) -> bytes:
        return comment(text)

    def _progress(self, started: Started, reading: Reading) -> bytes:
        """How far the prompt is read, as llama.cpp's server says it."""
        so_far = {
            "total": started.prompt_tokens,
            "cache": started.cached_tokens,
            "processed": reading.tokens,
            "time_ms": round(1_000 * reading.seconds),
        }
        return self._chunk({} if self.chat else "", None, prompt_progress=so_far)

    def _chunk(
        self,
        said: Any,
        reason: str | None,
        logprobs: Sequence[TokenLogprobs] = (),
        **more: Any,
    ) -> bytes:
        choice = {
            "index": 0,
            "delta" if self.chat else "text": said,
            "logprobs": self._logprobs(logprobs) if logprobs else None,
            **_end(reason),
        }
        return event(self._head("chat.completion.chunk") | {"choices": [choice]} | more)

    def _logprobs(self, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any] | None:
        if self.tokenizer is None:
            return None
        if self.chat:
            return logprobs_of(self.tokenizer, logprobs)
        return completion_logprobs_of(self.tokenizer, logprobs, self._offsets)

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"{'chatcmpl' if self.chat else 'cmpl'}-{self.number}",
            "object": kind if self.chat else "text_completion",
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


def usage_of(started: Started, finished: Finished) -> dict[str, Any]:
    """Tokens, in OpenAI's words."""
    return {
        "prompt_tokens": started.prompt_tokens,
        "completion_tokens": finished.new_tokens,
        "total_tokens": started.prompt_tokens + finished.new_tokens,
        "prompt_tokens_details": {
            "cached_tokens": started.cached_tokens,
            "exact_tokens": finished.held.exact,
            "older_tokens": finished.held.older,
            "recall_slots": finished.held.slots,
        },
    }
