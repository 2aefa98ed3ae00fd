"""An assistant's last message left open, against transformers' `continue_final_message`."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate

FAMILIES = Path(__file__).parents[2] / "android" / "templates_of_families"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TEXTS = ["The capital of France is", "The answer: ", "Paris.\n\n", "  two", "a </think> b", "<s>"]


def conversation(text: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": text},
    ]


@pytest.mark.parametrize("family", sorted(path.name for path in FAMILIES.glob("*.jinja")))
@pytest.mark.parametrize("text", TEXTS)
def test_the_rendering_is_that_of_transformers(family: str, text: str) -> None:
    source = (FAMILIES / family).read_text(encoding="utf-8")
    try:
        (expected,), _ = render_jinja_template(
            [conversation(text)], chat_template=source, continue_final_message=True, **SPECIAL
        )
    except ValueError:
        with pytest.raises(EdgeInfiniteError, match="the last message"):
            ChatTemplate(source, SPECIAL).render_open(conversation(text))
        return
    assert ChatTemplate(source, SPECIAL).render_open(conversation(text)) == expected


def test_a_template_that_drops_answers_is_refused() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.role }}{% endfor %}", {})
    with pytest.raises(EdgeInfiniteError, match="changes or drops a part of the last message"):
        template.render_open(conversation("The capital"))


def test_without_an_opening_the_template_ends_with_the_last_message() -> None:
    source = "{% for m in messages %}<{{ m.content }}>{% endfor %}{% if add_generation_prompt %}:"
    template = ChatTemplate(source + "{% endif %}", {})
    messages = conversation("Yes")[:1]
    assert template.render(messages).endswith(">:")
    assert template.render(messages, opens=False).endswith(">")
