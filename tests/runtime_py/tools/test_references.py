"""Schemas of tools that refer to their own parts, in every form of calls."""

from __future__ import annotations

import pytest
from strict_calls import FORM_OF, accepts_call
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer
from edgeinfinite.runtime_py.tools.arguments import arguments_of, kinds_of
from edgeinfinite.runtime_py.tools.grammar import tool_grammar
from edgeinfinite.runtime_py.tools.tool import Tool, Tools

pytest.importorskip("llguidance")

NUMBER = {"type": "integer", "minimum": 3, "maximum": 9}
ITSELF = {"type": "object", "properties": {"v": NUMBER, "in": {"$ref": "#"}}, "required": ["v"]}
SCHEMAS = {
    "definition": {
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/N"}},
        "required": ["v"],
        "$defs": {"N": NUMBER},
    },
    "whole": {"$ref": "#/$defs/All", "$defs": {"All": {**ITSELF, "properties": {"v": NUMBER}}}},
    "another argument": {
        "type": "object",
        "properties": {"v": {"$ref": "#/properties/w"}, "w": NUMBER},
        "required": ["v"],
    },
    "its own name": {
        "$id": "https://x.org/s",
        "type": "object",
        "properties": {"v": {"$ref": "https://x.org/s#/$defs/N"}},
        "required": ["v"],
        "$defs": {"N": NUMBER},
    },
    "within an argument": {
        "type": "object",
        "properties": {"v": {"$ref": "#/properties/w/$defs/N"}, "w": {"$defs": {"N": NUMBER}}},
        "required": ["v"],
    },
    "both": {
        "allOf": [{"$ref": "#/$defs/A"}],
        "$defs": {"A": {**ITSELF, "properties": {"v": NUMBER}}},
    },
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return load_tokenizer(tiny_checkpoint(tmp_path_factory.mktemp("tools") / "checkpoint"))


@pytest.fixture(scope="module")
def guidance(tokenizer: TextTokenizer) -> Guidance:
    return Guidance(tokenizer, VOCABULARY)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_strict_tool_is_held_to_what_it_refers_to(kind: str, tokenizer, guidance) -> None:
    for form, body in (
        ("lfm2", "[do({})]"),
        ("qwen-xml", "\n<function=do>\n{}</function>\n"),
        ("hermes", '\n{{"name": "do", "arguments": {{{}}}}}\n'),
        ("gemma", "call:do{{{}}}"),
    ):
        given = {"gemma": "v:{}", "lfm2": "v={}", "qwen-xml": "<parameter=v>\n{}\n</parameter>\n"}
        argument = given.get(form, '"v": {}')

        def taken(value: str, form: str = form, body: str = body, argument: str = argument) -> bool:
            said = argument.format(value) if value else ""
            return accepts_call(tokenizer, guidance, SCHEMAS[kind], form, body.format(said))

        assert taken("5"), form
        assert not taken("2") and not taken('"5"'), form
        assert not taken(""), form


def test_a_schema_that_refers_to_itself_means_the_tools(tokenizer, guidance) -> None:
    for inner, is_right in (('{"v": 5}', True), ("5", False), ('{"v": 5, "in": {"v": 2}}', False)):
        body = f"[do(v=5, in={inner})]"
        assert accepts_call(tokenizer, guidance, ITSELF, "lfm2", body) is is_right, inner
        plain = inner.replace('"', "").replace(" ", "")
        body = f"call:do{{v:5,in:{plain}}}"
        assert accepts_call(tokenizer, guidance, ITSELF, "gemma", body) is is_right, inner


@pytest.mark.parametrize("form", ["lfm2", "qwen-xml", "gemma", "hermes"])
@pytest.mark.parametrize("reference", ["#/$defs/None", "https://x.org/far.json"])
def test_a_reference_that_leads_nowhere_is_refused_by_its_place(
    form: str, reference: str, guidance
) -> None:
    schema = {"type": "object", "properties": {"v": {"$ref": reference}}, "required": ["v"]}
    tool = Tool("do", "", schema, strict=True)
    with pytest.raises(EdgeInfiniteError, match=r"the tool do: .*properties\.v"):
        tool_grammar(guidance, FORM_OF[form], Tools((tool,), "required"))


def test_values_are_read_by_the_kind_that_a_reference_says() -> None:
    schema = {
        "properties": {
            "n": {"$ref": "#/$defs/N"},
            "t": {"$ref": "#/$defs/T"},
            "maybe": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]},
            "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "any": {},
        },
        "$defs": {"N": {"type": "integer"}, "T": {"enum": ["5", "6"]}},
    }
    kinds = {name: kinds_of(one) for name, one in arguments_of(schema).items()}
    assert kinds == {
        "n": {"integer"},
        "t": {"string"},
        "maybe": {"integer", "null"},
        "text": {"string", "null"},
        "any": set(),
    }
    values = {"n": "5", "t": "5", "maybe": "5", "text": "null", "any": "5"}
    written = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in values.items())
    tools = {"do": Tool("do", "", schema)}
    body = FORM_OF["qwen-xml"].body
    ((_, found),) = body.calls(f"\n<function=do>\n{written}</function>\n", tools)
    assert found == {"n": 5, "t": "5", "maybe": 5, "text": None, "any": "5"}
