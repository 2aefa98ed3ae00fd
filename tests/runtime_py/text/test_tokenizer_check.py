"""Tokenizers that loop or explode are refused when they are loaded; their faults are one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer
from edgeinfinite.runtime_py.text.tokenizer_check import guarded, repeats_repeats

REAL = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}|\s+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"(\p{L}+)(\s)?",
]


@pytest.mark.parametrize("pattern", REAL)
def test_patterns_of_real_tokenizers_pass(pattern: str) -> None:
    assert not repeats_repeats(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a*)*", "((a|b)*c?)+", "(?:a+){2,}x", "(?:(?:a*)b?)*", "(x+x+)+y", r"(\s*\n?)*$"],
)
def test_a_pattern_that_repeats_what_repeats_is_found(pattern: str) -> None:
    assert repeats_repeats(pattern)


def _folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for name in ("tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_text("{}")
    return tmp_path


def _tokenizer() -> Tokenizer:
    return Tokenizer(models.BPE({"a": 0, "b": 1}, []))


def test_a_normalizer_that_multiplies_is_refused(tmp_path: Path) -> None:
    tokenizer = _tokenizer()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("a", "aa")] * 60)
    with pytest.raises(EdgeInfiniteError, match="normalizer makes texts many times as long"):
        load_tokenizer(_folder(tmp_path, tokenizer))


def test_a_split_that_never_ends_is_refused(tmp_path: Path) -> None:
    tokenizer = _tokenizer()
    split = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split])
    with pytest.raises(EdgeInfiniteError, match="repeats what repeats"):
        load_tokenizer(_folder(tmp_path, tokenizer))


def test_a_decoder_of_a_thousand_parts_is_refused(tmp_path: Path) -> None:
    tokenizer = _tokenizer()
    tokenizer.decoder = decoders.Sequence([decoders.Fuse()] * 1000)
    with pytest.raises(EdgeInfiniteError, match="its decoder has 1"):
        load_tokenizer(_folder(tmp_path, tokenizer))


def test_a_panic_in_the_library_is_one_line() -> None:
    class PanicException(BaseException):
        """As the library's, which isn't an `Exception`."""

    def panic() -> None:
        raise PanicException("at src/lib.rs:\n12")

    with pytest.raises(EdgeInfiniteError, match=r"it failed: PanicException at src/lib.rs: 12;"):
        guarded("it failed", panic)
    with pytest.raises(KeyboardInterrupt):
        guarded("it failed", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
