"""Summaries are made of what was read, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_artifact import tiny_checkpoint
from transformers import AutoTokenizer, DynamicCache
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.conversation.chat import SYSTEM
from edgeinfinite.evaluation.conversation.summaries import (
    REQUEST,
    extracted_summary,
    slots_for_scores,
    token_scores,
    written_summary,
)
from edgeinfinite.evaluation.conversation.window import HEADING, SUMMARY_SHARE, Window
from edgeinfinite.evaluation.methods import Reader
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from tiny import assert_close, random_tokens, tiny_llama

SLOTS = Geometry(8, 4, 8, policy="carry", recall_slots=64)
SAID = {"role": "system", "content": f"{SYSTEM}\n\n{HEADING}\nThe bell was cast by Ann."}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory):
    return AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path_factory.mktemp("tiny")))


class Script:
    """A reader that answers with a text, token by token, and remembers what it read."""

    def __init__(self, answer: list[int], vocabulary: int = 258) -> None:
        self.answer, self.prompt, self.answered = answer, list[int](), list[int]()
        self._vocabulary = vocabulary

    def skip(self, tokens, progress=None) -> None:
        if self.prompt:
            self.answered += tokens
        else:
            self.prompt = list(tokens)

    @property
    def logits(self) -> np.ndarray:
        logits = np.zeros(self._vocabulary, np.float32)
        logits[self.answer[len(self.answered)]] = 20
        return logits


def test_the_model_is_shown_the_history_and_asked_and_ends_where_it_says(tokenizer):
    window = Window(400, tokenizer)
    said = tokenizer("Ann cast it. ", add_special_tokens=False).input_ids
    reader = Script([*said, tokenizer.eos_token_id])
    messages = [SAID, {"role": "user", "content": "Remember the bell."}]
    stops = {tokenizer.eos_token_id}
    sampler = Sampler(SamplingOptions(temperature=0.0))
    assert written_summary(reader, window, messages, sampler, stops) == "Ann cast it."
    assert tokenizer.decode(reader.prompt) == (
        f"<|im_start|>system\n{SAID['content']}<|im_end|>\n"
        "<|im_start|>user\nRemember the bell.<|im_end|>\n"
        f"<|im_start|>user\n{REQUEST}<|im_end|>\n<|im_start|>assistant\n"
    )
    assert reader.answered == said


def test_a_model_that_never_ends_is_cut_at_the_summarys_length(tokenizer):
    window = Window(400, tokenizer)
    endless = Script(tokenizer("la " * 200, add_special_tokens=False).input_ids)
    sampler = Sampler(SamplingOptions(temperature=0.0))
    summary = written_summary(endless, window, [SAID], sampler, {tokenizer.eos_token_id})
    assert summary == ("la " * 200)[: window.summary].strip()


def reader_with_slots() -> Reader:
    torch.manual_seed(3)
    return Reader(tiny_llama(), "edgeinfinite", Setting(SLOTS, scorer=UNTRAINED_SCORER), 2)


def test_a_tokens_score_is_the_mean_of_the_heads_over_transformers_own_keys_and_values():
    tokens = random_tokens(50)
    reader = reader_with_slots()
    scores = token_scores(reader, reader.session, tokens)
    plain, cache = tiny_llama(), DynamicCache()
    with torch.no_grad():
        plain(torch.tensor([tokens]), past_key_values=cache, use_cache=True)
        cos, sin = plain.model.rotary_emb(torch.zeros(1), torch.arange(50)[None])
        of_heads = []
        for layer, scorer in zip(cache.layers, reader.session.engine.scorers, strict=True):
            key, _ = apply_rotary_pos_emb(layer.keys, layer.keys, cos, -sin)  # turned back
            of_heads.append(scorer(key[0], layer.values[0]))
    expected = torch.cat(of_heads).mean(0).double().numpy()
    assert np.isnan(scores[:4]).all(), "the sinks"
    assert_close(scores[4:], expected[4:], 1e-4)
    assert scores[4:].std() > 1e-3


def test_a_text_that_the_slots_do_not_hold_is_refused():
    reader = reader_with_slots()
    longest = slots_for_scores(reader.session)
    assert longest == 4 + 64
    assert not np.isnan(token_scores(reader, reader.session, random_tokens(longest))[4:]).any()
    for tokens in (longest + 1, longest + 40):
        reader = reader_with_slots()
        with pytest.raises(EdgeInfiniteError, match="slots don't hold"):
            token_scores(reader, reader.session, random_tokens(tokens))
    reader = Reader(tiny_llama(), "streaming", Setting(SLOTS), 2)
    with pytest.raises(EdgeInfiniteError, match="no head scores"):
        token_scores(reader, reader.session, random_tokens(20))


def test_the_sentences_with_the_highest_scores_stay_in_their_order(tokenizer, monkeypatch):
    messages = [
        SAID,
        {"role": "user", "content": "The vault is opened with 41. Which files are there?"},
        {"role": "assistant", "content": "There are two files.\nThe pass key is 77."},
        {"role": "user", "content": "These words are new and stay anyway."},
        {"role": "assistant", "content": "They are not summarised."},
    ]
    worth = {"cast by Ann": 5.0, "vault is opened": 2.0, "pass key is": 3.0, "stay anyway": 9.0}
    text = tokenizer.apply_chat_template(messages, tokenize=False)

    def scored(reader, session, tokens):
        assert tokenizer.decode(tokens) == text
        scores = np.zeros(len(tokens))  # a byte is a token, and so is a mark of the template
        for words, value in worth.items():
            at = len(tokenizer(text[: text.index(words)], add_special_tokens=False).input_ids)
            scores[at : at + len(words)] = value
        return scores

    monkeypatch.setattr("edgeinfinite.evaluation.conversation.summaries.token_scores", scored)
    wide = Window(int(100 / SUMMARY_SHARE), tokenizer)
    summary = extracted_summary(None, None, wide, messages, 2)  # type: ignore[arg-type]
    assert summary.splitlines()[:2] == ["The bell was cast by Ann.", "The vault is opened with 41."]
    assert summary.splitlines()[-1] == "The pass key is 77."
    assert SYSTEM[:30] not in summary and HEADING not in summary and "anyway" not in summary
    narrow = Window(int(50 / SUMMARY_SHARE), tokenizer)  # room for the two best
    summary = extracted_summary(None, None, narrow, messages, 2)  # type: ignore[arg-type]
    assert summary.splitlines() == ["The bell was cast by Ann.", "The pass key is 77."]
