"""Calls of a model that chooses its tokens at random: only the grammar can make them right."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer
from edgeinfinite.runtime_py.tools.forms import FORMS, HERMES, ToolForm
from edgeinfinite.runtime_py.tools.grammar import tool_grammar
from edgeinfinite.runtime_py.tools.reader import AnswerReader
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Said, Tool, Tools

pytest.importorskip("llguidance")

PET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 4},
        "kind": {"type": "string", "enum": ["dog", "big cat"]},
        "legs": {"type": "integer", "minimum": 0, "maximum": 9},
        "tame": {"type": "boolean"},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
TOOLS = (
    Tool("pet", "", PET),
    Tool("now", "", {"type": "object", "properties": {}, "additionalProperties": False}),
)


def is_right(name: str, arguments: dict[str, object]) -> bool:
    """Whether arguments are of their tool's schema."""
    if name == "now":
        return arguments == {}
    right = {
        "name": lambda one: isinstance(one, str) and len(one) <= 4,
        "kind": lambda one: one in ("dog", "big cat"),
        "legs": lambda one: type(one) is int and 0 <= one <= 9,
        "tame": lambda one: isinstance(one, bool),
    }
    return {"name", "kind"} <= set(arguments) <= set(right) and all(
        right[key](one) for key, one in arguments.items()
    )


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("tools") / "checkpoint")
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def guidance(tokenizer: TextTokenizer) -> Guidance:
    return Guidance(tokenizer, VOCABULARY)


def written(
    tokenizer: TextTokenizer, grammar, seed: int, end: str = '"', most: int = 600
) -> str | None:
    """A text that the grammar allows, chosen at random; None: too long.

    Args:
        tokenizer: of one token for each byte.
        grammar: see there.
        seed: of the choice.
        end: ends a string, which would go on for ever by chance.
        most: tokens.
    """
    chance = random.Random(seed)
    stream, text = tokenizer.stream(), ""
    due: list[int] = []
    for _ in range(most):
        allowed = np.flatnonzero(grammar.allowed())
        if not len(allowed):
            return text
        if len(allowed) > 100 and not due and chance.random() < 0.3:
            due = tokenizer.encode_more(end)
        token = due.pop(0) if due else int(chance.choice(allowed))
        if token in tokenizer.stop_ids:
            return text
        grammar.accept(token)
        text += stream.push(token)
        if grammar.is_finished:
            return text
    return None


def calls_of(form: ToolForm, text: str) -> list[tuple[str, dict[str, object]]]:
    reader = AnswerReader(form, TOOLS)
    parts = [*reader.push(text), *reader.finish()]
    assert not any(isinstance(part, Said) for part in parts), text
    names = [part.name for part in parts if isinstance(part, CallBegun)]
    pieces = "".join(
        "\n" if isinstance(part, CallBegun) else part.text
        for part in parts
        if isinstance(part, CallBegun | CallPiece)
    )
    return list(zip(names, map(json.loads, pieces.split("\n")[1:]), strict=True))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_required_call_is_valid_in_every_form(form, tokenizer, guidance) -> None:
    wanted = Tools(TOOLS, "required", parallel=False)
    found = set()
    for seed in range(12):
        grammar = tool_grammar(guidance, form, wanted)
        end = {"gemma": "<escape>", "qwen-xml": "\n</parameter>\n"}.get(form.name, '"')
        text = written(tokenizer, grammar, seed, end)
        if text is None:
            continue
        ((name, arguments),) = calls_of(form, text)
        found.add(name)
        assert is_right(name, arguments), arguments
    assert found == {"pet", "now"}


def test_one_by_name_is_the_only_one(tokenizer, guidance) -> None:
    grammar_of = lambda: tool_grammar(guidance, HERMES, Tools(TOOLS, "required", ("now",)))  # noqa: E731
    for seed in range(3):
        text = written(tokenizer, grammar_of(), seed, most=2_000)
        assert text is None or {name for name, _ in calls_of(HERMES, text)} == {"now"}


def accepts(tokenizer: TextTokenizer, grammar, text: str) -> bool:
    """Whether an answer may be this text and end there."""
    for token in tokenizer.encode_more(text):
        if not grammar.allowed()[token]:
            return False
        grammar.accept(token)
    allowed = grammar.allowed() if not grammar.is_finished else np.zeros(VOCABULARY, bool)
    return grammar.is_finished or any(allowed[stop] for stop in tokenizer.stop_ids)


CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "now", "arguments": {"x": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    ("tools", "options", "text", "allowed"),
    [
        (Tools(TOOLS), {}, "Just text.", True),
        (Tools(TOOLS), {}, CALL, True),
        (Tools(TOOLS), {}, f"Wait.\n{CALL}\n{CALL}", True),
        (Tools(TOOLS), {}, WRONG, False),
        (Tools(TOOLS, parallel=False), {}, f"{CALL}\n{CALL}", False),
        (Tools(TOOLS, "none"), {}, "Just text.", True),
        (Tools(TOOLS, "none"), {}, CALL, False),
        (Tools(TOOLS, "required"), {}, "Just text.", False),
        (Tools(TOOLS, "required"), {}, CALL, True),
        (Tools(TOOLS, only=("pet",)), {}, CALL, False),
        (Tools(TOOLS, "required"), {"thinks": True}, f"<think>\nHm.\n</think>\n\n{CALL}", True),
        (Tools(TOOLS, "required"), {"thinks": True}, CALL, True),
        (Tools(TOOLS, "required"), {"thinking": True}, f"Hm.</think>\n{CALL}", True),
        (Tools(TOOLS, "required"), {"thinking": True}, CALL, False),
        (Tools(TOOLS), {"schema": '{"type": "integer"}'}, "12", True),
        (Tools(TOOLS), {"schema": '{"type": "integer"}'}, CALL, True),
        (Tools(TOOLS), {"schema": '{"type": "integer"}'}, "text", False),
    ],
)
def test_the_choice_is_kept(tools, options, text, allowed, tokenizer, guidance) -> None:
    grammar = tool_grammar(guidance, HERMES, tools, **options)
    assert accepts(tokenizer, grammar, text) is allowed


def test_special_tokens_stand_for_marks_that_are_such(tokenizer, guidance) -> None:
    (form,) = (form for form in FORMS if form.name == "lfm2")
    special = {"<|im_start|>": 0}
    form = ToolForm("x", (), "<|im_start|>", "]", form.body)
    for choice in ("required", "auto"):
        grammar = tool_grammar(guidance, form, Tools(TOOLS, choice), special=special)
        if choice == "auto":
            grammar.accept(tokenizer.encode_more("a")[0])
        assert grammar.allowed()[0]
        grammar.accept(0)
        assert np.flatnonzero(grammar.allowed()).tolist() == tokenizer.encode_more("[")


AHEAD = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}


def test_a_strict_schema_that_cant_be_held_to_is_refused_by_its_property(guidance) -> None:
    for schema, says in (
        (AHEAD, r"the tool f: .* properties\.a\.pattern '\(\?=a\)b' can't be used"),
        (
            {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}},
            r"the tool f: .* properties\.a\.uniqueItems is not supported",
        ),
    ):
        with pytest.raises(EdgeInfiniteError, match=says):
            tool_grammar(guidance, HERMES, Tools((Tool("f", "", schema, strict=True),)))


def test_any_object_will_do_where_a_schema_isnt_strict(tokenizer, guidance) -> None:
    tools = Tools((Tool("f", "", AHEAD), *TOOLS))
    call = '<tool_call>\n{"name": "f", "arguments": {"z": 1}}\n</tool_call>'
    assert accepts(tokenizer, tool_grammar(guidance, HERMES, tools), call)
    assert not accepts(tokenizer, tool_grammar(guidance, HERMES, tools), WRONG)
