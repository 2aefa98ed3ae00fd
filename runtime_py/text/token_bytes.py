"""The bytes of single tokens, as they stand in the middle of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenizers import Tokenizer

from edgeinfinite.runtime_py.text.tokenizer_check import guarded

_REPLACEMENT = "\ufffd"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_LIKELY_ANCHORS = ("a", "A", "e", "the", "0")

_BY_THEMSELVES = {
    *("ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Sequence", "Strip"),
}
"""Decoders by which a token is the same text after any other, but for a text's beginning."""


class TokenBytes:
    """What each token of a vocabulary adds to a text that it doesn't begin.

    Parts of characters are told apart only by the vocabulary: a decoder writes U+FFFD for any of
    them. So byte-level and byte-fallback tokens are read there. All others are decoded after an
    anchor, a token of plain text, because decoders take the space before a text's first word away.

    Args:
        tokenizer: with the decoder that says how tokens become text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._special = {
            number: token.content
            for number, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        kinds = _decoder_kinds(tokenizer)
        self._is_byte_level = "ByteLevel" in kinds and kinds <= {"ByteLevel", "Fuse", "Sequence"}
        self._by_themselves = kinds <= _BY_THEMSELVES
        self._has_byte_tokens = "ByteFallback" in kinds
        self._known: dict[int, bytes] = {}
        self._anchor: tuple[int, str] | None = None

    def is_special(self, token: int) -> bool:
        """Whether an answer's text leaves the token out."""
        return token in self._special

    def of(self, token: int) -> bytes:
        """The bytes of a token; of a special one its name's, of an id without a token none."""
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._read(token)
        return known

    def first(self, token: int) -> bytes:
        """The bytes of a token that begins a text, where decoders may take a space away."""
        if self._is_byte_level or token in self._special:
            return self.of(token)
        alone = self._decode([token])
        return self.of(token) if _REPLACEMENT in alone else alone.encode()

    def after(self, previous: int | None, token: int) -> bytes:
        """The bytes of a token behind another, for the decoders by which they depend on it.

        Args:
            previous: None at the beginning of what was generated.
            token: an id.
        """
        if self._by_themselves or previous is None:
            return self.of(token)
        return self._decode([previous, token])[len(self._decode([previous])) :].encode()

    def _read(self, token: int) -> bytes:
        if token in self._special:
            return self._special[token].encode()
        name = self._tokenizer.id_to_token(token)
        if name is None:
            return b""
        if self._is_byte_level:
            parts = [_BYTES[sign] for sign in name if sign in _BYTES]
            return bytes(parts) if len(parts) == len(name) else name.encode()
        found = _BYTE_TOKEN.fullmatch(name) if self._has_byte_tokens else None
        if found:
            return bytes.fromhex(found[1])
        anchor, before = self._anchor = self._anchor or self._find_anchor()
        return self._decode([anchor, token])[len(before) :].encode()

    def _find_anchor(self) -> tuple[int, str]:
        """A token that is text wherever it stands, and its text."""
        for token in self._candidates():
            text = self._decode([token])
            if text.strip() and _REPLACEMENT not in text:
                return token, text
        return 0, self._decode([0])

    def _candidates(self) -> Iterator[int]:
        likely = (self._tokenizer.token_to_id(text) for text in _LIKELY_ANCHORS)
        yield from (token for token in likely if token is not None)
        for token in range(self._tokenizer.get_vocab_size()):
            name = self._tokenizer.id_to_token(token)
            if name is not None and token not in self._special and not _BYTE_TOKEN.fullmatch(name):
                yield token

    def _decode(self, ids: list[int]) -> str:
        return guarded(
            "the tokenizer can't write the answer",
            lambda: self._tokenizer.decode(ids, skip_special_tokens=True),
        )


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's letters for bytes: printable ones stand for themselves, the rest follow U+0100."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {
        chr(0x100 + i): byte for i, byte in enumerate(others)
    }


_BYTES = _byte_alphabet()


def _decoder_kinds(tokenizer: Tokenizer) -> set[str]:
    if tokenizer.decoder is None:
        return set()

    def kinds(part: Any) -> Iterator[str]:
        yield part.get("type", "")
        for inner in part.get("decoders", ()):
            yield from kinds(inner)

    return set(kinds(json.loads(tokenizer.decoder.__getstate__())))
