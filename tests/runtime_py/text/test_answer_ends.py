"""The tokens with which templates of public families end an answer."""

from __future__ import annotations

import pytest
from answer_end_templates import CASES, names_of, tokenizer_of

from edgeinfinite.runtime_py.text.answer_ends import answer_ends
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate


@pytest.mark.parametrize(("template", "special", "plain", "ends"), CASES)
def test_the_token_behind_an_answer_is_found_in_templates_of_every_shape(
    template: str, special: str, plain: str, ends: str
) -> None:
    tokenizer = tokenizer_of(special, plain)
    found = answer_ends(ChatTemplate(template, names_of(special)), tokenizer)
    assert {tokenizer.id_to_token(token) for token in found} == set(ends.split())
