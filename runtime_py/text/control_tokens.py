"""Control tokens: a template may write them, a document can't.

A document with `<|im_end|>` or `<|im_start|>system` in it would otherwise end the user's turn and
speak as the system. Text in which no control token is spelled out, nearly every text, is encoded as
it always was, so its ids are the same by construction. Any other goes three steps:

1. In the messages, a mark is put behind the first character of each control token's text. What the
   template makes of the messages shows by the marks which control tokens are its own.
2. In the rendering, the template's own control tokens get aliases, and the marks go.
3. The rendering is encoded as a whole, by a second tokenizer that knows the aliases by the control
   tokens' ids, and the control tokens' texts not at all. Pieces on both sides of a control
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

from edgeinfinite.runtime_py.text.renamed_tokens import RenamedTokens
from edgeinfinite.runtime_py.text.replaced import Names


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
        self._names, self._always_names = Names(self._all), Names(self._always)
        self._normalized_names = Names(self._normalized)

    def are_spelled_in(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts holds a control token's text."""
        for text in texts:
            if self._names.are_in(text):
                return True
            if self._normalized:
                normalized = self._tokenizer.normalizer.normalize_str(text)
                if self._normalized_names.are_in(normalized):
                    return True
        return False

    def mark(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The message, with marks in what would be control tokens."""
        is_answer = message.get("role") == "assistant"
        return {
            key: self._marked(
                value, self._always_names if is_answer and key == "content" else self._names
            )
            for key, value in message.items()
        }

    def mark_all(self, value: Any) -> Any:
        """What JSON can say, with marks in all of its texts."""
        return self._marked(value, self._names)

    def _marked(self, value: Any, names: Names) -> Any:
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
        return apart.tokens.encode(apart.names.replaced(rendering, apart.written))

    @cached_property
    def _apart(self) -> _Apart:
        number = secrets.token_hex(16)
        # Noncharacters: no normaliser changes them, and no vocabulary has them.
        aliases = {token: f"\ufdd2{number}-{i}\ufdd3" for i, token in enumerate(sorted(self._all))}
        mark = f"\ufdd0{number}\ufdd1"
        escaped = json.dumps(mark)[1:-1]  # as a template writes it that asks `tojson` for ASCII
        written = aliases | {mark: "", escaped: ""}
        return _Apart(RenamedTokens(self._tokenizer, aliases), mark, written, Names(written))

    def _mark_text(self, text: str, names: Names) -> str:
        # Behind every first character, also where two of them overlap: none is left over.
        ends = [start + 1 for start in names.starts(text)]
        return self._apart.mark.join(
            text[start:end] for start, end in pairwise([0, *ends, len(text)])
        )


@dataclass(frozen=True)
class _Apart:
    """What keeps a template's control tokens and those of its messages apart.

    Attributes:
        tokens: know control tokens by their aliases only.
        mark: of a message's control tokens.
        written: what is encoded in place of control tokens and marks.
        names: of these.
    """

    tokens: RenamedTokens
    mark: str
    written: dict[str, str]
    names: Names


def is_markup(token: str) -> bool:
    """Whether a token, of at least one character, stands in brackets, as control tokens do."""
    return token[0] in "<[" and token[-1] in ">]"
