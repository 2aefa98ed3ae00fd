"""An attached model is compared with untouched transformers, before and after evictions."""

from __future__ import annotations

import pytest
import torch
from tiny_gemma4 import FEW, tiny_gemma4
from tiny_lfm2 import tiny_lfm2

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.untouched import (
    EVICTED,
    WITHIN,
    check_untouched,
    refuse_other_results,
)
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach, attention_layers, config_of
from edgeinfinite.models.attention.call import AttentionCall, layer_of
from edgeinfinite.models.checkpoint.loading import parameters_digest
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.recall import movement
from edgeinfinite.models.weights.shared_copy import shared_copy
from tiny import tiny_family, tiny_hybrid, tiny_llama

POLICIES = ["carry", "reencode"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["Llama 3.2", "Gemma 3", "SmolLM3", "Phi-4-mini"])
def test_a_supported_model_computes_what_transformers_does(name: str, policy: str) -> None:
    checks = check_untouched(tiny_family(name), policy)
    assert [check.check for check in checks] == [WITHIN, EVICTED]
    assert all(check.passed and 0 < check.value < 1e-5 for check in checks)


def test_keys_that_are_moved_wrong_are_found_after_eviction_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Then attaching takes the first way of moving keys, by halves, for neighbours, too.
    monkeypatch.setattr(movement, "_error", lambda keys, table: 0.0)
    within, evicted = check_untouched(tiny_family("ERNIE 4.5"), "carry")
    assert within.passed and not evicted.passed
    with pytest.raises(EdgeInfiniteError, match=r"Ernie.*once tokens have left .*--policy carry"):
        refuse_other_results(tiny_family("ERNIE 4.5"), "carry")
    assert refuse_other_results(tiny_family("ERNIE 4.5"), "reencode")  # which moves no keys


@pytest.mark.parametrize("policy", POLICIES)
def test_a_window_of_a_wrong_length_is_found_though_the_text_is_shorter(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    model = tiny_hybrid("Gemma2", 60, positions=512)
    assert all(check.passed for check in check_untouched(model, policy))
    right = AttentionCall.of.__func__  # type: ignore[attr-defined]

    def wider(cls, module, query, key, value, scaling, window, *more):  # type: ignore[no-untyped-def]
        return right(cls, module, query, key, value, scaling, window and window + 1, *more)

    model = tiny_hybrid("Gemma2", 60, positions=512)
    monkeypatch.setattr(AttentionCall, "of", classmethod(wider))
    assert not check_untouched(model, policy)[1].passed


def test_another_scale_of_scores_is_found_within_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = AttentionCall.of.__func__  # type: ignore[attr-defined]

    def other(cls, module, query, key, value, scaling, *more):  # type: ignore[no-untyped-def]
        return right(cls, module, query, key, value, 1.01 * scaling, *more)

    monkeypatch.setattr(AttentionCall, "of", classmethod(other))
    within, _ = check_untouched(tiny_llama(), "carry")
    assert not within.passed
    with pytest.raises(EdgeInfiniteError, match="read in several calls"):
        refuse_other_results(tiny_llama(), "carry")


def test_a_table_with_fewer_rows_than_the_vocabulary_is_refused_in_a_line() -> None:
    model = tiny_gemma4(**FEW, vocab_size_per_layer_input=200)
    with pytest.raises(EdgeInfiniteError, match=r"vocabulary of 258 \(index out of range"):
        refuse_other_results(model, "carry")


def test_comparing_leaves_an_attached_model_as_it_is() -> None:
    geometry = Geometry(segment_length=12, sink_length=4, window_length=6)
    model = attach(tiny_llama(), EdgeInfiniteConfig(geometry))
    gates = [layer.memory_gate for layer in attention_layers(model)]
    digest, settings = parameters_digest(model), model.config.to_dict()
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    check_untouched(model, "carry")
    assert torch.equal(torch.rand(4), expected)
    assert parameters_digest(model) == digest and model.config.to_dict() == settings
    assert config_of(model).geometry == geometry
    assert [layer.memory_gate for layer in attention_layers(model)] == gates


def test_a_shared_copy_of_some_layers_has_their_weights_and_settings() -> None:
    model = tiny_family("Gemma 3")
    copied = shared_copy(model, [1])
    own, other = copied.get_decoder().layers[0].self_attn, model.get_decoder().layers[1].self_attn
    assert own is not other and own.q_proj.weight is other.q_proj.weight
    assert (own.layer_idx, other.layer_idx) == (0, 1)
    assert copied.config.layer_types == ["full_attention"] and len(model.config.layer_types) == 2
    assert copied.get_input_embeddings().weight is model.get_input_embeddings().weight


def test_a_copy_of_all_layers_knows_what_was_measured_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each fact takes a pass through the model, seconds for a billion weights."""
    model = tiny_lfm2()
    facts = architecture_of(model)
    copied, one = shared_copy(model), shared_copy(model, [2])
    passes = []
    decoder = type(model.get_decoder())
    forward = decoder.forward
    monkeypatch.setattr(
        decoder, "forward", lambda *given, **named: passes.append(1) or forward(*given, **named)
    )
    assert architecture_of(copied) == facts and not passes
    layers = copied.get_decoder().layers
    assert [layer_of(layers[index].self_attn) for index in (2, 4)] == [0, 1]
    assert len(architecture_of(one).layers) == 1 and passes
