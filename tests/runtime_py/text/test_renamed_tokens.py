"""Renamed tokens keep their ids; a model that has their texts as words doesn't bring them back."""

from __future__ import annotations

import time

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from edgeinfinite.runtime_py.text.renamed_tokens import RenamedTokens
from edgeinfinite.runtime_py.text.replaced import Names

NAMES = {"<e>": "\ufdd2-e\ufdd3", "<q>": "\ufdd2-q\ufdd3"}
LETTERS = {text: i for i, text in enumerate(("<", "e", ">", "a", "<e", "<e>"))}
MERGES = [("<", "e"), ("<e", ">")]


def _library(model: models.Model) -> Tokenizer:
    library = Tokenizer(model)
    library.add_tokens([AddedToken("<plain>"), AddedToken("<q>", special=True)])
    library.add_special_tokens([AddedToken("<e>", special=True, lstrip=True)])
    return library


BPE_MODELS = {
    "merged": models.BPE(LETTERS, MERGES),
    "word": models.BPE(LETTERS, MERGES, ignore_merges=True),
    "word-without-merges": models.BPE(LETTERS, [], ignore_merges=True),
    "never": models.BPE(LETTERS, []),
    "gaps": models.BPE(LETTERS | {"b": 6 + 1, "c": 8}, []),
}


@pytest.mark.parametrize("kind", BPE_MODELS)
def test_renamed_tokens_keep_their_ids_and_words_of_the_model_are_none(kind: str) -> None:
    library = _library(BPE_MODELS[kind])
    tokens = RenamedTokens(library, NAMES)
    written = f"a<plain>  {NAMES['<e>']}{NAMES['<q>']}a"
    expected = library.encode("a<plain>  <e><q>a", add_special_tokens=False).ids
    assert tokens.encode(written) == expected
    end = library.token_to_id("<e>")
    ids = tokens.encode(f"<e>a<q>{NAMES['<e>']}")
    assert ids.count(end) == 1 and ids[-1] == end
    assert library.token_to_id("<q>") not in ids


def test_every_piece_of_a_long_text_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _library(models.BPE(LETTERS, []))
    monkeypatch.setattr("edgeinfinite.runtime_py.text.renamed_tokens._PIECE", 3)
    text = f"aa{NAMES['<q>']}a" * 7
    assert RenamedTokens(library, NAMES).encode(text) == library.encode("aa<q>a" * 7).ids


def test_thousands_of_tokens_are_looked_for_as_fast_as_a_few() -> None:
    names = Names([f"<unused{i}>" for i in range(6_250)])
    text = "word " * 400_000
    start = time.perf_counter()
    assert not names.are_in(text) and not names.are_in("<un" * 100_000)
    assert names.replaced(text + "<unused6249>", {"<unused6249>": "x"}) == text + "x"
    # Searched for one after the other they took 12 s.
    assert time.perf_counter() - start < 3


def test_normalised_and_unigram_tokenizers() -> None:
    words = [("<unk>", 0.0), ("\u2581", -1.0), ("a", -2.0), ("<e>", -0.1), ("<", -9.0), (">", -9.0)]
    library = Tokenizer(models.Unigram([*words, ("e", -9.0)], unk_id=0))
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.add_special_tokens([AddedToken("<e>", special=True, normalized=True)])
    library.add_tokens([AddedToken("<q>", special=True)])
    tokens = RenamedTokens(library, NAMES)
    assert tokens.encode(f"a{NAMES['<e>']}") == library.encode("a<e>").ids
    assert library.token_to_id("<e>") not in tokens.encode("a \uff1ce\uff1e a<e>")
