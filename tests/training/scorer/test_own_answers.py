"""The model's own answers about a text: how it is asked, and what chance draws."""

from __future__ import annotations

import pytest
import torch
from tiny_artifact import tiny_checkpoint

from edgeinfinite.models.loading import Backbone, load_backbone
from edgeinfinite.training.scorer import own_answers as answering
from edgeinfinite.training.scorer.own_answers import ANSWERS, REQUESTS, framed, own_answers
from edgeinfinite.training.scorer.paid import read_text
from edgeinfinite.training.texts import encode


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> Backbone:
    return load_backbone(str(tiny_checkpoint(tmp_path_factory.mktemp("tiny"))))


def test_text_and_request_are_a_users_turn_and_the_assistants_begins(backbone):
    tokenizer = backbone.tokenizer
    before, after = framed(tokenizer, REQUESTS[0])
    message = {"role": "user", "content": f"A text.\n\n{REQUESTS[0]}"}
    whole = tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True)
    assert before + encode("A text.", tokenizer) + after == encode(str(whole), tokenizer)


@pytest.mark.parametrize("template", [None, "{{ messages[0].content | length }}"])
def test_without_a_chat_template_that_shows_the_text_a_question_follows_it(
    backbone, monkeypatch, template
):
    monkeypatch.setattr(backbone.tokenizer, "chat_template", template)
    before, after = framed(backbone.tokenizer, REQUESTS[1])
    assert before == []
    asked = backbone.tokenizer.decode(after)
    assert asked == f"\n\nQuestion: {REQUESTS[1]}\nAnswer:"


def test_answers_are_whole_and_differ_and_leave_the_cache_and_the_seed(backbone, monkeypatch):
    monkeypatch.setattr(answering, "ANSWER_TOKENS", 9)
    model, tokenizer = backbone.model, backbone.tokenizer
    cache = read_text(model, encode("A text about something.", tokenizer))
    asked = encode("What?", tokenizer)
    keys, state = cache.layers[1].keys.clone(), torch.get_rng_state()

    def answers(seed: int) -> torch.Tensor:
        return own_answers(model, tokenizer, cache, asked, seed)

    said = answers(0)
    assert said.shape == (ANSWERS, len(asked) + 9)
    assert said[:, : len(asked)].tolist() == [asked] * ANSWERS
    assert len({tuple(one) for one in said.tolist()}) == ANSWERS
    assert not set(tokenizer.all_special_ids) & set(said[:, len(asked) :].flatten().tolist())
    assert torch.equal(said, answers(0)) and not torch.equal(said, answers(1))
    assert torch.equal(cache.layers[1].keys, keys) and torch.equal(torch.get_rng_state(), state)


def test_an_answer_follows_what_the_model_predicts_after_text_and_request(backbone, monkeypatch):
    """With almost no temperature it is what greedy decoding without a cache says."""
    monkeypatch.setattr(answering, "ANSWER_TOKENS", 6)
    monkeypatch.setattr(answering, "TEMPERATURE", 1e-4)
    model, tokenizer = backbone.model, backbone.tokenizer
    text, asked = encode("Somebody said something.", tokenizer), encode("What?", tokenizer)
    said = own_answers(model, tokenizer, read_text(model, text), asked, 0)
    tokens = text + asked
    for _ in range(6):
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0, -1]
        logits[tokenizer.all_special_ids] = float("-inf")
        tokens.append(int(logits.argmax()))
    assert said.tolist() == [tokens[len(text) :]] * ANSWERS
