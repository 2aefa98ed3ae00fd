"""A template can loop, nest and multiply as it likes: it ends in one line, in bounded time."""

from __future__ import annotations

import time

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text import chat_template
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate

MESSAGES = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Yes?"},
    {"role": "user", "content": "Who?"},
]
_DOUBLE = (
    "{% set ns = namespace(s=START) %}{% for i in range(99) %}{% set ns.s = NEXT %}{% endfor %}"
)


def _doubling(start: str, following: str) -> str:
    return _DOUBLE.replace("START", start).replace("NEXT", following) + "{{ ns.s }}"


ENDLESS = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) if a > b %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% block a %}{{ self.a() }}{% endblock %}",
    _doubling("'ab'", "ns.s ~ ns.s"),
    _doubling("'ab'", "ns.s + ns.s"),
    _doubling("'ab'", "[ns.s, ns.s]"),
    _doubling("'ab'", "(ns.s, ns.s)"),
    _doubling("'ab'", "{1: ns.s, 2: ns.s}"),
    _doubling("'ab'", "ns.s.replace('a', 'aaa')"),
    _doubling("'ab'", "ns.s|replace('a', 'aaa')"),
    _doubling("'ab'", "ns.s|e ~ '&'") + _doubling("'&'", "'%s%s' % (ns.s, ns.s)"),
    _doubling("'ab'", "'{0}{0}'.format(ns.s)"),
    _doubling("'ab'", "[ns.s, ns.s]|join"),
    _doubling("3", "ns.s * ns.s"),
    _doubling("3", "ns.s ** 9"),
    "{{ 'a' * 10**12 }}",
    "{{ [0] * 10**9 }}",
    "{{ 10 ** (10 ** 10) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '{:>999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ 'a'.center(10**9) }}",
    "{{ 'a'|center(1000000000) }}",
    "{{ 'a'|indent(1000000000, true) }}",
    "{{ '%999999999d'|format(1) }}",
    "{{ ('a' * 9999).join(range(99999)) }}",
    "{{ [1]|tojson(indent=999999) }}",
    "{{ range(99999)|list|sum(start=[]) }}",
    "{{ 'a'.expandtabs(9) }}{{ 'a'.expandtabs(9)() }}",
    "{{ strftime_now('%999999999Y') }}",
    "{{ lipsum(n=100000) }}",
    "{% macro f() %}" + "x" * 9999 + "{% endmacro %}{% for i in range(99999) %}"
    "{% set x = f() %}{% endfor %}",
    "{% for i in range(99999) %}{% set x %}" + "y" * 9999 + "{% endset %}{% endfor %}",
    "{% for i in range(99999) %}" + "z" * 9999 + "{% endfor %}",
    "{{ 1 / 0 }}",
    "{% include 'x' %}",
]


@pytest.mark.parametrize("source", ENDLESS, ids=range(len(ENDLESS)))
def test_a_template_without_end_is_refused_in_one_line(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "SECONDS", 0.2)
    start = time.perf_counter()
    with pytest.raises(EdgeInfiniteError, match=r"refuses the conversation: .") as caught:
        ChatTemplate(source, {}).render(MESSAGES)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    assert time.perf_counter() - start < 2.0


UNREADABLE = [
    "{{ " + "(" * 20_000,
    "{{ " + "[" * 2_000 + "]" * 2_000 + " }}",
    "{% if a %}" * 500 + "{% endif %}" * 500,
    "{% for a in b %}" * 50 + "{% endfor %}" * 50,
    "{{ 1" + "0" * 5_000 + " }}",
    "{{ 'a'|pprint }}",
    "{{ -" * 10_000,
    "x" * 300_000,
]


@pytest.mark.parametrize("source", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_template_that_python_can_not_compile_is_refused_in_one_line(source: str) -> None:
    with pytest.raises(EdgeInfiniteError, match=r"can't be parsed: .*export") as caught:
        ChatTemplate(source, {})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_long_message_is_no_template_s_fault() -> None:
    source = (
        "{% set parts = [] %}{% for m in messages %}{% set parts = parts + [m.content ~ '!'] %}"
        "{{ '<' ~ m.role ~ '>' }}{{ (m.content|trim).replace('a', 'bb') + '\n' }}{% endfor %}"
        "{{ messages|tojson|length }}{{ '%s is %d' % ('a', 3) }}{{ '{:>4}'.format('b') }}"
    )
    text = "a word and " * 400_000
    rendered = ChatTemplate(source, {}).render([{"role": "user", "content": text}] * 3)
    assert rendered.startswith("<user>bb word bbnd ")
    assert rendered.endswith(f"{13_200_000 + 3 * 31 + 2 * 2 + 2}a is 3   b")


def test_running_out_of_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str) -> str:
        raise MemoryError

    monkeypatch.setattr(chat_template, "_strftime_now", full)
    template = ChatTemplate("{{ strftime_now('%Y') }}", {})
    with pytest.raises(EdgeInfiniteError, match="refuses the conversation: MemoryError"):
        template.render(MESSAGES)


def test_a_macro_takes_any_number() -> None:
    source = "{% macro f(n) %}{{ n }}{% endmacro %}{{ f(1764417600000) }}"
    assert ChatTemplate(source, {}).render(MESSAGES) == "1764417600000"
