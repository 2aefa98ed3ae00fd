"""Windows are taken from the masks that transformers makes; other attention is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from every_decoder import tiny_decoder
from transformers import AttentionInterface, masking_utils

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.untouched import check_untouched
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.masks import window_of
from tiny import tiny_llama


@pytest.mark.parametrize("positions", [8, 500, 131_072])
def test_a_causal_rule_has_no_window(positions: int) -> None:
    assert window_of(masking_utils.causal_mask_function, positions) is None


@pytest.mark.parametrize("window", [1, 7, 4096, 131_072])
def test_the_window_of_a_rule_is_measured(window: int) -> None:
    rule = masking_utils.sliding_window_causal_mask_function(window)
    assert window_of(rule, 131_072) == window


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (masking_utils.bidirectional_mask_function, "sees later ones"),
        (
            masking_utils.or_masks(
                masking_utils.causal_mask_function, lambda b, h, q, k: (q < 20) & (k < 20)
            ),
            "sees later ones",
        ),
        (masking_utils.sliding_window_bidirectional_mask_function(7), "sees later ones"),
        (masking_utils.chunked_causal_mask_function(16, torch.zeros(1, dtype=int)), "chunked"),
        (
            masking_utils.and_masks(
                masking_utils.causal_mask_function, lambda b, h, q, k: (q - k) % 2 == 0
            ),
            "one stretch",
        ),
    ],
    ids=["bidirectional", "prefix", "bidirectional window", "chunked", "dilated"],
)
def test_a_rule_that_is_no_window_is_refused_by_what_it_is(rule: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        window_of(rule, 200)


@pytest.mark.parametrize("kind", ["phimoe", "qwen2_moe"])
def test_a_window_that_stands_only_in_the_mask_is_found_and_computed(kind: str) -> None:
    model = tiny_decoder(kind, windows=True)
    assert 7 in architecture_of(model).sliding_windows
    assert all(check.passed for check in check_untouched(model, "carry"))


def test_a_layer_that_attends_twice_is_refused() -> None:
    with pytest.raises(EdgeInfiniteError, match=r"DiffLlama.*its layer 0 attends 2 times"):
        architecture_of(tiny_decoder("diffllama"))


def _patched(monkeypatch: pytest.MonkeyPatch, change: Any) -> Any:
    """A Llama whose attention module calls the interface in another way."""
    from transformers.models.llama import modeling_llama

    found = AttentionInterface.get_interface

    def get_interface(self: Any, name: str, default: Any) -> Any:
        attend = found(self, name, default)
        return lambda module, *arguments, **named: change(attend, module, *arguments, **named)

    monkeypatch.setattr(
        type(modeling_llama.ALL_ATTENTION_FUNCTIONS), "get_interface", get_interface
    )
    return tiny_llama()


def test_attention_that_is_given_its_mask_by_keyword_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_keyword(attend, module, query, key, value, mask, **named):  # type: ignore[no-untyped-def]
        return attend(module, query, key, value, attention_mask=mask, **named)

    model = _patched(monkeypatch, by_keyword)
    assert all(check.passed for check in check_untouched(model, "carry"))


def test_an_argument_of_attention_that_nobody_knows_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def biased(attend, module, *arguments, **named):  # type: ignore[no-untyped-def]
        return attend(module, *arguments, position_bias=torch.zeros(1), **named)

    with pytest.raises(EdgeInfiniteError, match="its attention depends on position_bias"):
        architecture_of(_patched(monkeypatch, biased))


def test_attention_that_is_not_causal_is_refused() -> None:
    model = tiny_llama()
    for layer in model.get_decoder().layers:
        layer.self_attn.is_causal = False
    with pytest.raises(EdgeInfiniteError, match="attention isn't causal"):
        architecture_of(model)
