"""Paragraphs with questions in SQuAD's format, planted like facts."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_squad import NAMES, tiny_squad

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.squad import draw_questions, read_squad


def test_questions_without_an_answer_are_left_out(tmp_path):
    paragraphs = read_squad(tiny_squad(tmp_path / "squad.json"))
    asked = [[(q.text, q.answer) for q in paragraph.questions] for paragraph in paragraphs]
    assert asked == [[(f"Who has {name}y?", name)] for name in NAMES]


def test_every_drawn_question_is_about_another_paragraph(tmp_path):
    paragraphs = read_squad(tiny_squad(tmp_path / "squad.json"))
    facts = draw_questions(paragraphs, 4, np.random.default_rng(0))
    assert {fact.answer for fact in facts} == {f" {name}" for name in NAMES}
    for fact in facts:
        assert fact.answer.strip() in fact.statement
        assert fact.question == f"Question: Who has {fact.answer.strip()}y?\nAnswer:"
    again = draw_questions(paragraphs, 4, np.random.default_rng(0))
    assert facts == again != draw_questions(paragraphs, 4, np.random.default_rng(1))
    with pytest.raises(EdgeInfiniteError, match="about 4 paragraphs, not 5"):
        draw_questions(paragraphs, 5, np.random.default_rng(0))


@pytest.mark.parametrize("content", ["{", "[]", '{"data": [{}]}', '{"data": [1]}'])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "squad.json"
    path.write_text(content)
    with pytest.raises(EdgeInfiniteError, match="isn't a file of questions"):
        read_squad(path)
    path.write_text('{"data": []}')
    with pytest.raises(EdgeInfiniteError, match="no question with an answer"):
        read_squad(path)
