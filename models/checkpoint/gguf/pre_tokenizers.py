r"""How `tokenizer.ggml.pre` cuts a text into the words that merges don't cross.

The names and what they mean are llama.cpp's (0.3.36 of llama-cpp-python), written as patterns that
the tokenizers library and the Kotlin runtime read alike. Three habits of llama.cpp are kept:

- Categories of letters (`\p{Lu}` and its like) all mean any letter there.
- Literal ranges never hold white space: it is folded before they are looked for.
- Where a name has several patterns, each cuts what the ones before it left.

`(?:(?!a)b)*` and nested repetitions are written as one class: matching then needs no recursion,
and its time grows with the text's length alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PreTokenizer:
    """One kind of splitting.

    Args:
        patterns: regular expressions; what one matches is a word, and what lies between two.
        ignore_merges: a word that is a token is that token, whatever the merges make of it.
        add_bos: the beginning-of-text token goes before a text where the file doesn't say.
        always_bos: it does whatever the file says.
        default_bos: where the file names no such token, its format's default is meant.
        spaces_as_marks: blanks become `▁`, and words stay text instead of bytes' letters.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    always_bos: bool = False
    default_bos: bool = True
    spaces_as_marks: bool = False


_APOSTROPHE = r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"

_GPT2 = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)  # fmt: skip
_LLAMA3 = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}"
_QWEN2 = rf"{_APOSTROPHE}|{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}"
_QWEN35 = (
    rf"{_APOSTROPHE}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_BLANKS}"
)
_LINES = r"[^\n]+|\n+"

# Letters but a to z, then letters but A to Z: small and capital letters of ASCII alone differ.
_CASES = r"[^\P{L}a-z]*[^\P{L}A-Z]+", r"[^\P{L}a-z]+[^\P{L}A-Z]*"
_MARKED_CASES = (
    r"[[^\P{L}a-z]\p{M}]*[[^\P{L}A-Z]\p{M}]+",
    r"[[^\P{L}a-z]\p{M}]+[[^\P{L}A-Z]\p{M}]*",
)
_SIGNS_AND_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"


def _cased(cases: tuple[str, str], end: str, numbers: str) -> str:
    first, second = (rf"[^\r\n\p{{L}}\p{{N}}]?{case}{end}" for case in cases)
    return f"{first}|{second}|{numbers}|{_SIGNS_AND_SLASHES}|{_BLANKS}"


_TEKKEN = _cased(_CASES, "", r"\p{N}")
_GPT4O = _cased(_CASES, f"(?:{_APOSTROPHE})?", r"\p{N}{1,3}")
_GRANITE = _cased(_MARKED_CASES, f"(?:{_APOSTROPHE})?", r"\p{N}{1,3}")
_MARKED_WORD = rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+(?:{_APOSTROPHE})?"
_YOUTU = rf"{_MARKED_WORD}|\p{{N}}|{_SIGNS_AND_SLASHES}|{_BLANKS}"
_AYA = rf"{_MARKED_WORD}|\p{{N}}{{1,3}}|{_SIGNS_AND_SLASHES}|{_BLANKS}"

# Groups of three digits, counted from the right; the first takes along what stands before it.
_DIGITS_FROM_RIGHT = r"\P{N}*+\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|\P{N}+"
_DIGITS_OF_SUPERBPE = r"[\s\S]+?(?=(?:[0-9]{3})+(?![0-9]))|[\s\S]+"

_PUNCTUATED = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_DEEPSEEK3_WORD = rf"{_PUNCTUATED}|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
_DEEPSEEK3 = rf"{_DEEPSEEK3_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANKS}"
_SPARK = rf"{_DEEPSEEK3_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+"

_CHINESE = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_EAST_ASIAN = (
    "[\u0800-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    "\u3001-\u9fa5\uac00-\ud7ff]+"
)
_BY_SCRIPT = (
    "[\uac00-\ud7a3\u3131-\u318e]+"
    "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
    "|[\u3105-\u312f]+|" + _CHINESE
)
_ASIAN = (
    "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
    "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    "\u1100-\u11ff]+"
)
_HAN = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002ebef\uf900-\ufaff"
    "\U0002f800-\U0002fa1f"
)
_KIMI = (
    rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[^\P{{L}}{_HAN}]+(?:{_APOSTROPHE})?"
    rf"|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}"
)
_ALPHABETIC = (
    r"\s?[A-Za-z"
    "\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf"
    "\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    "\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2"
    "\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+"
)
_DEEPSEEK_SIGNS = r"\s?[!-/:-~" + "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001-\u3002]+"
_TRAILING_BLANKS = r"[\s\S]*\S|\s+"
_SENTENCES = r" ?[^(\s|.,!?" + "\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

_DIGITS = PreTokenizer((r"\p{N}", _GPT2))
_PLAIN = PreTokenizer((_GPT2,))
_QWEN = PreTokenizer((_QWEN2,))
_LLAMA = PreTokenizer((_LLAMA3,))
_CHATGLM = PreTokenizer((_LLAMA3,), default_bos=False)
_V3 = PreTokenizer((r"\p{N}{1,3}", _CHINESE, _DEEPSEEK3))
_O200K = PreTokenizer((_GPT4O,))
_BAILING = PreTokenizer(
    (rf"{_APOSTROPHE}|{_WORD}|\p{{N}}|{_SIGNS}|\s*[\r\n]|\s+(?!\S)|\s+",),
)
_POEMS = PreTokenizer((_SENTENCES,))
_MARKS = PreTokenizer((_LINES,), spaces_as_marks=True)
_MARKS_AND_BOS = PreTokenizer((_LINES,), always_bos=True, spaces_as_marks=True)
_RUNS_OF_BLANKS = "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))

_GROUPS: tuple[tuple[str, PreTokenizer], ...] = (
    (
        "default",
        PreTokenizer((r"[\p{P}$+<=>\^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    ),
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True),
    ),
    ("dbrx smaug-bpe", _LLAMA),
    ("chatglm-bpe", _CHATGLM),
    ("glm4 glm5", PreTokenizer((_LLAMA3,), ignore_merges=True, default_bos=False)),
    (
        "minicpm5",
        PreTokenizer(
            (r"\p{N}{1,3}", rf"{_APOSTROPHE}|{_WORD}|\p{{N}}+|{_SIGNS}|{_BLANKS}"),
            ignore_merges=True,
        ),
    ),
    (
        "jais-2",
        PreTokenizer(
            (
                rf"{_APOSTROPHE}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+"
                rf"|{_RUNS_OF_BLANKS}|\s{{1,2}}(?!\S)|\s",
            )
        ),
    ),
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt "
        "olmo jais trillion granite-docling exaone4 jina-v1-en jina-v2-code roberta-bpe",
        _PLAIN,
    ),
    ("starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", _DIGITS),
    ("falcon", PreTokenizer((r"[\p{P}$+<=>\^~|`]+", _GPT2, "[0-9][0-9][0-9]"))),
    (
        "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan solar-open megrez grok-2",
        _QWEN,
    ),
    ("qwen35", PreTokenizer((_QWEN35,))),
    ("laguna", PreTokenizer((_LINES, _QWEN2))),
    ("ufakzeka", PreTokenizer((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}",))),
    (
        "seed-coder",
        PreTokenizer(
            (rf"{_APOSTROPHE}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_BLANKS}",),
        ),
    ),
    ("bailingmoe bailingmoe2 llada-moe", _BAILING),
    (
        "exaone-moe",
        PreTokenizer(
            (
                rf"{_APOSTROPHE}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}(?:[\p{{L}}\p{{M}}]| \p{{L}})*"
                r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    (
        "tekken",
        PreTokenizer((_TEKKEN,), ignore_merges=True, add_bos=True),
    ),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", _O200K),
    ("granite-embed-multi-97m", PreTokenizer((_GRANITE,), ignore_merges=True)),
    ("tiny_aya cohere2moe", PreTokenizer((_DIGITS_FROM_RIGHT, _AYA))),
    ("youtu", PreTokenizer((_BY_SCRIPT, _YOUTU), ignore_merges=True)),
    ("kimi-k2", PreTokenizer((_KIMI,))),
    (
        "deepseek-llm",
        PreTokenizer(
            (r"[\r\n]", _ALPHABETIC, _DEEPSEEK_SIGNS, _TRAILING_BLANKS, _EAST_ASIAN, r"\p{N}+"),
        ),
    ),
    (
        "deepseek-coder",
        PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")),
    ),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", _V3),
    ("spark2_5", PreTokenizer((r"\p{N}{1,3}", _CHINESE, _SPARK, r"\p{N}"))),
    ("afmoe", PreTokenizer((_DIGITS_FROM_RIGHT, _ASIAN, _DEEPSEEK3))),
    ("superbpe", PreTokenizer((r"\p{N}+", _DIGITS_OF_SUPERBPE))),
    ("poro-chat bloom gpt3-finnish", _POEMS),
    ("viking", PreTokenizer((_SENTENCES, r"\p{N}"))),
    (
        "chameleon",
        PreTokenizer(
            (
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                _GPT2,
            ),
            add_bos=True,
        ),
    ),
    ("gemma4 granite-embed-multi-311m", _MARKS_AND_BOS),
    ("sarvam-moe", _MARKS),
)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: kind for names, kind in _GROUPS for name in names.split()
}
"""By the value of `tokenizer.ggml.pre`. llama.cpp's `whitespace` isn't here: it drops blanks."""
