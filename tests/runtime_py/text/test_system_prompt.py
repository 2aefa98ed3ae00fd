"""A system prompt is told by the template, or refused: never dropped."""

from __future__ import annotations

from typing import Any

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate
from edgeinfinite.runtime_py.text.system_prompt import check_system

_TURNS = (
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_OWN = "{{ '<|im_start|>system\nYou are kind.<|im_end|>\n' }}"
PLAIN = f"{{% for m in messages %}}{_TURNS}"
WITH_OWN = (
    f"{{% for m in messages %}}{{% if loop.first and m.role != 'system' %}}{_OWN}{{% endif %}}"
    f"{_TURNS}"
)
IN_THE_USERS_TURN = (  # as Gemma 3
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{% set first = messages[0].content + '\n\n' %}{% set rest = messages[1:] %}"
    "{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}"
    "{{ '<start_of_turn>' + m.role + '\n' + (first if loop.first else '') + m.content | trim }}"
    "{{ '<end_of_turn>\n' }}{% endfor %}<start_of_turn>model\n"
)
WITH_A_DATE = (  # as Llama 3.2
    "{% if messages[0].role == 'system' %}{% set told = messages[0].content | trim %}"
    "{% set messages = messages[1:] %}{% else %}{% set told = '' %}{% endif %}"
    "<|h|>system<|e|>\n\nToday Date: {{ strftime_now('%d %b %Y') }}\n\n{{ told }}<|eot|>"
    "{% for m in messages %}<|h|>{{ m.role }}<|e|>\n\n{{ m.content }}<|eot|>{% endfor %}"
)
INSISTS = (  # as SmolLM3: an empty one is none
    "{% set told = messages[0].content if messages[0].role == 'system' else '' %}"
    "<|im_start|>system\n{{ told or 'You are kind.' }}<|im_end|>\n"
    "{% for m in messages if m.role != 'system' %}" + _TURNS
)
REFUSES = (  # as Gemma 1 and 2
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + PLAIN
)
DROPS = "{% for m in messages if m.role != 'system' %}" + _TURNS
HI = {"role": "user", "content": "Hi"}
TELLS = (PLAIN, WITH_OWN, IN_THE_USERS_TURN, WITH_A_DATE, INSISTS)


def _template(source: str) -> ChatTemplate:
    return ChatTemplate(source, {"bos_token": "<bos>"})


@pytest.mark.parametrize("source", TELLS)
def test_a_text_is_taken_where_the_template_tells_it(source: str) -> None:
    check_system(_template(source), "Be brief.")


@pytest.mark.parametrize("source", TELLS[:-1])
def test_an_empty_one_is_taken_where_it_takes_the_place_of_the_templates_own(source: str) -> None:
    check_system(_template(source), "")
    check_system(_template(source), " \n")


def test_an_empty_one_is_refused_where_the_template_would_tell_its_own() -> None:
    with pytest.raises(EdgeInfiniteError, match="puts its own system prompt in the place") as told:
        check_system(_template(INSISTS), "")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("source", "what"), [(REFUSES, "refuses them"), (DROPS, "drops them")], ids=["refuses", "drops"]
)
@pytest.mark.parametrize("text", ["Be brief.", ""])
def test_a_template_without_the_role_is_refused_in_a_line(
    source: str, what: str, text: str
) -> None:
    with pytest.raises(EdgeInfiniteError, match=f"has no system prompt: it {what}") as told:
        check_system(_template(source), text)
    assert "\n" not in str(told.value)


def test_a_conversation_is_refused_whose_system_message_would_be_dropped() -> None:
    told = {"role": "system", "content": " Be brief.\n"}
    skips = "{% if m.role == 'system' and not loop.first %}{% continue %}{% endif %}"
    only_first = f"{{% for m in messages %}}{skips}{_TURNS}"
    late = [HI, {"role": "assistant", "content": "Hello"}, told, HI]
    for source, messages in ((DROPS, [told, HI]), (only_first, late)):
        with pytest.raises(EdgeInfiniteError, match="drops the system message"):
            _template(source).render(messages)
    assert "Be brief." in _template(only_first).render([told, HI])
    empty = {"role": "system", "content": ""}
    assert _template(DROPS).render([empty, HI]) == _template(DROPS).render([HI])


def test_words_that_a_template_takes_out_of_a_system_message_are_no_loss() -> None:
    switch = "{% for m in messages %}" + _TURNS.replace(
        "m.content", "m.content.replace('/no_think', '')"
    )
    told = {"role": "system", "content": "Be brief. /no_think Be kind."}
    assert "Be brief.  Be kind." in _template(switch).render([told, HI])


def test_without_a_template_there_is_nobody_to_tell_it() -> None:
    with pytest.raises(EdgeInfiniteError, match="needs a chat template"):
        check_system(None, "Be brief.")


def test_another_type_is_refused() -> None:
    number: Any = 5
    with pytest.raises(EdgeInfiniteError, match="is of type int; give text"):
        check_system(_template(PLAIN), number)
