"""OpenAI's answers: whole, and as server-sent events."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgeinfinite.runtime_py.server.answers import Finished, Started

DONE = b"data: [DONE]\n\n"


def event(content: Any) -> bytes:
    """A value as a server-sent event."""
    return b"data: " + msgspec.json.encode(content) + b"\n\n"


def comment(text: str) -> bytes:
    """A line that clients of OpenAI's API skip; it keeps a connection alive in a long prefill."""
    return f": {text}\n\n".encode()


@dataclass(frozen=True)
class Reply:
    """How one answer is written.

    Args:
        model: the model's name.
        fingerprint: of the model's weights and geometry.
        chat: `/v1/chat/completions`, else `/v1/completions`.
    """

    model: str
    fingerprint: str
    chat: bool
    number: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, text: str, started: Started, finished: Finished) -> dict[str, Any]:
        """The answer in one object."""
        content = {"role": "assistant", "content": text, "refusal": None}
        said = {"message": content} if self.chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": finished.reason}
        usage = usage_of(started, finished)
        return self._head("chat.completion") | {"choices": [choice], "usage": usage}

    def first(self) -> bytes:
        """The event before the first piece; empty for completions, which have none."""
        if not self.chat:
            return b""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def piece(self, text: str) -> bytes:
        return self._chunk({"content": text} if self.chat else text, None)

    def last(self, finished: Finished) -> bytes:
        """The event that says why the answer ended."""
        return self._chunk({} if self.chat else "", finished.reason)

    def usage(self, started: Started, finished: Finished) -> bytes:
        """The event that `include_usage` asks for."""
        head = self._head("chat.completion.chunk")
        return event(head | {"choices": [], "usage": usage_of(started, finished)})

    def _chunk(self, said: Any, reason: str | None) -> bytes:
        name = "delta" if self.chat else "text"
        choice = {"index": 0, name: said, "logprobs": None, "finish_reason": reason}
        return event(self._head("chat.completion.chunk") | {"choices": [choice]})

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
