"""What clients send along: passed over where it changes nothing, else refused by name."""

from __future__ import annotations

import json

import pytest

from edgeinfinite.runtime_py.answer.repetition import NO_DETECTION, RepetitionDetection
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.anthropic_messages.request import parse_message
from edgeinfinite.runtime_py.server.leniency import MOST_TOKENS
from edgeinfinite.runtime_py.server.openai_responses.request import parse_response
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


@pytest.mark.parametrize(
    "given",
    [
        {"dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2},
        {"mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1},
        {"xtc_probability": 0, "xtc_threshold": 0.1},
        {"dynatemp_range": 0, "dynatemp_exponent": 1},
        {"features": {"web_search": False, "image_generation": False}},
        {"timings_per_token": True, "id_slot": 0, "speculative.n_max": 16},
        {"provider": {"order": ["x"]}, "usage": {"include": True}},
        {"stream_options": {"chunk_include_usage": False}},
        {"reasoning_format": "auto"},
    ],
)
def test_what_says_nothing_while_its_switch_is_off_is_passed_over(given: dict) -> None:
    assert chat(**given) == PLAIN


@pytest.mark.parametrize(
    "given",
    [
        {"mirostat": 2, "mirostat_tau": 5},
        {"dry_multiplier": 0.8, "dry_base": 1.75},
        {"features": {"web_search": True}},
        {"stream_options": {"unknown": 1}},
        {"reasoning_format": "none"},
        {"raw": True},
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(given: dict) -> None:
    with pytest.raises(ApiProblem, match=next(iter(given)).split(".")[0]):
        chat(**given)


def test_a_limit_that_means_none_is_none() -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        assert chat(**{name: 2**31 - 1}).most_tokens == 10_000_000
    assert parse_response(b'{"input": "x", "max_output_tokens": 9007199254740991}').most_tokens == (
        10_000_000
    )
    messages = json.dumps({"messages": HI, "max_tokens": 2**31 - 1}).encode()
    assert parse_message(messages).max_tokens == 10_000_000


def test_every_api_reads_numbers_as_clients_write_them() -> None:
    assert parse_response(b'{"input": "x", "max_output_tokens": 100.0}').most_tokens == 100
    assert parse_response(b'{"input": "x", "max_output_tokens": -1}').most_tokens == MOST_TOKENS
    given = {"messages": HI, "max_tokens": 5.0, "top_k": 40.0}
    asked = parse_message(json.dumps(given).encode())
    assert (asked.max_tokens, asked.top_k) == (5, 40)


@pytest.mark.parametrize(
    ("name", "nothing", "something"),
    [
        ("frequency_penalty", 0, 0.5),
        ("n", 1, 2),
        ("seed", -1, 7),
        ("stop", [], ["x"]),
        ("presence_penalty", 0.0, 1),
    ],
)
def test_what_only_chat_completions_have_is_passed_over_where_it_says_nothing(
    name: str, nothing: object, something: object
) -> None:
    for parse, base in (
        (parse_response, {"input": "x"}),
        (parse_message, {"messages": HI, "max_tokens": 5}),
    ):
        assert parse(json.dumps(base | {name: nothing}).encode()) == parse(
            json.dumps(base).encode()
        )
        with pytest.raises(ApiProblem, match=name):
            parse(json.dumps(base | {name: something}).encode())


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_a_schema_beside_the_kind_of_form_is_held_to(kind: str) -> None:
    form = {"type": kind, "schema": {"type": "object", "required": ["a"]}}
    assert chat(response_format=form).schema == '{"type":"object","required":["a"]}'


def test_tools_and_calls_of_looser_clients() -> None:
    tools = [{"function": {"name": "f"}}]
    assert chat(tools=tools, tool_choice="any").declared.choice == "required"
    made = {"id": "c1", "type": None, "function": {"name": "f", "arguments": None}}
    messages = [
        *HI,
        {"role": "assistant", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": None},
    ]
    called, result = chat(messages=messages).plain_messages[1:]
    assert called["tool_calls"][0]["function"] == {"name": "f", "arguments": {}}
    assert result["content"] == ""


def test_reasoning_among_an_answers_parts_is_passed_over_as_its_field_is() -> None:
    for kind in ("thinking", "reasoning", "redacted_thinking"):
        parts = [{"type": kind, kind: "hm"}, {"type": "text", "text": "a"}]
        messages = [*HI, {"role": "assistant", "content": parts}, *HI]
        assert chat(messages=messages).plain_messages[1]["content"] == "a"
        with pytest.raises(ApiProblem, match=kind):
            chat(messages=[{"role": "user", "content": parts}])


@pytest.mark.parametrize(
    ("parse", "least"),
    [
        (parse_chat, {"messages": HI}),
        (parse_completion, {"prompt": "x"}),
        (parse_response, {"input": "x"}),
        (parse_message, {"messages": HI, "max_tokens": 5}),
    ],
)
def test_every_api_can_say_whether_an_answer_that_repeats_itself_ends(parse, least):
    default = SamplingOptions(temperature=0.3, repetition_detection=RepetitionDetection())

    def detection(**fields):
        return parse(json.dumps(least | fields).encode()).sampling(default).repetition_detection

    assert detection() == detection(temperature=0) == RepetitionDetection()
    assert detection(repetition_detection={}) == NO_DETECTION
    asked = {"max_pattern_size": 9, "min_pattern_size": 2, "min_count": 5}
    assert detection(repetition_detection=asked) == RepetitionDetection(9, 2, 5)
    with pytest.raises(ApiProblem, match="min_count"):
        detection(repetition_detection={"max_pattern_size": 9})
