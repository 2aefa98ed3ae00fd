"""`make demo`: the shipped default answers in the template from the start of a long text."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from edgeinfinite import Conversation
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

_SPEC = importlib.util.spec_from_file_location(
    "demo", Path(__file__).parents[2] / "scripts" / "demo.py"
)
assert _SPEC is not None and _SPEC.loader is not None
demo = importlib.util.module_from_spec(_SPEC)
sys.modules["demo"] = demo  # dataclasses look their own module up
_SPEC.loader.exec_module(demo)

pytestmark = pytest.mark.slow


def test_the_demos_questions_are_answered_with_most_seeds(shipped: Path) -> None:
    reading = demo.read(Conversation.open(shipped))
    for question, answers in zip(demo.QUESTIONS, reading.answers, strict=True):
        # 8 and 7 here; kernels of another CPU round otherwise
        assert demo.right(question, answers) >= 5, (question.ask, answers)


def test_the_demos_answers_are_neither_among_the_sinks_nor_near_the_window(shipped: Path) -> None:
    tokenizer, conversation = load_tokenizer(shipped), Conversation.open(shipped)
    geometry = conversation.session.engine.geometry
    for question in demo.QUESTIONS:
        before = demo.text().partition(question.answer)[0]
        assert len(conversation.opening(before)) > geometry.sink_length
        assert demo.tokens_before_the_end(tokenizer, question) > 2 * geometry.capacity
