"""Tokens of one answer to text, a piece per token."""

from __future__ import annotations

import codecs
from collections.abc import Collection

from tokenizers import Tokenizer

from edgeinfinite.runtime_py.text.token_bytes import TokenBytes


class TextStream:
    """Streaming detokenisation: pieces of text that never end in half a UTF-8 character.

    The pieces of `push` and the last one of `flush`, joined, are the text of all tokens without the
    special ones; only an unfinished character at the very end is left out. Broken UTF-8 reads as
    U+FFFD as soon as it is known to be broken: at most three bytes wait for the next token.

    The library's own `DecodeStream` isn't used: with byte-fallback tokenizers (Llama 2, Gemma) it
    raises "Invalid prefix" as soon as a model emits broken UTF-8.

    Args:
        tokens: the vocabulary's bytes, or the tokenizer that has them.
        begins: whether the text begins here. SentencePiece's decoders then leave the space before
            the first word out, as `TextTokenizer.decode` does; a text that goes on needs it.
        shown: special tokens whose texts aren't left out.
    """

    def __init__(
        self,
        tokens: TokenBytes | Tokenizer,
        *,
        begins: bool = False,
        shown: Collection[int] = (),
    ) -> None:
        self._tokens = tokens if isinstance(tokens, TokenBytes) else TokenBytes(tokens)
        self._begins = begins
        self._shown = frozenset(shown)
        self._previous: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def holds(self) -> bool:
        """Whether the newest token ends within a character."""
        return bool(self._decoder.getstate()[0])

    def push(self, token: int) -> str:
        """The text that `token` completes, often empty."""
        if self._tokens.is_special(token):
            # Behind one that is shown the next token is as behind any other.
            return self._decoder.decode(self._tokens.of(token)) if token in self._shown else ""
        if self._begins:
            content = self._tokens.first(token)
        else:
            content = self._tokens.after(self._previous, token)
        self._begins, self._previous = False, token
        return self._decoder.decode(content)

    def flush(self) -> str:
        """The rest of the answer's text, when no token follows: nothing, for half a character."""
        self._decoder.reset()
        return ""
