"""Answers of a given form, of a random model: only the grammar can make them right."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "kind": {"enum": ["dog", "cat"]},
        "legs": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["name", "kind", "legs"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("guidance") / "artifact")


@pytest.fixture
def conversation(artifact: Path) -> Conversation:
    return Conversation.open(artifact)


def hot(seed: int) -> Sampler:
    return Sampler(SamplingOptions(temperature=2.0, seed=seed))


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_is_json_of_the_schema(conversation: Conversation, seed: int) -> None:
    grammar = conversation.guidance.json_schema(SCHEMA)
    answer = "".join(conversation.ask("A pet?", sampler=hot(seed), grammar=grammar))
    pet = json.loads(answer)
    assert list(pet) == ["name", "kind", "legs"]
    assert len(pet["name"]) <= 8 and pet["kind"] in ("dog", "cat") and 0 <= pet["legs"] <= 9
    assert answer == json.dumps(pet, ensure_ascii=False), "white space as json.dumps writes it"


@pytest.mark.parametrize("pattern", [r"(yes|no)", r"[0-9]{4}-[0-9]{2}", r"[äöü]{3,9}!?"])
@pytest.mark.parametrize("options", [{}, {"temperature": 2.0, "top_k": 2, "seed": 1}])
def test_an_answer_matches_the_pattern_from_start_to_end(
    conversation: Conversation, pattern: str, options: dict[str, Any]
) -> None:
    grammar = conversation.guidance.regex(pattern)
    sampler = Sampler(SamplingOptions(**options))
    assert re.fullmatch(
        pattern, "".join(conversation.ask("Well?", sampler=sampler, grammar=grammar))
    )


def test_an_answer_follows_a_lark_grammar(conversation: Conversation) -> None:
    grammar = conversation.guidance.lark('start: "(" (start | "x") ")"')
    answer = "".join(conversation.ask("Well?", sampler=hot(0), grammar=grammar, max_new_tokens=200))
    depth = answer.count("(")
    assert answer == "(" * depth + "x" + ")" * depth


def test_an_answer_ends_when_nothing_may_follow_and_the_session_has_read_it(
    conversation: Conversation,
) -> None:
    list(conversation.ask("Well?", grammar=conversation.guidance.regex("abc")))
    figures = conversation.statistics()
    assert figures is not None
    assert (figures.text, figures.new_tokens) == ("abc", 3)
    assert conversation.session.tokens_read == figures.prompt_tokens + 3


def test_an_optional_end_leaves_the_choice_to_the_model(conversation: Conversation) -> None:
    grammar = conversation.guidance.regex("a*")
    allowed = np.flatnonzero(grammar.allowed()).tolist()
    end = set(conversation.tokenizer.stop_ids)
    (letter,) = conversation.tokenizer.encode_text("a")
    assert set(allowed) == {letter} | end
    never = Sampler(SamplingOptions(logit_bias=dict.fromkeys(end, -100.0)))
    answer = "".join(conversation.ask("A?", sampler=never, grammar=grammar, max_new_tokens=7))
    assert answer == "a" * 7


@pytest.mark.parametrize(
    ("form", "value", "message"),
    [
        (
            "json_schema",
            {"type": "nonsense"},
            "used: type 'nonsense' is no type",
        ),
        ("json_schema", '{"type": ', "JSON schema isn't JSON: Expecting value"),
        ("json_schema", "[1, 2]", r"JSON schema is \[1, 2\]; give an object"),
        ("json_schema", "[" * 10_000, "JSON schema isn't JSON"),
        ("regex", "(a", r"regular expression '\(a' can't be used: unclosed group"),
        ("regex", "(?=a)b", "look-around"),
        ("lark", "start: a", "Lark grammar can't be used: .* unknown name"),
    ],
)
def test_what_is_wrong_with_a_grammar_is_said_in_one_line(
    conversation: Conversation, form: str, value: Any, message: str
) -> None:
    with pytest.raises(EdgeInfiniteError, match=message) as caught:
        getattr(conversation.guidance, form)(value)
    assert "\n" not in str(caught.value)


def test_a_token_that_the_grammar_forbids_is_refused(conversation: Conversation) -> None:
    grammar = conversation.guidance.regex("abc")
    with pytest.raises(EdgeInfiniteError, match="the grammar can't be followed"):
        grammar.accept(conversation.tokenizer.encode_text("z")[0])


@pytest.mark.parametrize("vocabulary", [VOCABULARY - 2, VOCABULARY + 46])
def test_a_model_may_have_fewer_or_more_tokens_than_the_tokenizer(
    conversation: Conversation, vocabulary: int
) -> None:
    allowed = Guidance(conversation.tokenizer, vocabulary).regex("[a-c]").allowed()
    assert allowed.shape == (vocabulary,)
    assert np.flatnonzero(allowed).tolist() == sorted(conversation.tokenizer.encode_text("abc"))


def test_a_model_without_an_end_token_is_told_so(conversation: Conversation) -> None:
    conversation.tokenizer.stop_ids = frozenset()
    with pytest.raises(EdgeInfiniteError, match="no token that ends an answer"):
        _ = conversation.guidance


def test_the_missing_package_is_named(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(EdgeInfiniteError, match=r"pip install .*\[guidance\]"):
        _ = conversation.guidance
