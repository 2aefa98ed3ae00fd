"""A tokenizer that finds some of its added tokens under other texts only.

The library can't forget an added token. So a second tokenizer shares the first one's model and gets
the added tokens anew, the renamed ones by their other texts. It takes next to no time and memory; a
copy by JSON takes seconds and hundreds of megabytes for a vocabulary of 262,144. The copy is for
the rare models that make a renamed token out of plain text, because it is a word of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tokenizers import AddedToken, Tokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.tokenizer_check import as_json, guarded

_PIECE = 1 << 16
"""Tokens looked at in one call, which holds the interpreter."""


class RenamedTokens:
    """Texts to the ids of a tokenizer, some of whose added tokens have other texts.

    Args:
        tokenizer: the one whose ids are given.
        names: other texts by the added tokens' own; no vocabulary has them.
    """

    def __init__(self, tokenizer: Tokenizer, names: Mapping[str, str]) -> None:
        self._tokenizer = tokenizer
        self._names = names
        model = tokenizer.model
        self._words = {model.token_to_id(text) for text in names} - {None}
        self._sharing = Tokenizer(model)
        for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            setattr(self._sharing, part, getattr(tokenizer, part))
        added = dict(sorted(tokenizer.get_added_tokens_decoder().items()))
        self._sharing.add_tokens([_renamed(token, names) for token in added.values()])
        self._ids = {
            self._sharing.token_to_id(_renamed(token, names).content): number
            for number, token in added.items()
        }
        self._ids = {given: number for given, number in self._ids.items() if given != number}
        # New numbers count from the vocabulary's size on; where it has gaps, words may have them.
        self._can_share = all(model.id_to_token(given) is None for given in self._ids)

    def encode(self, text: str) -> list[int]:
        """The text's tokens, without those that the tokenizer itself adds.

        Args:
            text: valid Unicode.

        Raises:
            EdgeInfiniteError: the tokenizer can't read the text, or can't be copied.
        """
        ids = _encode(self._sharing, text)
        for start in range(0, len(ids), _PIECE):
            piece = ids[start : start + _PIECE]
            if not (self._can_share and self._words.isdisjoint(piece)):
                return _encode(self._copy, text)
            if not self._ids.keys().isdisjoint(piece):
                ids[start : start + _PIECE] = [self._ids.get(one, one) for one in piece]
        return ids

    @cached_property
    def _copy(self) -> Tokenizer:
        copy = _copied(self._tokenizer, self._names)
        for text, other in self._names.items():
            if copy.token_to_id(other) != self._tokenizer.token_to_id(text):
                raise EdgeInfiniteError(
                    f"the text spells out the control token {text}, and the artifact's tokenizer "
                    "can't keep the two apart; remove it from the text"
                )
        return copy


def _renamed(token: AddedToken, names: Mapping[str, str]) -> AddedToken:
    return AddedToken(
        names.get(token.content, token.content),
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=token.special,
    )


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    (encoded,) = guarded(
        "the tokenizer can't read the text",
        lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False),
    )
    ids: list[int] = encoded.ids
    return ids


def _copied(tokenizer: Tokenizer, names: Mapping[str, str]) -> Tokenizer:
    """A copy in which tokens have other texts and the same ids, the model's words among them."""
    fields: dict[str, Any] = json.loads(as_json(tokenizer))
    for token in fields["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    model = fields["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {names.get(text, text): i for text, i in model["vocab"].items()}
    else:  # Unigram
        model["vocab"] = [[names.get(text, text), score] for text, score in model["vocab"]]
    if model.get("unk_token") is not None:
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if not _touches(pair, names)]
    renamed = json.dumps(fields)
    return guarded("the tokenizer can't be copied", lambda: Tokenizer.from_str(renamed))


def _touches(pair: str | list[str], names: Mapping[str, str]) -> bool:
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return left in names or right in names or left + right in names
