"""How a conversation samples where the user doesn't say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgeinfinite.runtime_py.answer.repetition import RepetitionDetection
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling

ENDS = {"repetition_detection": RepetitionDetection(128, 16, 3)}
FALLBACK = {"temperature": 0.3, "top_p": 0.9, "repetition_penalty": 1.1}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, FALLBACK),
        ({"eos_token_id": 2}, FALLBACK),
        ({"temperature": 0.3, "top_k": 20}, {"temperature": 0.3, "top_k": 20}),
        ({"repetition_penalty": 1.05}, {"temperature": 1.0, "repetition_penalty": 1.05}),
        ({"do_sample": True}, {"temperature": 1.0}),
        ({"do_sample": True, "top_p": 0.8}, {"temperature": 1.0, "top_p": 0.8}),
        ({"do_sample": False, "temperature": 0.3}, {"temperature": 0.0}),
        ({"temperature": None}, FALLBACK),
    ],
)
def test_the_checkpoint_decides_and_its_silence_means_the_fallback(
    settings: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    assert conversation_sampling(tmp_path) == expected | ENDS
