"""GGUF files of a vocabulary alone, for tokenizers of each kind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gguf import GGUFWriter, TokenType
from many_texts import WORDS, many_texts

TEXTS = many_texts(2000)
SHOWN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
LETTERS = [
    chr(byte if byte in SHOWN else 256 + sum(one not in SHOWN for one in range(byte)))
    for byte in range(256)
]
"""How byte-level tokenizers write each byte."""

CONTROL = ("<|end|>", "<|endoftext|>", "<｜Begin▁of｜>")
DEFINED = ("<tool>", "\n\n\n", "    ")


def write(path: Path, name: str = "", architecture: str = "llama", **keys: Any) -> Path:
    """A file with `tokenizer.ggml.` keys, `chat_template`, and `add_` of any other key."""
    writer = GGUFWriter(path, architecture)
    if name:
        writer.add_name(name)
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    for key, value in keys.items():
        full = key if key.startswith("tokenizer.") else f"tokenizer.ggml.{key}"
        if isinstance(value, bool):
            writer.add_bool(full, value)
        elif isinstance(value, int):
            writer.add_uint32(full, value)
        elif isinstance(value, str):
            writer.add_string(full, value)
        else:
            writer.add_array(full, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def of_bytes() -> dict[str, Any]:
    """Bytes, and a merge for every two that stand beside each other in `TEXTS`, in any order.

    Where words are cut shows in which bytes find each other. Some whole words are tokens that no
    merge makes.
    """
    pairs = sorted({pair for text in TEXTS for pair in _pairs(_written(text))})
    random.Random(1).shuffle(pairs)
    whole = ["ĠHello", "ĠWORLD", "2024", "ĊĊĊĊ", "def", _written("中文"), "ĠĠĠ"]
    tokens = [*LETTERS, *map("".join, pairs), *whole]
    special = [*CONTROL, *DEFINED]
    return {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*dict.fromkeys(tokens), *special],
        "merges": [" ".join(pair) for pair in pairs],
        "token_type": [TokenType.NORMAL] * len(dict.fromkeys(tokens))
        + [TokenType.CONTROL] * len(CONTROL)
        + [TokenType.USER_DEFINED] * len(DEFINED),
        "bos_token_id": len(dict.fromkeys(tokens)) + 2,
        "eos_token_id": len(dict.fromkeys(tokens)),
    }


def of_sentencepiece() -> dict[str, Any]:
    """Beginnings of words with scores in any order, runs of blanks with one score, bytes."""
    texts = [f"▁{word}" for word in WORDS[:160]] + list(WORDS[:160])
    made = {text[:end].replace(" ", "▁") for text in texts for end in range(1, len(text) + 1)}
    characters = {character for text in made for character in text}
    runs = ["▁" * length for length in range(2, 9)]
    made = sorted(made - characters - set(runs) - {*DEFINED, "<s>", "</s>"})
    random.Random(2).shuffle(made)
    special = ["<unk>", "<s>", "</s>", *CONTROL, *DEFINED]
    single = [f"<0x{byte:02X}>" for byte in range(256)]
    normal = [*made, *runs, *sorted(characters)]
    types = [TokenType.UNKNOWN] + [TokenType.CONTROL] * (2 + len(CONTROL))
    types += [TokenType.USER_DEFINED] * len(DEFINED) + [TokenType.BYTE] * len(single)
    scores = [0.0] * (len(special) + len(single)) + [-1.0 - index for index in range(len(made))]
    return {
        "model": "llama",
        "tokens": [*special, *single, *normal],
        "token_type": types + [TokenType.NORMAL] * len(normal),
        "scores": scores + [-1e9] * len(runs) + [-2e9] * len(characters),
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def of_marks() -> dict[str, Any]:
    """The same words with merges: blanks are `▁`, and newlines are words of their own."""
    keys = of_sentencepiece()
    known = set(keys["tokens"])
    merges = [
        f"{text[:-1]} {text[-1]}"
        for text in keys["tokens"]
        if len(text) > 1 and text[:-1] in known and text[-1] in known and " " not in text
    ]
    return {**keys, "model": "gpt2", "pre": "gemma4", "merges": merges}


def with_special_tokens(texts: list[str], tokens: list[str]) -> list[str]:
    """Every third text, with tokens that stand for themselves at its ends and between."""
    chance = random.Random(3)
    mixed = []
    for text in texts[::3]:
        cut = chance.randint(0, len(text))
        parts = [chance.choice(tokens), text[:cut], chance.choice([*tokens, " "]), text[cut:]]
        chance.shuffle(parts)
        mixed.append("".join(parts))
    return mixed


def _written(text: str) -> str:
    return "".join(LETTERS[byte] for byte in text.encode())


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    return itertools.pairwise(text)


BYTES, SENTENCES, MARKS = of_bytes(), of_sentencepiece(), of_marks()


def _typed(keys: dict[str, Any], *texts: str, kind: TokenType) -> dict[str, Any]:
    types = list(keys["token_type"])
    for text in texts:
        types[keys["tokens"].index(text)] = kind
    return {**keys, "token_type": types}


def _with_tokens(keys: dict[str, Any], *texts: str, kind: TokenType) -> dict[str, Any]:
    more = {"scores": keys["scores"] + [0.0] * len(texts)} if "scores" in keys else {}
    return {
        **keys,
        **more,
        "tokens": [*keys["tokens"], *texts],
        "token_type": [*keys["token_type"], *[kind] * len(texts)],
    }


_NORMAL, _CONTROL = TokenType.NORMAL, TokenType.CONTROL
_WITHOUT = {key: value for key, value in BYTES.items() if not key.endswith("_id")}
_OTHERS = ("[EOT]", "<|eom_id|>", "<|fim_pad|>", "<file>", "<reponame>", "<|im_end|>")

CASES: dict[str, dict[str, Any]] = {
    "sentencepiece": SENTENCES,
    "blanks that the user defined": _with_tokens(
        SENTENCES, "  ", "   ", kind=TokenType.USER_DEFINED
    ),
    "no prefix": {**SENTENCES, "add_space_prefix": False},
    "no bos": {**SENTENCES, "add_bos_token": False},
    "eos, too": {**SENTENCES, "add_eos_token": True},
    "phi-3": {**_typed(SENTENCES, "\n\n\n", "    ", kind=_NORMAL), "name": "Phi-3 mini"},
    "sentencepiece, ids by default": {
        key: value for key, value in SENTENCES.items() if not key.endswith("_id")
    },
    "a type that isn't known": _typed(SENTENCES, "<tool>", kind=TokenType.UNUSED),
    "marks": {**MARKS, "add_bos_token": False},
    "bytes": BYTES,
    "bos where llama-bpe says so": {**BYTES, "pre": "llama-bpe"},
    "no bos against llama-bpe": {**BYTES, "pre": "llama-bpe", "add_bos_token": False},
    "bos and eos": {**BYTES, "add_bos_token": True, "add_eos_token": True},
    "ends by key": {**BYTES, "eot_token_id": 40, "eom_token_id": 41, "fim_rep_token_id": 42},
    "ends by text": _with_tokens(BYTES, *_OTHERS, kind=_NORMAL),
    "ends of harmony": _with_tokens(
        BYTES, "<|return|>", "<|call|>", "<|channel|>", "<|message|>", kind=_CONTROL
    ),
    "</s> of some": _with_tokens(BYTES, "</s>", "<|tool_response>", kind=_NORMAL),
    "tokens without a text": _with_tokens(BYTES, "", "", kind=_NORMAL),
    "glm has no bos by default": {**_WITHOUT, "pre": "glm4", "eos_token_id": 300},
    "unused keys": {**BYTES, "mask_token_id": 7, "add_sep_token": True, "token_type_count": 2},
}
"""Files whose tokens and ends are compared with llama.cpp's, by what is special about them."""
