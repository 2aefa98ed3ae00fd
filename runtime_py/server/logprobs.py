r"""Log-probabilities as OpenAI's routes write them.

A token may be a part of a character, or have the text of another one. Its `bytes` are exact then.
Where only a text stands for it, it is written as OpenAI does (`bytes:\xf0\x9f`) or, where that text
is taken, as vLLM does (`token_id:260`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeinfinite.runtime_py.answer.logprobs import TokenLogprobs
from edgeinfinite.runtime_py.text.text_stream import TextStream
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer


def logprobs_of(tokenizer: TextTokenizer, logprobs: Sequence[TokenLogprobs]) -> dict[str, Any]:
    """Log-probabilities as `/v1/chat/completions` has them."""

    def token(number: int, logprob: float) -> dict[str, Any]:
        content = tokenizer.token_bytes(number)
        text = content.decode("utf-8", "replace")
        return {"token": text, "logprob": logprob, "bytes": list(content)}

    content = [
        token(one.token, one.logprob) | {"top_logprobs": [token(*likely) for likely in one.top]}
        for one in logprobs
    ]
    return {"content": content, "refusal": None}


class Offsets:
    """Where each token of one answer begins in its text, in characters."""

    def __init__(self) -> None:
        self._stream: TextStream | None = None
        self._characters = 0

    def of(self, tokenizer: TextTokenizer, token: int) -> int:
        """The place of the next token; that of a part of a character is the character's."""
        if self._stream is None:
            self._stream = tokenizer.stream(begins=False)
        before, held = self._characters, self._stream.holds
        self._characters += len(self._stream.push(token))
        first = tokenizer.token_bytes(token)[:1]
        # What waited for its end and gets another beginning is one U+FFFD before it.
        return before + (held and bool(first) and not 0x80 <= first[0] < 0xC0)


def completion_logprobs_of(
    tokenizer: TextTokenizer, logprobs: Sequence[TokenLogprobs], offsets: Offsets
) -> dict[str, Any]:
    """Log-probabilities as `/v1/completions` has them.

    Args:
        tokenizer: writes the tokens.
        logprobs: the next tokens of the answer.
        offsets: of the answer's tokens so far.
    """
    listed = [_by_text(tokenizer, one) for one in logprobs]
    return {
        "tokens": [text for text, _ in listed],
        "token_logprobs": [one.logprob for one in logprobs],
        "top_logprobs": [top for _, top in listed],
        "text_offset": [offsets.of(tokenizer, one.token) for one in logprobs],
    }


def _by_text(tokenizer: TextTokenizer, one: TokenLogprobs) -> tuple[str, dict[str, float]]:
    """How the chosen token is written, and the likely ones by how they are written."""
    names: dict[int, str] = {}
    top: dict[str, float] = {}
    for number, logprob in one.top:
        text = _text(tokenizer, number)
        names[number] = text if text not in top else f"token_id:{number}"
        top[names[number]] = logprob
    return names.get(one.token) or _text(tokenizer, one.token), top


def _text(tokenizer: TextTokenizer, token: int) -> str:
    content = tokenizer.token_bytes(token)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
