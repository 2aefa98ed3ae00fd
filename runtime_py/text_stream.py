"""Tokens of one answer to text, a piece per token."""

from __future__ import annotations

from tokenizers import Tokenizer

from edgeinfinite.runtime_py.tokenizer_check import guarded

_REPLACEMENT = "\ufffd"


class TextStream:
    """Streaming detokenisation: pieces of text that never end in half a UTF-8 character.

    The pieces of `push` and the last one of `flush`, joined, are `TextTokenizer.decode` of all
    tokens; only an unfinished character at the very end is left out.

    The library's own `DecodeStream` isn't used: with byte-fallback tokenizers (Llama 2, Gemma) it
    raises "Invalid prefix" as soon as a model emits broken UTF-8.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._shown: list[int] = []  # tokens of the last piece: what follows may need them
        self._held: list[int] = []  # tokens that have shown nothing yet

    def push(self, token: int) -> str:
        """The text that `token` completes, often empty."""
        self._held.append(token)
        piece = self._held_text()
        if not piece or piece.endswith(_REPLACEMENT):
            return ""
        self._shown, self._held = self._held, []
        return piece

    def flush(self) -> str:
        """The rest of the answer's text, when no token follows."""
        piece = self._held_text()
        # A real U+FFFD in the answer looks like an unfinished character, but encodes to itself.
        encoded = guarded(
            "the tokenizer can't read its own text",
            lambda: self._tokenizer.encode(piece, add_special_tokens=False).ids,
        )
        if encoded[-len(self._held) :] != self._held:
            piece = piece.rstrip(_REPLACEMENT)
        self._shown, self._held = self._held, []
        return piece

    def _held_text(self) -> str:
        shown = self._decode(self._shown)
        return self._decode(self._shown + self._held)[len(shown) :]

    def _decode(self, ids: list[int]) -> str:
        return guarded(
            "the tokenizer can't write the answer",
            lambda: self._tokenizer.decode(ids, skip_special_tokens=True),
        )
