"""OpenAI's answers: whole, and as server-sent events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgeinfinite.runtime_py.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.server.answers import Finished, Piece, Started
from edgeinfinite.runtime_py.tokenizer import TextTokenizer

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
        tokenizer: writes tokens beside their log-probabilities; None where nobody asked for them.
    """

    model: str
    fingerprint: str
    chat: bool
    tokenizer: TextTokenizer | None
    number: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

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

    def last(self, finished: Finished) -> bytes:
        """The event that says why the answer ended."""
        return self._chunk({} if self.chat else "", finished.reason)

    def usage(self, started: Started, finished: Finished) -> bytes:
        """The event that `include_usage` asks for."""
        head = self._head("chat.completion.chunk")
        return event(head | {"choices": [], "usage": usage_of(started, finished)})

    def _chunk(
        self, said: Any, reason: str | None, logprobs: Sequence[TokenLogprobs] = ()
    ) -> bytes:
        choice = {
            "index": 0,
            "delta" if self.chat else "text": said,
            "logprobs": self._logprobs(logprobs) if logprobs else None,
            "finish_reason": reason,
        }
        return event(self._head("chat.completion.chunk") | {"choices": [choice]})

    def _logprobs(self, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any] | None:
        if self.tokenizer is None:
            return None
        written = logprobs_of if self.chat else completion_logprobs_of
        return written(self.tokenizer, logprobs)

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


def logprobs_of(tokenizer: TextTokenizer, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any]:
    """Log-probabilities as `/v1/chat/completions` has them."""

    def token(number: int, logprob: float) -> dict[str, Any]:
        text = tokenizer.decode([number])
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    content = [
        token(one.token, one.logprob) | {"top_logprobs": [token(*likely) for likely in one.top]}
        for one in logprobs
    ]
    return {"content": content, "refusal": None}


def completion_logprobs_of(
    tokenizer: TextTokenizer, logprobs: Sequence[TokenLogprobs]
) -> dict[str, Any]:
    """Log-probabilities as `/v1/completions` has them."""
    return {
        "tokens": [tokenizer.decode([one.token]) for one in logprobs],
        "token_logprobs": [one.logprob for one in logprobs],
        "top_logprobs": [
            {tokenizer.decode([number]): logprob for number, logprob in one.top} for one in logprobs
        ],
    }
