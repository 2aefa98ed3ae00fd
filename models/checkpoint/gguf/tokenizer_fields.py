"""The keys below `tokenizer.` of a GGUF file: each has one kind, and none is skipped unseen."""

from __future__ import annotations

import math
from typing import Any

import gguf

from edgeinfinite.errors import EdgeInfiniteError

_READ = {
    *("model", "pre", "tokens", "token_type", "scores", "merges"),
    *("add_bos_token", "add_eos_token", "add_space_prefix"),
    *(f"{name}_token_id" for name in ("bos", "eos", "eot", "eom", "unknown", "padding")),
    *(f"fim_{name}_token_id" for name in ("pre", "suf", "mid", "pad", "rep", "sep")),
    *(f"{name}_token_id" for name in ("prefix", "suffix", "middle")),
}

_WITHOUT_EFFECT = {
    # Of encoders; a decoder's text is made without them.
    *(f"{name}_token_id" for name in ("seperator", "separator", "cls", "mask")),
    *("add_sep_token", "token_type_count"),
    # llama.cpp reads it for unigram tokenizers alone.
    "remove_extra_whitespaces",
    # What is in `tokens` already.
    "added_tokens",
}
_MUST_BE_EMPTY = {
    "precompiled_charsmap": "the text's characters are changed by a table",
    "suppress_tokens": "some tokens are never to be written",
    "normalizer.lowercase": "the text is made lower case",
    "normalizer.strip_accents": "the text loses its accents",
}
"""Keys that are passed over while they ask for nothing."""

_ELSEWHERE = {
    # The same tokenizer in formats of other programs.
    "tokenizer.huggingface.json",
    "tokenizer.rwkv.world",
    "tokenizer.chat_template",
    "tokenizer.chat_templates",
}


class TokenizerFields:
    """What a file says below `tokenizer.`; names are given without `tokenizer.ggml.`.

    Args:
        reader: of the file.
        file: its name, for errors.

    Raises:
        EdgeInfiniteError: it has a key that isn't known, or that asks for what isn't done here.
    """

    def __init__(self, reader: gguf.GGUFReader, file: str) -> None:
        self._fields = reader.fields
        self.file = file
        for key in self._fields:
            if key.startswith("tokenizer."):
                self._check(key)

    def refused(self, name: str, wrong: str) -> EdgeInfiniteError:
        """The error that a key can't be used, for the caller to raise."""
        return EdgeInfiniteError(f"{self.file}: {_key(name)} {wrong}")

    def text(self, name: str) -> str | None:
        """A string; None where the file lacks the key."""
        return self._one(name, str, "a string")

    def flag(self, name: str) -> bool | None:
        """True or False; None where the file lacks the key."""
        return self._one(name, bool, "true or false")

    def integer(self, name: str) -> int | None:
        """A whole number; None where the file lacks the key."""
        return self._one(name, int, "a whole number")

    def texts(self, name: str) -> list[str] | None:
        """A list of strings; None where the file lacks the key."""
        return self._many(name, str, "strings")

    def integers(self, name: str) -> list[int] | None:
        """A list of whole numbers; None where the file lacks the key."""
        return self._many(name, int, "whole numbers")

    def numbers(self, name: str) -> list[float] | None:
        """A list of finite numbers; None where the file lacks the key."""
        values = self._many(name, (int, float), "numbers")
        if values is not None and not all(map(math.isfinite, values)):
            raise self.refused(name, "holds a number that isn't finite")
        return values

    def token(self, name: str, vocabulary: int) -> int | None:
        """The id of a token, such as `eos_token_id`; None where the file lacks the key.

        Raises:
            EdgeInfiniteError: it is no id below `vocabulary`.
        """
        value: int | None = self._one(name, int, "a token's id")
        if value is not None and not 0 <= value < vocabulary:
            raise self.refused(
                name,
                f"is {value}, outside the vocabulary of {vocabulary}; correct it with "
                "gguf-new-metadata --special-token-by-id",
            )
        return value

    def chat_templates(self) -> dict[str, str]:
        """By name; the one that is used without a name is `default`."""
        found = {}
        for key in self._fields:
            start = "tokenizer.chat_template"
            name = "default" if key == start else key.removeprefix(start + ".")
            if name != key and (source := self.text(key)):
                found[name] = source
        return found

    def _check(self, key: str) -> None:
        name = key.removeprefix("tokenizer.ggml.")
        if key in _ELSEWHERE or key.startswith("tokenizer.chat_template."):
            return
        if key.startswith("tokenizer.ggml.") and name in _READ | _WITHOUT_EFFECT:
            return
        if key.startswith("tokenizer.ggml.") and name in _MUST_BE_EMPTY:
            if not self._value(key):
                return
            raise self.refused(key, f"isn't done here: {_MUST_BE_EMPTY[name]}")
        raise self.refused(key, "isn't known, so the tokens might be others; remove it from the "
                                "file if it changes none")  # fmt: skip

    def _value(self, name: str) -> Any:
        field = self._fields.get(_key(name))
        if field is None:
            return None
        try:
            return field.contents()
        except UnicodeDecodeError as error:
            raise self.refused(name, "isn't valid UTF-8") from error

    def _one(self, name: str, kind: type, what: str) -> Any:
        value = self._value(name)
        if value is None or type(value) is kind:
            return value
        raise self.refused(name, f"must be {what}")

    def _many(self, name: str, kind: type | tuple[type, ...], what: str) -> Any:
        value = self._value(name)
        if value is None or (
            isinstance(value, list) and all(isinstance(one, kind) for one in value)
        ):
            return value
        raise self.refused(name, f"must be a list of {what}")


def _key(name: str) -> str:
    is_whole = name.startswith(("tokenizer.", "general."))
    return name if is_whole else f"tokenizer.ggml.{name}"
