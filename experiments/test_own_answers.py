"""What tokens after a text pay, and answers drawn by chance, on a tiny model."""

from __future__ import annotations

import own_answers
import torch
from slots_at_question import prefill

from tiny import random_tokens, tiny_llama


def test_what_is_paid_is_the_models_own_attention_and_the_cache_stays(monkeypatch):
    monkeypatch.setattr(own_answers, "PART", 5)
    model, text, after = tiny_llama(), random_tokens(30), random_tokens(12, seed=1)
    with torch.inference_mode():
        cache = prefill(model, text)
    found = own_answers.paid(model, cache, after)
    assert cache.get_seq_length() == 30
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(torch.tensor([text + after]), output_attentions=True).attentions
    wanted = torch.stack([w[0].unflatten(0, (2, 2))[..., 30:, :30].amax((1, 2)) for w in weights])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_answers_differ_are_whole_and_leave_the_cache(monkeypatch):
    monkeypatch.setattr(own_answers, "ANSWER_TOKENS", 9)
    model = tiny_llama()
    with torch.inference_mode():
        cache = prefill(model, random_tokens(30))
    torch.manual_seed(0)
    said = own_answers.answers(model, cache, [5, 6], forbidden=[0, 1, 2])
    assert [len(one) for one in said] == [9] * own_answers.ANSWERS
    assert len({tuple(one) for one in said}) > 1
    assert not {0, 1, 2} & {token for one in said for token in one}
    assert cache.get_seq_length() == 30
