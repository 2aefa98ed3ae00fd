"""`make demo`: the shipped default answers from the start of a long text, with a margin."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

_SPEC = importlib.util.spec_from_file_location(
    "demo", Path(__file__).parents[2] / "scripts" / "demo.py"
)
assert _SPEC is not None and _SPEC.loader is not None
demo = importlib.util.module_from_spec(_SPEC)
sys.modules["demo"] = demo  # dataclasses look their own module up
_SPEC.loader.exec_module(demo)

pytestmark = pytest.mark.slow

MARGIN = 1.0
"""Nats to the runner-up, at every token of an answer. examples/README.md has the margins measured,
and what rounding moves."""


def test_the_demos_questions_are_answered_with_a_margin(shipped: Path, tmp_path: Path) -> None:
    tokenizer, engine = load_tokenizer(shipped), load_engine(shipped)
    session = Session(engine)
    session.append(tokenizer.encode_text(demo.text()))
    save_session(session, tmp_path / "text.session")
    for question in demo.QUESTIONS:
        asked, _ = load_session(engine, tmp_path / "text.session")
        logits = asked.append(tokenizer.encode_text(question.prompt))
        for token in tokenizer.encode_text(question.answer):
            others = np.delete(logits, token)
            assert logits[token] - others.max() > MARGIN, (question.ask, tokenizer.decode([token]))
            logits = asked.append([token])


def test_the_demos_answers_were_last_mentioned_15000_tokens_before_the_end(shipped: Path) -> None:
    tokenizer = load_tokenizer(shipped)
    for question in demo.QUESTIONS:
        assert demo.tokens_before_the_end(tokenizer, question) >= 15_000
