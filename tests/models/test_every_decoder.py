"""Each causal LM of transformers is right after evictions, or refused in one line that says why."""

from __future__ import annotations

import pytest
from every_decoder import (
    OUTCOMES,
    TYPES,
    expected,
    has_windows,
    outcome,
    tiny_decoder,
)

from edgeinfinite.export.parity.untouched import check_untouched
from edgeinfinite.models.architecture import architecture_of

RIGHT = OUTCOMES["right"].split()
WITH_STATES = {
    *("bamba", "falcon_h1", "granitemoehybrid", "lfm2", "lfm2_moe", "lfm3"),
    *("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"),
}
"""Some of their layers keep more than KV caches: only `carry` never reads a token twice."""


def test_the_list_has_every_type_of_transformers_once() -> None:
    listed = [kind for kinds in OUTCOMES.values() for kind in kinds.split()]
    assert sorted(listed) == sorted(TYPES)


@pytest.mark.parametrize("kind", TYPES)
def test_a_decoder_is_right_or_refused_with_its_reason(kind: str) -> None:
    assert outcome(kind, "carry") == expected(kind)


@pytest.mark.parametrize("kind", RIGHT)
def test_a_decoder_is_right_under_the_papers_policy(kind: str) -> None:
    wanted = "layers whose state can't be read again" if kind in WITH_STATES else "right"
    assert outcome(kind, "reencode") == wanted


@pytest.mark.parametrize("kind", [kind for kind in RIGHT if has_windows(kind)])
def test_a_decoder_whose_windows_are_turned_on_is_right(kind: str) -> None:
    model = tiny_decoder(kind, windows=True)
    assert 7 in architecture_of(model).sliding_windows
    assert all(check.passed for check in check_untouched(model, "carry"))
