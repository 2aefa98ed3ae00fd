"""Tokens to text one by one: first spaces, broken bytes, and the bytes of single tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from edgeinfinite.runtime_py.text.text_stream import TextStream
from edgeinfinite.runtime_py.text.token_bytes import TokenBytes
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer

SENTENCEPIECE = {
    "llama": decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    ),
    "gemma": decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    ),
    "metaspace": decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]),
}
WORDS = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁Paris", "▁is", "▁", "!"]
PARIS, IS, SPACE, SIGN = (WORDS.index(word) for word in WORDS[-4:])


def sentencepiece(decoder: object) -> Tokenizer:
    tokenizer = Tokenizer(
        models.BPE({word: i for i, word in enumerate(WORDS)}, [], unk_token="<unk>")
    )
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["<s>"])
    return tokenizer


def byte_level() -> Tokenizer:
    """Every byte a token of its own, of the id of its letter's place in the alphabet."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.add_tokens([AddedToken("<think>"), AddedToken("two words")])
    return tokenizer


def shown(stream: TextStream, ids: list[int]) -> list[str]:
    return [*(stream.push(token) for token in ids), stream.flush()]


@pytest.mark.parametrize("kind", SENTENCEPIECE)
@pytest.mark.parametrize("ids", [[PARIS, IS], [SPACE, SIGN], [2 + 0x20, SIGN], [SIGN, IS]])
def test_a_text_that_goes_on_keeps_its_first_space(kind: str, ids: list[int]) -> None:
    tokenizer = sentencepiece(SENTENCEPIECE[kind])
    after_a_sign = tokenizer.decode([SIGN, *ids])[1:]
    assert "".join(shown(TextStream(tokenizer), ids)) == after_a_sign
    begun = "".join(shown(TextStream(tokenizer, begins=True), ids))
    assert begun == tokenizer.decode(ids)


def test_a_special_token_is_no_text_and_takes_no_space_away() -> None:
    stream = TextStream(sentencepiece(SENTENCEPIECE["llama"]))
    assert shown(stream, [WORDS.index("<s>"), PARIS]) == ["", " Paris", ""]


def test_a_decoder_that_looks_at_the_token_before_is_given_it() -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2, ",": 3}))
    tokenizer.decoder = decoders.WordPiece()
    ids = [1, 2, 3, 1]
    assert "".join(shown(TextStream(tokenizer, begins=True), ids)) == tokenizer.decode(ids)


@pytest.mark.parametrize("byte", [0x80, 0xC0, 0xFF])
def test_bytes_that_begin_no_character_are_shown_at_once(byte: int) -> None:
    for tokenizer, token in (
        (sentencepiece(SENTENCEPIECE["llama"]), 2 + byte),
        (byte_level(), token_of(byte_level(), byte)),
    ):
        assert shown(TextStream(tokenizer), [token] * 5) == ["\ufffd"] * 5 + [""]


def test_ten_thousand_broken_bytes_take_less_than_a_second() -> None:
    tokenizer = byte_level()
    token, stream = token_of(tokenizer, 0x80), TextStream(tokenizer)
    start = time.perf_counter()
    assert sum(map(len, shown(stream, [token] * 10_000))) == 10_000
    assert time.perf_counter() - start < 1


@given(st.binary(max_size=12))
def test_pieces_are_the_bytes_text_without_half_a_character_at_the_end(content: bytes) -> None:
    tokenizer = byte_level()
    pieces = shown(TextStream(tokenizer), [token_of(tokenizer, byte) for byte in content])
    text = "".join(pieces)
    ends = [content[: len(content) - waiting] for waiting in range(4)]
    # Python's own reading of broken UTF-8, without what a further byte might complete.
    waiting = [end.decode("utf-8", "replace") for end in ends].index(text)
    assert not waiting or content[-waiting] >= 0xC2, "the first byte of several"
    assert not waiting or "\ufffd" in content.decode("utf-8", "replace")


def test_a_stream_says_whether_it_waits_for_the_rest_of_a_character() -> None:
    tokenizer = sentencepiece(SENTENCEPIECE["llama"])
    stream = TextStream(tokenizer)
    said = [(stream.push(2 + byte), stream.holds) for byte in "é!".encode()]
    assert said == [("", True), ("é", False), ("!", False)]


def test_the_bytes_of_tokens_come_from_the_vocabulary() -> None:
    tokenizer = byte_level()
    known = TokenBytes(tokenizer)
    assert [known.of(token_of(tokenizer, byte)) for byte in "😀 x".encode()] == [
        bytes([byte]) for byte in "😀 x".encode()
    ]
    names = ["<|end|>", "<think>", "two words"]
    assert [known.of(tokenizer.token_to_id(name)) for name in names] == [n.encode() for n in names]
    assert known.of(99_999) == b""
    pieces = TokenBytes(sentencepiece(SENTENCEPIECE["llama"]))
    assert [pieces.of(token) for token in (PARIS, 2 + 0xE2, 1)] == [b" Paris", b"\xe2", b"<s>"]


def test_a_text_that_spells_its_beginning_gets_no_second_one() -> None:
    tokenizer = sentencepiece(SENTENCEPIECE["llama"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    ours = TextTokenizer(tokenizer, None, frozenset())
    assert ours.encode_text("!") == ours.encode_text("<s>!") == [1, SIGN]
    assert ours.encode_text("<s><s>!") == [1, 1, SIGN]
    assert ours.encode_text("<s>") == [1]
    assert ours.encode_more("<s>!") == [1, SIGN]


def token_of(tokenizer: Tokenizer, byte: int) -> int:
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [one for one in range(256) if one not in plain]
    letter = chr(byte) if byte in plain else chr(0x100 + others.index(byte))
    token = tokenizer.token_to_id(letter)
    assert token is not None
    return token


def test_a_text_that_begins_within_a_word_is_as_the_library_writes_it() -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2, "' s": 3, "!": 4}))
    tokenizer.decoder = decoders.WordPiece()
    for ids in ([2, 1, 4], [3, 4], [1, 2], [0, 2]):
        assert "".join(shown(TextStream(tokenizer, begins=True), ids)) == tokenizer.decode(ids)
