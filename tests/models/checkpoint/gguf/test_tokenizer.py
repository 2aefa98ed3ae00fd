"""A GGUF file's tokenizer makes llama.cpp's tokens, or is refused by the name of a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("gguf")

import gguf
from gguf_vocabularies import BYTES, CASES, MARKS, SENTENCES, TEXTS, write
from record_gguf_tokens import RECORD, digest, texts_of

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS
from edgeinfinite.models.checkpoint.gguf.tokenizer import GgufTokenizer, read_gguf_tokenizer
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

KINDS = {kind: name for name, kind in reversed(PRE_TOKENIZERS.items())}
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))


def read(folder: Path, instead: str | None = None, **keys) -> GgufTokenizer:
    path = write(folder / "made.gguf", **keys)
    return read_gguf_tokenizer(gguf.GGUFReader(str(path)), path, instead)


def encoded(made: GgufTokenizer, texts: list[str]) -> list[list[int]]:
    return made.tokenizer(texts)["input_ids"]


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gguf")
    paths = [write(folder / "bytes.gguf", **BYTES), write(folder / "marks.gguf", **MARKS)]
    return [(gguf.GGUFReader(str(path)), path) for path in paths]


@pytest.mark.parametrize("name", KINDS.values())
def test_words_are_cut_as_llama_cpp_cuts_them(name, readers):
    reader, path = readers[PRE_TOKENIZERS[name].spaces_as_marks]
    made = read_gguf_tokenizer(reader, path, name)
    found = digest(encoded(made, TEXTS))
    alike = [other for other, kind in PRE_TOKENIZERS.items() if kind == PRE_TOKENIZERS[name]]
    assert name in alike
    for other in alike:
        assert RECORDED["pre"][other] == found, other


@pytest.mark.parametrize("case", CASES)
def test_special_tokens_and_ends_are_llama_cpps(case, tmp_path):
    keys = CASES[case]
    made = read(tmp_path, **keys)
    assert sorted(made.stop_ids) == RECORDED["cases"][case]["ends"]
    assert digest(encoded(made, texts_of(keys))) == RECORDED["cases"][case]["tokens"]
    assert len(made.tokenizer) == len(keys["tokens"])


@pytest.mark.parametrize("case", ["sentencepiece", "phi-3", "marks", "bos and eos"])
def test_what_is_saved_makes_the_same_tokens_in_the_runtime(case, tmp_path):
    keys = CASES[case]
    made = read(tmp_path, **{**keys, "tokenizer.chat_template": "{{ bos_token }}"})
    made.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text("{}")
    runtime = load_tokenizer(tmp_path, vocabulary=len(keys["tokens"]))
    texts = texts_of(keys)[:200]
    expected = made.tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert [runtime.encode_more(text) for text in texts] == expected
    assert runtime.encode_text("a b") == made.tokenizer.encode("a b")
    assert keys["eos_token_id"] in runtime.stop_ids
    assert runtime.encode_chat([]) == [keys["bos_token_id"]]


@pytest.mark.parametrize("keys", [SENTENCES, BYTES], ids=["sentencepiece", "bytes"])
def test_tokens_of_a_text_read_as_the_text(keys, tmp_path):
    made = read(tmp_path, **{**keys, "add_bos_token": False, "add_space_prefix": False})
    for text in TEXTS[:300]:
        ids = made.tokenizer.encode(text)
        # SentencePiece knows no mark from a blank.
        assert made.tokenizer.decode(ids) == text.replace("▁", " "), text


def test_ends_come_in_the_order_eos_eot_eom_and_others(tmp_path):
    made = read(tmp_path, **{**BYTES, "eot_token_id": 41, "eom_token_id": 40})
    eos = BYTES["eos_token_id"]
    assert made.stop_ids == (eos, 41, 40, eos + 1)


def test_a_template_with_a_name_is_kept_and_the_default_one_used(tmp_path):
    templates = {"tokenizer.chat_template": "A", "tokenizer.chat_template.tools": "B"}
    made = read(tmp_path, **{**BYTES, **templates, "tokenizer.chat_templates": ["tools"]})
    assert made.tokenizer.chat_template == {"default": "A", "tools": "B"}
    made.tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "chat_template.jinja").read_text() == "A"


def test_padding_outside_the_vocabulary_is_no_padding(tmp_path):
    assert read(tmp_path, **{**BYTES, "padding_token_id": 7}).pad_id == 7
    assert read(tmp_path, **{**BYTES, "padding_token_id": 99999}).pad_id is None


def test_a_file_without_pre_is_read_as_llama_cpp_reads_it_and_said_to_be(tmp_path, caplog):
    keys = {key: value for key, value in BYTES.items() if key != "pre"}
    made = read(tmp_path, **keys)
    assert digest(encoded(made, TEXTS)) == RECORDED["pre"]["default"]
    assert "--pre-tokenizer" in caplog.text


def test_another_pre_can_be_named(tmp_path):
    made = read(tmp_path, "qwen2", **{**BYTES, "pre": "of-tomorrow"})
    assert digest(encoded(made, TEXTS)) == RECORDED["pre"]["qwen2"]


NO_IDS = {key: value for key, value in BYTES.items() if not key.endswith("_id")}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({**BYTES, "pre": "of-tomorrow"}, "pre is 'of-tomorrow'.*--pre-tokenizer NAME"),
        ({**BYTES, "pre": "qwen-2"}, r"pre is 'qwen-2'.*near: qwen2"),
        ({**BYTES, "pre": "whitespace"}, "pre is 'whitespace'"),
        ({**BYTES, "eos_token_id": 99999}, "eos_token_id is 99999, outside the vocabulary of"),
        ({**BYTES, "eot_token_id": 99999}, "eot_token_id is 99999, outside the vocabulary of"),
        ({**BYTES, "bos_token_id": "<s>"}, "bos_token_id must be a token's id"),
        ({**BYTES, "model": "t5"}, "model is 't5'"),
        ({**BYTES, "model": "rwkv"}, "model is 'rwkv'"),
        ({**BYTES, "of_tomorrow": 1}, "tokenizer.ggml.of_tomorrow isn't known"),
        ({**BYTES, "tokenizer.of_tomorrow": 1}, "tokenizer.of_tomorrow isn't known"),
        ({**BYTES, "precompiled_charsmap": [1, 2]}, "precompiled_charsmap isn't done here"),
        ({**BYTES, "suppress_tokens": [4]}, "suppress_tokens isn't done here"),
        ({**BYTES, "normalizer.lowercase": True}, "normalizer.lowercase isn't done here"),
        ({**BYTES, "tokens": ["a", "b", "a"]}, "tokens holds 'a' twice"),
        ({**BYTES, "token_type": [1, 1]}, "token_type has 2 types for"),
        ({**BYTES, "merges": ["ab"]}, "merges holds 'ab', which isn't two tokens"),
        ({**BYTES, "merges": ["中 a"]}, "merges joins '中 a'"),
        ({**NO_IDS, "add_bos_token": True}, "add_bos_token asks for a token, but bos_token_id"),
        ({**BYTES, "chat_template": 3}, "tokenizer.ggml.chat_template isn't known"),
        ({**SENTENCES, "scores": [0.0] * 9}, "scores lacks scores of tokens"),
        ({**SENTENCES, "scores": [0.0] * len(SENTENCES["tokens"])}, "scores gives"),
        ({**SENTENCES, "name": "phi3"}, "token_type makes '.n.n.n' a token"),
    ],
)
def test_what_would_change_the_tokens_is_refused_by_its_key(keys, message, tmp_path):
    with pytest.raises(EdgeInfiniteError, match=message):
        read(tmp_path, **keys)


def test_a_file_of_sentencepiece_has_no_pre_tokenizer_to_replace(tmp_path):
    with pytest.raises(EdgeInfiniteError, match="model is llama, which has no pre-tokenizer"):
        read(tmp_path, "qwen2", **SENTENCES)


def test_user_defined_tokens_that_overlap_are_refused(tmp_path):
    keys = {**BYTES, "tokens": [*BYTES["tokens"], "\n\t", "\t\t\t"]}
    keys["token_type"] = [*BYTES["token_type"], 4, 4]
    with pytest.raises(EdgeInfiniteError, match=r"token_type makes .* tokens that stand for"):
        read(tmp_path, **keys)


def test_tokens_of_one_score_come_leftmost_first_or_are_refused(tmp_path):
    def keys(*texts: str) -> dict:
        single = [f"<0x{byte:02X}>" for byte in range(256)]
        characters = sorted(set("".join(texts)))
        tokens = ["<unk>", "<s>", "</s>", *single, *characters, *texts]
        types = [2, 3, 3] + [6] * 256 + [1] * (len(characters) + len(texts))
        scores = [0.0] * (len(tokens) - len(texts)) + [-1.0] * len(texts)
        return {"model": "llama", "tokens": tokens, "token_type": types, "scores": scores}

    made = read(tmp_path, **{**keys("ab", "bc"), "add_bos_token": False, "add_space_prefix": False})
    assert made.tokenizer.tokenize("abcbc") == ["ab", "c", "bc"]
    with pytest.raises(EdgeInfiniteError, match="scores gives 'ab' and 'ba' the same score"):
        read(tmp_path, **keys("ab", "ba"))
