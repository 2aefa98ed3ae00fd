"""Gemma's notation is held to a schema at any depth, or the schema of a strict tool is refused."""

from __future__ import annotations

import pytest
from strict_calls import FORM_OF, accepts_call
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer
from edgeinfinite.runtime_py.tools.grammar import tool_grammar
from edgeinfinite.runtime_py.tools.reader import AnswerReader
from edgeinfinite.runtime_py.tools.tool import CallPiece, Tool, Tools

pytest.importorskip("llguidance")

PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "zip": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TRIP = {
    "type": "object",
    "properties": {
        "to": {"$ref": "#/$defs/Place"},
        "by": {"allOf": [{"$ref": "#/$defs/By"}], "default": "train"},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Place"}, "maxItems": 2},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
        "seats": {"type": ["integer", "string"]},
        "tags": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    "required": ["to"],
    "additionalProperties": False,
    "$defs": {"Place": PLACE, "By": {"type": "string", "enum": ["train", "ship"]}},
}


def e(text: str) -> str:
    return f"<escape>{text}<escape>"


ROME = f"to:{{city:{e('Rome')}}}"
STOP = f"{{city:{e('a')}}}"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return load_tokenizer(tiny_checkpoint(tmp_path_factory.mktemp("tools") / "checkpoint"))


@pytest.fixture(scope="module")
def guidance(tokenizer: TextTokenizer) -> Guidance:
    return Guidance(tokenizer, VOCABULARY)


@pytest.mark.parametrize(
    ("arguments", "is_right"),
    [
        (ROME, True),
        (f"to:{{city:{e('Rome')},zip:187}}", True),
        (f"to:{{city:{e('')}}}", False),
        (f"to:{{zip:187,city:{e('Rome')}}}", False),
        (f"to:{{city:{e('Rome')},zip:{e('x')}}}", False),
        ("to:{zip:187}", False),
        (f"to:{e('Rome')}", False),
        (f"{ROME},by:{e('ship')}", True),
        (f"{ROME},by:{e('horse')}", False),
        (f"{ROME},stops:[{{city:{e('a')}}},{{city:{e('b')},zip:1}}]", True),
        (f"{ROME},stops:[]", True),
        (f"{ROME},stops:[{{zip:1}}]", False),
        (f"{ROME},stops:[{STOP},{STOP},{STOP}]", False),
        (f"{ROME},note:null", True),
        (f"{ROME},note:{e('soon')}", True),
        (f"{ROME},note:{e('much later')}", False),
        (f"{ROME},note:1", False),
        (f"{ROME},seats:2", True),
        (f"{ROME},seats:{e('two')}", True),
        (f"{ROME},seats:2.5", False),
        (f"{ROME},tags:{{a:true,b:false}}", True),
        (f"{ROME},tags:{{a:1}}", False),
    ],
)
def test_values_within_values_are_held_to(arguments, is_right, tokenizer, guidance) -> None:
    body, form = f"call:do{{{arguments}}}", FORM_OF["gemma"]
    assert accepts_call(tokenizer, guidance, TRIP, "gemma", body) is is_right
    if is_right:
        reader = AnswerReader(form, (Tool("do", "", TRIP),))
        parts = reader.push(f"{form.begin}{body}{form.end}")
        assert any(isinstance(part, CallPiece) for part in parts)


@pytest.mark.parametrize("form", ["gemma", "qwen-xml"])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "string", "pattern": "^a+$"}, r"properties\.a\.pattern can't be held to"),
        ({"type": "string", "format": "date"}, r"properties\.a\.format can't be held to"),
    ],
)
def test_a_strict_text_of_more_than_a_length_is_refused(form, schema, says, guidance) -> None:
    parameters = {"type": "object", "properties": {"a": schema}}
    strict = Tools((Tool("do", "", parameters, strict=True),))
    with pytest.raises(EdgeInfiniteError, match=f"the tool do: {says}"):
        tool_grammar(guidance, FORM_OF[form], strict)
    tool_grammar(guidance, FORM_OF[form], Tools((Tool("do", "", parameters),)))


@pytest.mark.parametrize("form", ["gemma", "qwen-xml"])
def test_what_stands_beside_a_reference_is_not_dropped(form: str, guidance) -> None:
    beside = {"$ref": "#/$defs/S", "maxLength": 3}
    schema = {"type": "object", "properties": {"a": beside}, "$defs": {"S": {"type": "string"}}}
    with pytest.raises(EdgeInfiniteError, match=r"properties\.a\.\$ref can't be held to"):
        tool_grammar(guidance, FORM_OF[form], Tools((Tool("do", "", schema, strict=True),)))


def test_a_strict_object_of_open_names_is_refused_within_another(guidance) -> None:
    inner = {"type": "object", "patternProperties": {"^x": {"type": "integer"}}}
    parameters = {"type": "object", "properties": {"a": {"type": "array", "items": inner}}}
    with pytest.raises(EdgeInfiniteError, match=r"a\.items\.patternProperties can't be held to"):
        tool_grammar(guidance, FORM_OF["gemma"], Tools((Tool("do", "", parameters, strict=True),)))


def test_a_schema_nested_too_deeply_is_refused_or_loosened(guidance) -> None:
    for strict in (False, True):
        schema: dict = {"type": "string"}
        for _ in range(200):
            schema = {"type": "object", "properties": {"a": schema}}
        tools = Tools((Tool("do", "", schema, strict=strict),))
        try:
            tool_grammar(guidance, FORM_OF["gemma"], tools)
        except EdgeInfiniteError as error:
            assert "\n" not in str(error)
