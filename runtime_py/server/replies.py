"""OpenAI's answers: whole, and as server-sent events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.server.answers import Finished, Piece, Reading, Started
from edgeinfinite.runtime_py.server.logprobs import (
    Offsets,
    completion_logprobs_of,
    logprobs_of,
)
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

DONE = b"data: [DONE]\n\n"


_LINE_ENDS = {sign.encode(): f"\\u{ord(sign):04x}".encode() for sign in "\x85\u2028\u2029"}
"""Characters that end a line for clients that split text by Unicode's rules."""


def event(content: Any) -> bytes:
    """A value as a server-sent event, one line in whatever way a client splits lines."""
    data = msgspec.json.encode(content)
    for sign, escape in _LINE_ENDS.items():
        data = data.replace(sign, escape)
    return b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """One line that clients of OpenAI's API skip; it keeps a connection alive in a long prefill."""
    return f": {text}\n".encode()


@dataclass(frozen=True)
class Reply:
    """How one answer is written.

    Args:
        model: the model's name.
        fingerprint: of the model's weights and geometry.
        chat: `/v1/chat/completions`, else `/v1/completions`.
        tokenizer: writes tokens beside their log-probabilities; None where nobody asked for them.
    """

    model: str
    fingerprint: str
    chat: bool
    tokenizer: TextTokenizer | None
    number: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))
    _offsets: Offsets = field(default_factory=Offsets)

    def whole(
        self, pieces: Sequence[Piece], started: Started, finished: Finished
    ) -> dict[str, Any]:
        """The answer in one object."""
        text = "".join(piece.text for piece in pieces)
        logprobs = [one for piece in pieces for one in piece.logprobs]
        content = {"role": "assistant", "content": text, "refusal": None}
        said = {"message": content} if self.chat else {"text": text}
        choice = {
            "index": 0,
            **said,
            "logprobs": self._logprobs(logprobs),
            "finish_reason": finished.reason,
        }
        usage = usage_of(started, finished)
        return self._head("chat.completion") | {"choices": [choice], "usage": usage}

    def first(self) -> bytes:
        """The event before the first piece; empty for completions, which have none."""
        if not self.chat:
            return b""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def piece(self, piece: Piece) -> bytes:
        said = {"content": piece.text} if self.chat else piece.text
        return self._chunk(said, None, piece.logprobs)

    def progress(self, started: Started, reading: Reading) -> bytes:
        """How far the prompt is read, as llama.cpp's server says it."""
        so_far = {
            "total": started.prompt_tokens,
            "cache": started.cached_tokens,
            "processed": reading.tokens,
            "time_ms": round(1_000 * reading.seconds),
        }
        return self._chunk({} if self.chat else "", None, prompt_progress=so_far)

    def last(self, finished: Finished) -> bytes:
        """The event that says why the answer ended."""
        return self._chunk({} if self.chat else "", finished.reason)

    def usage(self, started: Started, finished: Finished) -> bytes:
        """The event that `include_usage` asks for."""
        head = self._head("chat.completion.chunk")
        return event(head | {"choices": [], "usage": usage_of(started, finished)})

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
            "finish_reason": reason,
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
        "prompt_tokens_details": {"cached_tokens": started.cached_tokens},
    }
