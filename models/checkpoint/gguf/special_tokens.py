"""Which tokens of a GGUF file are found whole in a text, and which end an answer.

As llama.cpp has it: by the file's types, and some by their text, whatever their type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gguf import TokenType

from edgeinfinite.models.checkpoint.gguf.tokenizer_fields import TokenizerFields

_ENDS = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>"),
    *("<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]"),
    *("<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>"),
    *("<｜end▁of▁sentence｜>", "[e~["),
)
"""Tokens that end an answer, by their text."""

_FILL_IN = {
    "pre": (
        *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>"),
        *("▁<PRE>", "<|code_prefix|>", "<|prefix|>"),
    ),
    "suf": (
        *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>"),
        *("▁<SUF>", "<|code_suffix|>", "<|suffix|>"),
    ),
    "mid": (
        *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>"),
        *("▁<MID>", "<|code_middle|>", "<|middle|>"),
    ),
    "pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "sep": ("<|file_sep|>",),
}
"""Tokens around code that is to be filled in; after the last three, nothing follows."""

_OLD_NAMES = {"pre": "prefix", "suf": "suffix", "mid": "middle"}
_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")


@dataclass(frozen=True)
class SpecialTokens:
    """Tokens that stand for themselves.

    Args:
        found: ids of tokens that are looked for in a text before anything else. True: control
            tokens, which a message can't spell; False: tokens that the user defined.
        bos, eos, unknown, padding: ids, or None.
        ends: tokens that end an answer: eos, eot, eom, then the others.
    """

    found: dict[int, bool]
    bos: int | None
    eos: int | None
    unknown: int | None
    padding: int | None
    ends: tuple[int, ...]


def special_tokens(
    fields: TokenizerFields, tokens: dict[str, int], defaults: dict[str, int]
) -> SpecialTokens:
    """Reads the types and the ids that have names.

    Args:
        fields: of the file.
        tokens: text to id, all of them.
        defaults: ids of `bos`, `eos` and `unknown` where the file names none.

    Raises:
        EdgeInfiniteError: an id is outside the vocabulary; a key isn't what it should be.
    """
    size = len(tokens)
    types = fields.integers("token_type")
    if types is not None and len(types) < size:
        raise fields.refused("token_type", f"has {len(types)} types for {size} tokens")
    kinds = dict(enumerate((types or [TokenType.NORMAL] * size)[:size]))
    named = {name: fields.token(f"{name}_token_id", size) for name in ("bos", "eos", "eot", "eom")}
    named["unknown"] = fields.token("unknown_token_id", size)
    for name, default in defaults.items():
        if named[name] is None and default < size:
            named[name] = default
    fill_in = _fill_in_tokens(fields, tokens, kinds)
    ends = {fill_in[name] for name in ("pad", "rep", "sep") if name in fill_in}
    for text in _ENDS:
        if text in tokens:
            ends.add(tokens[text])
            kinds[tokens[text]] = TokenType.CONTROL
    for text in _ALWAYS_SHOWN:
        if text in tokens:
            kinds[tokens[text]] = TokenType.USER_DEFINED
    first = [named[name] for name in ("eos", "eot", "eom")]
    ends |= {token for token in first if token is not None}
    _take_back(tokens, kinds, ends)
    ordered = [token for token in first if token in ends] + sorted(ends)
    special: dict[int, bool] = {
        TokenType.CONTROL: True, TokenType.UNKNOWN: True, TokenType.USER_DEFINED: False
    }  # fmt: skip
    return SpecialTokens(
        found={token: special[kind] for token, kind in kinds.items() if kind in special},
        bos=named["bos"],
        eos=named["eos"],
        unknown=named["unknown"],
        padding=_padding(fields, size),
        ends=tuple(dict.fromkeys(token for token in ordered if token is not None)),
    )


def _fill_in_tokens(
    fields: TokenizerFields, tokens: dict[str, int], kinds: dict[int, int]
) -> dict[str, int]:
    """By the keys' short names; tokens that are known by their text become control tokens."""
    found = {}
    for name, texts in _FILL_IN.items():
        old = _OLD_NAMES.get(name)
        token = fields.token(f"{old}_token_id", len(tokens)) if old else None
        if token is None:
            token = fields.token(f"fim_{name}_token_id", len(tokens))
        if token is None:
            token = next((tokens[text] for text in texts if text in tokens), None)
            if token is not None:
                kinds[token] = TokenType.CONTROL
        if token is not None:
            found[name] = token
    return found


def _take_back(tokens: dict[str, int], kinds: dict[int, int], ends: set[int]) -> None:
    """Two texts end an answer for most models, and not for those that have certain others."""

    def has(*texts: str) -> bool:
        return any(tokens.get(text) in ends for text in texts)

    has_call = has("<|call|>", "<|calls|>")
    if has_call and has("<|end|>") and has("<|return|>", "<|flush|>"):
        ends.discard(tokens["<|end|>"])
        kinds[tokens["<|end|>"]] = TokenType.USER_DEFINED
    if has("</s>") and has("<|tool_response>", "<|plamo:eos|>"):
        ends.discard(tokens["</s>"])
        kinds[tokens["</s>"]] = TokenType.NORMAL


def _padding(fields: TokenizerFields, size: int) -> int | None:
    """Padding is never written or read here, so an id that is none changes nothing."""
    token = fields.integer("padding_token_id")
    return token if token is not None and 0 <= token < size else None


def clash(texts: Iterable[str]) -> tuple[str, str] | None:
    """Two tokens of which a text can hold the one's end as the other's start, read in two ways.

    llama.cpp looks for the longest token in the whole text first, the tokenizers library for the
    first place where any token stands; they differ where the shorter one stands first.

    Returns:
        The shorter and the longer one; None: every text is read alike.
    """
    known = sorted(set(texts), key=lambda text: -len(text.encode()))
    starts: dict[str, list[str]] = defaultdict(list)
    for text in known:
        for end in range(1, len(text)):
            starts[text[:end]].append(text)
    for shorter in known:
        for cut in range(1, len(shorter)):
            for longer in starts.get(shorter[cut:], ()):
                if longer == shorter or len(longer.encode()) < len(shorter.encode()):
                    continue
                if len(set(shorter + longer)) == 1:
                    continue  # of one character: the longest one that fits stands first, too
                joined = shorter[:cut] + longer
                held = [token for token in known if token in joined]
                same_size = len(longer.encode()) == len(shorter.encode())
                if same_size or _leftmost(joined, held) != _longest_first(joined, held):
                    return shorter, longer
    return None


def _leftmost(text: str, known: list[str]) -> list[str]:
    at = 0
    found = []
    while at < len(text):
        token = next((token for token in known if text.startswith(token, at)), None)
        if token is not None:
            found.append(token)
        at += 1 if token is None else len(token)
    return found


def _longest_first(text: str, known: list[str]) -> list[str]:
    for token in known:
        at = text.find(token)
        if at >= 0:
            right = text[at + len(token) :]
            return [*_longest_first(text[:at], known), token, *_longest_first(right, known)]
    return []
