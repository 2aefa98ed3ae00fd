"""What clients send along: passed over where it changes nothing, else refused by name."""

from __future__ import annotations

import json

import pytest

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.leniency import MOST_TOKENS
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import parse_chat, parse_completion

HI = [{"role": "user", "content": "Hi"}]


def chat(**fields: object):
    return parse_chat(json.dumps({"messages": HI} | fields).encode())


PLAIN = chat()


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "audio": [None],
        "best_of": [1],
        "cache_prompt": [True, False],
        "echo": [False],
        "function_call": [None, "none"],
        "functions": [[]],
        "id": ["req-1"],
        "logit_bias": [None, {}, []],
        "logprobs": [None, False],
        "max_completion_tokens": [None],
        "max_tokens": [None],
        "metadata": [{"a": "b"}, {}],
        "min_p": [None],
        "modalities": [["text"]],
        "model": [None, ""],
        "n": [1, 1.0, None],
        "parallel_tool_calls": [True, False, None],
        "prompt_cache_key": ["k"],
        "repeat_penalty": [1, 1.0],
        "response_format": [None],
        "seed": [None, -1],
        "service_tier": ["auto", "flex"],
        "stop": ["", [], [""], None],
        "store": [True, False, None],
        "stream_options": [None],
        "suffix": ["", None],
        "tool_choice": ["none", "auto", None],
        "tools": [[], None],
        "top_logprobs": [None, 0, 0.0],
        "user": ["me"],
    }.items(),
)
def test_a_parameter_without_effect_changes_nothing(name: str, values: list) -> None:
    for value in values:
        assert chat(**{name: value}) == PLAIN, value


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "audio": {"voice": "x"},
        "best_of": 2,
        "echo": True,
        "function_call": {"name": "f"},
        "functions": [{"name": "f"}],
        "grammar": "root ::= 'a'",
        "ignore_eos": True,
        "min_tokens": 5,
        "mirostat": 2,
        "modalities": ["text", "audio"],
        "n": 2,
        "repeat_penalty": 1.1,
        "skip_special_tokens": False,
        "stop_token_ids": [3],
        "suffix": "end",
        "verbosity": "low",
    }.items(),
)
def test_a_parameter_that_would_change_the_answer_is_refused_by_name(name: str, value) -> None:
    with pytest.raises(ApiProblem, match=name) as refused:
        chat(**{name: value})
    assert (refused.value.status, refused.value.param) == (400, name)


def test_true_is_not_one() -> None:
    for name in ("n", "best_of"):
        with pytest.raises(ApiProblem, match=name):
            chat(**{name: True})


def test_how_to_call_tools_says_nothing_without_tools() -> None:
    assert chat(tools=[], tool_choice="none", parallel_tool_calls=False) == PLAIN


def test_numbers_are_understood_as_clients_write_them() -> None:
    assert chat(max_tokens=100.0).most_tokens == 100
    assert chat(max_completion_tokens=7.0).most_tokens == 7
    assert chat(max_tokens=-1).most_tokens == MOST_TOKENS
    assert chat(max_tokens=-1.0).most_tokens == MOST_TOKENS
    assert chat(stop=["", "x"]).stops == ("x",)
    assert chat(stream_options={"include_usage": None, "continuous_usage_stats": False}) == chat(
        stream_options={}
    )
    request = parse_completion(b'{"prompt": "x", "logprobs": false, "max_tokens": 3.0}')
    assert (request.logprobs, request.most_tokens) == (None, 3)


def test_sampling_at_its_ends_is_what_clients_mean() -> None:
    default = SamplingOptions(temperature=1.0)
    assert chat(top_k=-1).sampling(default).top_k == 0
    assert chat(top_k=40.0).sampling(default).top_k == 40
    assert 0 < chat(top_p=0).sampling(default).top_p < 1e-6
    assert chat(seed=-1).sampling(default).seed is None
    assert chat(seed=-5).sampling(default).seed == 2**64 - 5
    assert chat(seed=7.0).sampling(default).seed == 7


ANSWER = {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "ada"},
        {"id": "m1", "created": 1, "timestamp": "now", "metadata": {}},
        {"reasoning_content": "", "tool_calls": None, "function_call": None},
        {"reasoning": "I think", "reasoning_details": [{}], "provider_specific_fields": {}},
        {"cache_control": {"type": "ephemeral"}},
        {"annotations": [{"type": "url_citation"}], "audio": None, "refusal": None},
        {"tool_calls": [], "images": [], "weight": 1},
        {"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
        {"content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
        {"content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
        {"content": ["Hello"]},
        {"content": {"type": "text", "text": "Hello"}},
        {"content": None, "refusal": "Hello"},
        {"content": [{"type": "refusal", "refusal": "Hello"}]},
    ],
)
def test_what_a_client_keeps_with_a_message_changes_nothing(fields: dict) -> None:
    plain = [*HI, ANSWER, *HI]
    assert chat(messages=[*HI, ANSWER | fields, *HI]).plain_messages == plain


def test_an_answer_without_content_is_empty() -> None:
    for message in ({"role": "assistant", "content": None}, {"role": "assistant"}):
        request = chat(messages=[*HI, message, *HI])
        assert request.plain_messages[1] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"tool_calls": [{"id": "1"}]}, r"messages\[1\].tool_calls\[0\]"),
        ({"function_call": {"name": "f"}}, r"messages\[1\] has function_call"),
        ({"audio": {"id": "1"}}, r"messages\[1\] has audio"),
        ({"images": ["aGk="]}, r"messages\[1\] has images"),
        ({"content": [{"type": "input_audio"}]}, r"messages\[1\] has a part of type input_audio"),
        ({"content": [{"type": "file", "file": {}}]}, "type file"),
        ({"role": "tool"}, r"messages\[1\] is the result of no call"),
    ],
)
def test_what_is_said_otherwise_than_in_text_is_refused_by_name(fields: dict, names: str) -> None:
    with pytest.raises(ApiProblem, match=names):
        chat(messages=[*HI, ANSWER | fields, *HI])


@pytest.mark.parametrize(
    ("fields", "continues"),
    [
        ({"messages": HI}, False),
        ({"messages": [*HI, ANSWER]}, True),
        ({"messages": [*HI, ANSWER], "continue_final_message": True}, True),
        ({"messages": [*HI, ANSWER], "add_generation_prompt": False}, True),
        ({"messages": [*HI, ANSWER], "continue_final_message": False}, False),
        ({"messages": [*HI, ANSWER | {"prefix": True}]}, True),
        ({"messages": [*HI, ANSWER | {"prefix": False}]}, False),
        ({"messages": HI, "continue_final_message": False}, False),
    ],
)
def test_an_assistants_last_message_is_continued(fields: dict, continues: bool) -> None:
    assert chat(**fields).continues is continues


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"messages": HI, "continue_final_message": True}, "the last one is the user's"),
        (
            {
                "messages": [*HI, ANSWER],
                "continue_final_message": True,
                "add_generation_prompt": True,
            },
            "can't both be true",
        ),
        (
            {"messages": [*HI, ANSWER], "response_format": {"type": "json_object"}},
            "response_format holds for a whole answer",
        ),
    ],
)
def test_a_continuation_that_contradicts_itself_is_refused(fields: dict, says: str) -> None:
    with pytest.raises(ApiProblem, match=says):
        chat(**fields).continues  # noqa: B018
