"""Answers to parts: every form, in any split of the text."""

from __future__ import annotations

import json

import pytest

from edgeinfinite.runtime_py.tools.forms import FORMS, HERMES, form_of
from edgeinfinite.runtime_py.tools.reader import AnswerReader
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Said, Thought, Tool

FORM = {form.name: form for form in FORMS}
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = (Tool("weather", "", PLACE), Tool("now", "", {"type": "object", "properties": {}}))

Read = tuple[str, str, list[tuple[str, object]]]


def read(form: str, text: str, size: int = 0, **options: bool) -> Read:
    """Reasoning, text and calls of an answer that comes in pieces of `size` characters."""
    reader = AnswerReader(FORM[form], TOOLS, **options)
    step = size or max(1, len(text))
    parts = [part for i in range(0, len(text), step) for part in reader.push(text[i : i + step])]
    parts += reader.finish()
    thought = said = ""
    calls: list[list[str]] = []
    for part in parts:
        if isinstance(part, Thought):
            thought += part.text
        elif isinstance(part, Said):
            said += part.text
        elif isinstance(part, CallBegun):
            calls.append([part.name, ""])
        elif isinstance(part, CallPiece):
            calls[-1][1] += part.text
    assert reader.calls == len(calls) or reader.is_open
    return thought, said, [(name, json.loads(given)) for name, given in calls]


ROME, BOTH = {"city": 'Rome "}]\\ </tool_call>'}, {"city": "Rome", "days": 2}
HERMES_CALL = f"<tool_call>\n{json.dumps({'name': 'weather', 'arguments': ROME})}\n</tool_call>"

ANSWERS = [
    ("hermes", HERMES_CALL, "", [("weather", ROME)]),
    ("hermes", f"Let me see.\n{HERMES_CALL}\n", "Let me see.", [("weather", ROME)]),
    (
        "hermes",
        HERMES_CALL + '\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        "",
        [("weather", ROME), ("now", {})],
    ),
    ("hermes", '<tool_call>{"arguments": {}, "name": "now"}</tool_call>', "", [("now", {})]),
    ("hermes", '<tool_call>{"name": "now", "arguments": "{}"}', "", [("now", {})]),
    (
        "llama3",
        '{"name": "weather", "parameters": {"city": "}"}}',
        "",
        [("weather", {"city": "}"})],
    ),
    (
        "llama3",
        '\n{"type": "function", "name": "now", "parameters": {}}',
        "",
        [("now", {})],
    ),
    (
        "mistral",
        '[TOOL_CALLS] [{"name": "now", "arguments": {}}, {"name": "weather", "arguments": '
        '{"city": "Rome", "days": 2}}]',
        "",
        [("now", {}), ("weather", BOTH)],
    ),
    (
        "mistral-args",
        '[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]weather[ARGS]{"city": "Rome", "days": 2}',
        "",
        [("now", {}), ("weather", BOTH)],
    ),
    (
        "lfm2",
        "<|tool_call_start|>[now(), weather(city='Rome', days=2)]<|tool_call_end|>Wait.",
        "Wait.",
        [("now", {}), ("weather", BOTH)],
    ),
    (
        "lfm2",
        '<|tool_call_start|>[weather(city="x", days={"a": [true, None, -1]})]<|tool_call_end|>',
        "",
        [("weather", {"city": "x", "days": {"a": [True, None, -1]}})],
    ),
    (
        "qwen-xml",
        "<tool_call>\n<function=weather>\n<parameter=city>\nRome\nNorth\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        "",
        [("weather", {"city": "Rome\nNorth", "days": 2})],
    ),
    (
        "gemma",
        "<start_function_call>call:weather{city:<escape>Rome, {x}<escape>,days:2}"
        "<end_function_call><start_function_call>call:now{}<end_function_call>",
        "",
        [("weather", {"city": "Rome, {x}", "days": 2}), ("now", {})],
    ),
    (
        "gemma",
        "<start_function_call>call:weather{city:[true,{a:<escape>b<escape>}],days:{}}"
        "<end_function_call>",
        "",
        [("weather", {"city": [True, {"a": "b"}], "days": {}})],
    ),
]


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize(("form", "text", "said", "calls"), ANSWERS)
def test_calls_are_read_in_any_split(form, text, said, calls, size) -> None:
    assert read(form, text, size) == ("", said, calls)


@pytest.mark.parametrize(
    ("form", "before", "behind"),
    [
        ("hermes", '<tool_call>{"arguments": {"a": ', '}, "name": "now"}</tool_call>'),
        ("lfm2", "<|tool_call_start|>[now(a=", ")]<|tool_call_end|>"),
        ("gemma", "<start_function_call>call:now{a:", "}<end_function_call>"),
    ],
)
def test_arguments_may_be_nested_64_levels_deep(form, before, behind) -> None:
    deep = {"a": json.loads("[" * 63 + "]" * 63)}
    assert read(form, f"{before}{'[' * 63}{']' * 63}{behind}", 0) == ("", "", [("now", deep)])
    text = f"{before}{'[' * 64}{']' * 64}{behind}"
    assert read(form, text, 0) == ("", text, [])


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hermes", "Plain text, <tool and <tool_cal"),
        ("hermes", "<tool_call>\nnot JSON\n</tool_call>"),
        ("hermes", '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>'),
        ("hermes", '<tool_call>{"name": "now", "arguments": [1]}</tool_call>'),
        ("hermes", "<tool_call>" + "[" * 5_000),
        ("hermes", '<tool_call>{"name": "\\x", "arguments": {}}</tool_call>'),
        ("hermes", '<tool_call>{"name": "no\nw", "arguments": {}}</tool_call>'),
        ("llama3", '{"answer": 42}'),
        ("lfm2", "<|tool_call_start|>[weather('Rome')]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[]<|tool_call_end|>"),
        ("lfm2", "<|tool_call_start|>[weather(city=open('x'))]<|tool_call_end|>"),
        *(
            ("lfm2", f"<|tool_call_start|>[weather({given})]<|tool_call_end|>")
            for given in (
                *("city=b'x'", "city={1, 2}", "city=1j", "city=...", "city=({(1, 2): 3},)"),
                *("**{'city': 1}", "city={**{'a': 1}}", "city={[1]: 2}", "city=1e999"),
            )
        ),
        ("lfm2", "<|tool_call_start|>[weather(city=" + "[" * 3_000 + "<|tool_call_end|>"),
        ("mistral", "[TOOL_CALLS] nothing"),
        ("gemma", "<start_function_call>call:weather{city:<escape>Rome}<end_function_call>"),
        ("gemma", "<start_function_call>call:weather{city:" + "[" * 3_000 + "<end_function_call>"),
        ("qwen-xml", "<tool_call>\n<function=weather>\n</tool_call>"),
        ("hermes", "  \n two lines \n\n and an end \n"),
    ],
)
def test_what_is_no_call_stays_text(form, text, size) -> None:
    thought, said, calls = read(form, text, size)
    assert (thought, calls) == ("", [])
    assert said.strip() == text.strip()


def test_arguments_come_piece_by_piece() -> None:
    reader = AnswerReader(HERMES, TOOLS)
    pieces = [part for sign in HERMES_CALL for part in reader.push(sign)]
    assert pieces[0] == CallBegun("weather")
    assert all(isinstance(piece, CallPiece) for piece in pieces[1:]) and len(pieces) > 20
    assert reader.calls == 1 and not reader.is_open


def test_a_call_that_was_cut_is_open() -> None:
    reader = AnswerReader(HERMES, TOOLS)
    reader.push('<tool_call>\n{"name": "weather", "arguments": {"city": "Ro')
    assert reader.finish() == [] and reader.is_open and reader.calls == 0


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("<think>\nHm, so.\n</think>\n\nYes.", {"thinks": True}, ("Hm, so.\n", "Yes.")),
        ("Hm.</think>Yes.", {"thinking": True}, ("Hm.", "Yes.")),
        ("<think>\n\n</think>\n\nYes.", {"thinks": True}, ("", "Yes.")),
        ("<think>no end", {"thinks": True}, ("no end", "")),
        ("Text with <think> inside", {"thinks": True}, ("", "Text with <think> inside")),
        ("<think>a</think>", {}, ("", "<think>a</think>")),
        ("<thin", {"thinks": True}, ("", "<thin")),
    ],
)
def test_reasoning_is_told_apart(text, options, expected, size) -> None:
    thought, said, _ = read("hermes", text, size, **options)
    assert (thought, said) == expected


def test_reasoning_then_a_call() -> None:
    text = f"<think>\nI must look.\n</think>\n\n{HERMES_CALL}"
    assert read("hermes", text, 3, thinks=True) == ("I must look.\n", "", [("weather", ROME)])


def test_without_tools_a_call_is_text() -> None:
    reader = AnswerReader(HERMES, ())
    parts = [*reader.push(HERMES_CALL), *reader.finish()]
    assert "".join(part.text for part in parts) == HERMES_CALL


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('{{ \'\\n<tool_call>\\n{"name": "\' }}{% if tools %}', "hermes"),
        ('\'{"name": "\' + \'"parameters": \' {% if tools %}', "llama3"),
        (r"'{\"name\": \"' + '\"parameters\": ' {% if tools %}", "llama3"),
        ("[TOOL_CALLS] tools", "mistral"),
        ("[TOOL_CALLS] [ARGS] tools", "mistral-args"),
        ("<|tool_call_start|> tools", "lfm2"),
        ("<tool_call><function= tools", "qwen-xml"),
        ("<start_function_call> tools", "gemma"),
    ],
)
def test_a_template_tells_its_form(source, name) -> None:
    form = form_of(source)
    assert form is not None and form.name == name
    assert form_of("{{ tools }}") is None
