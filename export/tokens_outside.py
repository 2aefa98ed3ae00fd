"""Tokens of a tokenizer that its model doesn't have.

A padding token that was added for training often has an id one past the vocabulary. Nothing writes
it but a text that spells it out, so it is left out, and stays text. Any other means that tokenizer
and model don't belong together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError

_NEEDED = ("bos_token", "eos_token")
"""Of the settings; classes name others that nothing writes, such as Qwen2's unknown token."""


def without_tokens_outside(
    tokenizer: dict[str, Any], config: Mapping[str, Any], template: str, vocabulary: int
) -> dict[str, Any]:
    """The tokenizer without added tokens that neither it nor the template writes.

    Args:
        tokenizer: fields of `tokenizer.json`.
        config: fields of `tokenizer_config.json`.
        template: the chat template's source, empty for none.
        vocabulary: V of the model.

    Raises:
        EdgeInfiniteError: another token has an id of V or more.
    """
    vocab, added = tokenizer["model"].get("vocab", {}), tokenizer.get("added_tokens", [])
    if isinstance(vocab, list):  # Unigram: an id is a place
        vocab = {token: index for index, (token, _) in enumerate(vocab)}
    ids = vocab | {token["content"]: token["id"] for token in added}
    outside = {token: number for token, number in ids.items() if number >= vocabulary}
    if not outside:
        return tokenizer
    needed = json.dumps(tokenizer.get("post_processor"), ensure_ascii=False) + template
    named = {_text(config.get(name)) for name in _NEEDED} | {tokenizer["model"].get("unk_token")}
    extra = {token["content"] for token in added} - named
    for token, number in sorted(outside.items(), key=lambda item: item[1]):
        if token not in extra or json.dumps(token, ensure_ascii=False)[1:-1] in needed:
            raise EdgeInfiniteError(
                f"tokenizer.json has the token {token!r:.60} of the id {number}, outside the "
                f"model's vocabulary of {vocabulary}: they don't belong together"
            )
    kept = [token for token in added if token["content"] not in outside]
    model = tokenizer["model"]
    if isinstance(model.get("vocab"), dict):
        left = {text: number for text, number in vocab.items() if text not in outside}
        model = model | {"vocab": left}
    return tokenizer | {"model": model, "added_tokens": kept}


def _text(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token
