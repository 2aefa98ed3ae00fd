"""Control tokens: a template may write them, a document can't.

A document with `<|im_end|>` or `<|im_start|>system` in it would otherwise end the user's turn and
speak as the system. Text in which no control token is spelled out, nearly every text, is encoded as
it always was, so its ids are the same by construction. Any other goes three steps:

1. In the messages, a mark is put behind the first character of each control token's text. What the
   template makes of the messages shows by the marks which control tokens are its own.
2. In the rendering, the template's own control tokens get aliases, and the marks go.
3. The rendering is encoded as a whole, by a copy of the tokenizer that knows the aliases by the
   control tokens' ids, and the control tokens' texts not at all. Pieces on both sides of a control
   token, prefix spaces and stripped white space are the library's work, as in any other text.

Mark and aliases hold a number that nobody can guess.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from tokenizers import AddedToken, Tokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.replaced import replaced, starts_of
from edgeinfinite.runtime_py.text.tokenizer_check import as_json, guarded


class ControlTokens:
    """The control tokens of a tokenizer with a chat template.

    They are what the tokenizer calls special, what ends an answer, and what the template's source
    writes and looks like markup (`<tool_response>`). The latter may stand in an assistant's
    message, where templates look for `</think>`.

    Args:
        tokenizer: the artifact's.
        stop_ids: tokens that end an answer.
        template: the chat template's source.
    """

    def __init__(self, tokenizer: Tokenizer, stop_ids: Collection[int], template: str) -> None:
        self._tokenizer = tokenizer
        added: dict[int, AddedToken] = {
            number: token
            for number, token in tokenizer.get_added_tokens_decoder().items()
            if len(token.content.strip()) > 1
        }
        self._always = {
            token.content for number, token in added.items() if token.special or number in stop_ids
        }
        self._all = self._always | {
            token.content
            for token in added.values()
            if is_markup(token.content) and token.content in template
        }
        # The library finds some tokens in the normalised text only.
        normalizer = tokenizer.normalizer
        self._normalized = {
            normalizer.normalize_str(token.content)
            for token in added.values()
            if normalizer is not None and token.normalized and token.content in self._all
        }

    def are_spelled_in(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts holds a control token's text."""
        for text in texts:
            if any(token in text for token in self._all):
                return True
            if self._normalized:
                normalized = self._tokenizer.normalizer.normalize_str(text)
                if any(token in normalized for token in self._normalized):
                    return True
        return False

    def mark(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The message, with marks in what would be control tokens."""
        is_answer = message.get("role") == "assistant"
        return {
            key: self._marked(value, self._always if is_answer and key == "content" else self._all)
            for key, value in message.items()
        }

    def mark_all(self, value: Any) -> Any:
        """What JSON can say, with marks in all of its texts."""
        return self._marked(value, self._all)

    def _marked(self, value: Any, names: set[str]) -> Any:
        if isinstance(value, str):
            return self._mark_text(value, names)
        if isinstance(value, Mapping):
            return {self._marked(key, names): self._marked(v, names) for key, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._marked(one, names) for one in value]
        return value

    def encode(self, rendering: str) -> list[int]:
        """The tokens of what the template made of marked messages, of valid Unicode.

        Args:
            rendering: the text; control tokens without a mark are the template's own.
        """
        apart = self._apart
        names = apart.aliases | {apart.mark: "", apart.escaped_mark: ""}
        plain = replaced(rendering, names)
        (encoded,) = guarded(
            "the tokenizer can't read the text",
            lambda: apart.tokenizer.encode_batch_fast([plain], add_special_tokens=False),
        )
        ids: list[int] = encoded.ids
        return ids

    @cached_property
    def _apart(self) -> _Apart:
        number = secrets.token_hex(16)
        # Noncharacters: no normaliser changes them, and no vocabulary has them.
        aliases = {token: f"\ufdd2{number}-{i}\ufdd3" for i, token in enumerate(sorted(self._all))}
        renamed = _renamed(self._tokenizer, aliases)
        for token, alias in aliases.items():
            if renamed.token_to_id(alias) != self._tokenizer.token_to_id(token):
                raise EdgeInfiniteError(
                    f"the text spells out the control token {token}, and the artifact's tokenizer "
                    "can't keep the two apart; remove it from the text"
                )
        return _Apart(renamed, aliases, mark=f"\ufdd0{number}\ufdd1")

    def _mark_text(self, text: str, names: set[str]) -> str:
        # Behind every first character, also where two of them overlap: none is left over.
        ends = [start + 1 for start in starts_of(text, names)]
        return self._apart.mark.join(
            text[start:end] for start, end in pairwise([0, *ends, len(text)])
        )


@dataclass(frozen=True)
class _Apart:
    """A tokenizer that knows control tokens by their aliases only, and the mark."""

    tokenizer: Tokenizer
    aliases: dict[str, str]
    mark: str

    @property
    def escaped_mark(self) -> str:
        """As a template writes it that asks `tojson` for ASCII."""
        return json.dumps(self.mark)[1:-1]


def is_markup(token: str) -> bool:
    """Whether a token, of at least one character, stands in brackets, as control tokens do."""
    return token[0] in "<[" and token[-1] in ">]"


def _renamed(tokenizer: Tokenizer, names: Mapping[str, str]) -> Tokenizer:
    """A copy in which tokens have other texts and the same ids."""
    fields: dict[str, Any] = json.loads(as_json(tokenizer))
    for token in fields["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    # In the vocabulary too: a model may take a whole word from it without a merge.
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
