"""Attaching to the decoders that transformers has, and refusing the rest."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from architectures import ARCHITECTURES

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers, gate_parameters
from edgeinfinite.models.checkpoint.loading import parameters_digest
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import attached, random_tokens, tiny_family, tiny_llama

GEOMETRY = Geometry(segment_length=12, sink_length=4, window_length=6)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_short_prompt_equals_the_base_model(name):
    base = tiny_family(name)
    engine = TorchEngine(attach(tiny_family(name), EdgeInfiniteConfig(GEOMETRY)))
    tokens = random_tokens(GEOMETRY.capacity - 1)
    session = Session(engine, chunk_length=5)
    session.append(tokens[:9])
    for end in range(10, len(tokens) + 1):
        logits = session.append(tokens[end - 1 : end])
        with torch.inference_mode():
            expected = base(torch.tensor([tokens[:end]])).logits[0, -1]
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["reencode", "carry"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_any_split_gives_the_same_logits_past_three_compressions(name, policy):
    config = EdgeInfiniteConfig(GEOMETRY)
    if policy == "carry":
        config = EdgeInfiniteConfig(replace(GEOMETRY, policy=policy), NO_GATE)
    engine = TorchEngine(attach(tiny_family(name), config))
    tokens = random_tokens(60)
    expected = Session(engine).append(tokens)
    session = Session(engine, chunk_length=5)
    session.append(tokens[:29])
    for token in tokens[29:]:
        logits = session.append([token])
    assert session.compressions >= 3
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("opening", ["query", "place"])
@pytest.mark.parametrize("policy", ["reencode", "carry"])
def test_any_split_gives_the_same_with_a_learned_feature_map_and_an_opening(policy, opening):
    geometry = replace(GEOMETRY, policy=policy)
    engine = TorchEngine(attached(geometry, feature_map="learned", opening=opening))
    tokens = random_tokens(60)
    whole = Session(engine)
    expected = whole.append(tokens)
    session = Session(engine, chunk_length=5)
    session.append(tokens[:29])
    for token in tokens[29:]:
        logits = session.append([token])
    assert session.compressions >= 3
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)
    for name in ("memory", "memory_norm"):
        arrays = (s.state.arrays[name] for s in (session, whole))
        np.testing.assert_allclose(*arrays, rtol=1e-3, atol=1e-4)


def test_the_attached_model_without_a_state_is_the_base_model_and_its_weights_are_untouched():
    base, model = tiny_llama(), tiny_llama()
    before = parameters_digest(model)
    attach(model, EdgeInfiniteConfig(GEOMETRY))
    tokens = torch.tensor([random_tokens(60)])
    with torch.inference_mode():
        assert torch.equal(model(tokens).logits, base(tokens).logits)
    assert parameters_digest(model, gates=False) == before
    generated = model.generate(tokens[:, :5], max_new_tokens=5, do_sample=False)
    assert torch.equal(generated, base.generate(tokens[:, :5], max_new_tokens=5, do_sample=False))


def test_only_the_gates_can_be_trained():
    model = attached(GEOMETRY)
    trainable = {id(p) for p in model.parameters() if p.requires_grad}
    assert trainable == {id(p) for p in gate_parameters(model)}
    assert len(trainable) == 5 * len(attention_layers(model))


@pytest.mark.parametrize(
    ("geometry", "parts"),
    [
        (Geometry(500, 10, 11), "10 sinks + 500 segment + 11 window = 521 slots"),
        (Geometry(500, 0, 13), "500 segment + 13 window = 513 slots"),
        (
            Geometry(64, 10, 20, "carry", recall_slots=(128, 448)),
            "10 sinks + 448 recall slots + 64 segment + 20 window = 542 slots",
        ),
    ],
    ids=["reencode", "no sinks", "carry"],
)
def test_a_cache_too_long_for_the_backbone_is_refused_with_all_its_parts(geometry, parts):
    config = EdgeInfiniteConfig(geometry, scorer="untrained")
    message = f"{parts}, but LlamaForCausalLM was trained on 512 positions"
    with pytest.raises(EdgeInfiniteError, match=re.escape(message)):
        attach(tiny_llama(), config)


@pytest.mark.parametrize(
    ("config", "lack"),
    [
        (transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=50), "rotary"),
        (
            transformers.OPTConfig(
                hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=8, vocab_size=50
            ),
            "rotary",
        ),
        (
            transformers.MambaConfig(hidden_size=16, num_hidden_layers=1, vocab_size=50),
            "layer 0 is MambaMixer, not attention",
        ),
    ],
    ids=["gpt2", "opt", "mamba"],
)
def test_a_model_that_is_not_a_rope_decoder_is_refused_by_name(config, lack):
    model = transformers.AutoModelForCausalLM.from_config(config)
    with pytest.raises(
        EdgeInfiniteError, match=rf"{type(model).__name__} isn't supported: .*({lack})"
    ):
        attach(model, EdgeInfiniteConfig(GEOMETRY))


@pytest.mark.parametrize(
    "lengths",
    [{"segment_length": 0}, {"window_length": 0}, {"sink_length": -1}, {"segment_length": 2.5}],
)
def test_lengths_out_of_range_are_refused(lengths):
    with pytest.raises(EdgeInfiniteError, match="whole number"):
        Geometry(**lengths)


def test_an_unknown_policy_is_refused():
    with pytest.raises(EdgeInfiniteError, match="unknown policy"):
        Geometry(policy="forget")
