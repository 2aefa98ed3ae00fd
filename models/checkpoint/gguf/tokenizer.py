"""The tokenizer of a GGUF file: the same ids as llama.cpp's, or a refusal that names the key."""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass
from pathlib import Path

import gguf
from tokenizers import AddedToken, Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from edgeinfinite.models.checkpoint.gguf.bpe import Parts, parts_of_merges, parts_of_scores
from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from edgeinfinite.models.checkpoint.gguf.special_tokens import (
    SpecialTokens,
    clash,
    special_tokens,
)
from edgeinfinite.models.checkpoint.gguf.tokenizer_fields import TokenizerFields

_LOG = logging.getLogger(__name__)

_OF_SENTENCEPIECE = {"bos": 1, "eos": 2, "unknown": 0}
_OF_BYTES = {"bos": 11, "eos": 11}


@dataclass(frozen=True)
class GgufTokenizer:
    """What a file says about text.

    Args:
        tokenizer: with the file's ids, and as many.
        stop_ids: tokens that end an answer: eos, eot, eom, then others that llama.cpp knows.
        bos_id: the beginning of a text; None where there is none.
        pad_id: None where there is none.
    """

    tokenizer: PreTrainedTokenizerFast
    stop_ids: tuple[int, ...]
    bos_id: int | None
    pad_id: int | None


def read_gguf_tokenizer(
    reader: gguf.GGUFReader, path: Path, pre: str | None = None
) -> GgufTokenizer:
    """Reads everything below `tokenizer.` of a file.

    Args:
        reader: of the file.
        path: the file, for errors.
        pre: how words are cut, instead of what `tokenizer.ggml.pre` says.

    Raises:
        EdgeInfiniteError: a key is missing, unknown, or asks for what can't be done alike.
    """
    fields = TokenizerFields(reader, path.name)
    tokens = _tokens(fields)
    name = fields.text("model")
    if name == "llama":
        if pre is not None:
            raise fields.refused("model", "is llama, which has no pre-tokenizer to name")
        special = special_tokens(fields, tokens, _OF_SENTENCEPIECE)
        texts = list(tokens)
        prefix = fields.flag("add_space_prefix")
        unknown = None if special.unknown is None else texts[special.unknown]
        parts = parts_of_scores(fields, tokens, prefix=prefix is not False, unknown=unknown)
        adds_bos = fields.flag("add_bos_token") is not False
    elif name in ("gpt2", "gemma4"):
        kind = _pre_tokenizer(fields, name, pre)
        defaults = _OF_BYTES if name == "gpt2" else {}
        special = _without_guesses(fields, kind, special_tokens(fields, tokens, defaults))
        parts = parts_of_merges(fields, tokens, kind, special.found)
        stated = fields.flag("add_bos_token")
        adds_bos = kind.always_bos or (kind.add_bos if stated is None else stated)
    else:
        known = "gpt2 (byte pair encoding) and llama (SentencePiece)"
        raise fields.refused("model", f"is {name!r}; tokenizers of {known} can be read")
    adds_eos = fields.flag("add_eos_token") is True
    made = _put_together(fields, tokens, parts, special)
    made.post_processor = _template(fields, tokens, special, adds_bos, adds_eos)
    return GgufTokenizer(
        _wrapped(fields, made, tokens, special), special.ends, special.bos, special.padding
    )


def _tokens(fields: TokenizerFields) -> dict[str, int]:
    texts = fields.texts("tokens")
    if not texts:
        raise fields.refused("tokens", "is missing; convert the model to GGUF again")
    # llama.cpp's name for tokens without a text, which no text holds.
    tokens = {text or f"[EMPTY_{index}]": index for index, text in enumerate(texts)}
    if len(tokens) < len(texts):
        twice = next(text for index, text in enumerate(texts) if tokens.get(text, index) != index)
        raise fields.refused("tokens", f"holds {twice!r} twice")
    return tokens


def _pre_tokenizer(fields: TokenizerFields, model: str, pre: str | None) -> PreTokenizer:
    if model == "gemma4":
        if pre not in (None, "gemma4"):
            raise fields.refused("model", "is gemma4, which cuts words in its own way alone")
        return PRE_TOKENIZERS["gemma4"]
    stated = fields.text("pre")
    name = pre or stated
    if not name:
        _LOG.warning(
            "%s has no tokenizer.ggml.pre, so words are cut as llama.cpp cuts them by default; "
            "name the model's own way with --pre-tokenizer if answers are poor",
            fields.file,
        )
        name = "default"
    if name in PRE_TOKENIZERS:
        return PRE_TOKENIZERS[name]
    near = difflib.get_close_matches(name, PRE_TOKENIZERS, n=3)
    hint = f" (near: {', '.join(near)})" if near else ""
    known = "one of those that llama.cpp knows, such as default, gpt-2, llama-bpe or qwen2"
    if pre:
        raise fields.refused("pre", f"can't be replaced by {pre!r}: name {known}{hint}")
    raise fields.refused(
        "pre",
        f"is {name!r}, which isn't known, so the tokens would be others than the model was "
        f"trained on; name its like with --pre-tokenizer NAME, {known}{hint}",
    )


def _without_guesses(
    fields: TokenizerFields, kind: PreTokenizer, special: SpecialTokens
) -> SpecialTokens:
    """Falcon's ids are every byte-level file's default, and mostly some word of its vocabulary."""
    bos, eos = special.bos, special.eos
    if fields.integer("bos_token_id") is None and (
        not kind.default_bos or bos not in special.found
    ):
        bos = None
    ends = special.ends
    if fields.integer("eos_token_id") is None and eos not in special.found:
        ends = tuple(token for token in ends if token != eos)
        eos = None
    return SpecialTokens(special.found, bos, eos, special.unknown, special.padding, ends)


def _put_together(
    fields: TokenizerFields, tokens: dict[str, int], parts: Parts, special: SpecialTokens
) -> Tokenizer:
    texts = list(tokens)
    # Control tokens are the template's own, and it doesn't write them into each other.
    clashing = clash(texts[token] for token, is_control in special.found.items() if not is_control)
    if clashing is not None:
        raise fields.refused(
            "token_type",
            f"makes {clashing[0]!r} and {clashing[1]!r} tokens that stand for themselves; which "
            "of them is found where they overlap depends on the program",
        )
    made = Tokenizer(parts.model)
    if parts.normalizer is not None:
        made.normalizer = parts.normalizer
    if parts.pre_tokenizer is not None:
        made.pre_tokenizer = parts.pre_tokenizer
    made.decoder = parts.decoder
    strips_left, strips_right = _stripping(fields)
    blank = next((texts[token] for token in special.found if texts[token][0].isspace()), None)
    if strips_right and blank is not None:
        raise fields.refused(
            "token_type",
            f"makes {blank!r} a token that stands for itself, in a Phi-3, whose tokens take blanks "
            "behind them along",
        )
    for is_special in (True, False):
        added = [
            AddedToken(
                texts[token],
                special=is_special,
                normalized=False,
                lstrip=texts[token] in strips_left,
                rstrip=strips_right and texts[token] not in _KEEP_BLANKS,
            )
            for token, kind in special.found.items()
            if kind is is_special
        ]
        (made.add_special_tokens if is_special else made.add_tokens)(added)
    return made


_KEEP_BLANKS = ("<unk>", "<s>", "<|endoftext|>")


def _stripping(fields: TokenizerFields) -> tuple[set[str], bool]:
    """Tokens that take blanks before them along; whether all do so with blanks behind them."""
    name = (fields.text("general.name") or "").lower()
    architecture = fields.text("general.architecture") or ""
    pre = fields.text("pre") or ""
    if any(one in pre for one in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
        one in architecture for one in ("nomic-bert-moe", "jina-bert-v3")
    ):
        return {"<mask>"}, False
    if "phi-3" in name or "phi3" in name:
        return set(), True
    return ({"[MASK]"} if "modern-bert" in name else set()), False


def _template(
    fields: TokenizerFields,
    tokens: dict[str, int],
    special: SpecialTokens,
    adds_bos: bool,
    adds_eos: bool,
) -> processors.PostProcessor:
    """What goes before and after a text that isn't a template's."""
    texts = list(tokens)
    single: list[str] = ["$A"]
    pair: list[str] = ["$A", "$B:1"]
    around = []
    for name, adds, token in (("bos", adds_bos, special.bos), ("eos", adds_eos, special.eos)):
        if not adds:
            continue
        if token is None:
            raise fields.refused(f"add_{name}_token", f"asks for a token, but {name}_token_id "
                                                      "names none")  # fmt: skip
        # A text with a colon or a blank would be read as something else in a template.
        label = texts[token] if not set(texts[token]) & set(": $") else f"<{name}>"
        around.append({"id": label, "ids": [token], "tokens": [texts[token]]})
        if name == "bos":
            single, pair = [label, *single], [label, "$A", f"{label}:1", "$B:1"]
        else:
            single, pair = [*single, label], [*pair[:-1], label, "$B:1", f"{label}:1"]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=around)


def _wrapped(
    fields: TokenizerFields, made: Tokenizer, tokens: dict[str, int], special: SpecialTokens
) -> PreTrainedTokenizerFast:
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made)
    texts = list(tokens)
    # Given to the constructor, these would become tokens that texts can spell.
    for name, token in (
        ("bos_token", special.bos),
        ("eos_token", special.eos),
        ("unk_token", special.unknown),
        ("pad_token", special.padding),
    ):
        if token is not None:
            setattr(wrapped, name, texts[token])
    templates = fields.chat_templates()
    if templates:
        wrapped.chat_template = templates if set(templates) != {"default"} else templates["default"]
    if len(wrapped) != len(tokens):
        raise fields.refused("tokens", f"makes {len(wrapped)} tokens of {len(tokens)}")
    return wrapped
