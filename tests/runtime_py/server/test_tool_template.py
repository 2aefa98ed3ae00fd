"""A chat template with tools and `<think>`, on all three APIs; the test decides what is sampled."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
from manifest_edit import edit_manifest
from tiny_artifact import tiny_artifact
from tiny_server import Running, serving

from edgeinfinite.runtime_py.answer.sampling import Sampler

pytest.importorskip("llguidance")
anthropic = pytest.importorskip("anthropic")

TEMPLATE = """{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call as <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for call in m.tool_calls or [] %}<tool_call>
{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"""
THOUGHT = "<think>\nA dog, I think.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "pet", "arguments": {"dog": true}}\n</tool_call>'
SCHEMA = {
    "type": "object",
    "properties": {"dog": {"type": "boolean"}},
    "required": ["dog"],
    "additionalProperties": False,
}
FUNCTION = {"name": "pet", "description": "A pet.", "parameters": SCHEMA}
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny artifact with the template above."""
    folder = tiny_artifact(tmp_path_factory.mktemp("thinking") / "tiny", "--policy", "carry")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    written = TEMPLATE.encode()
    entry = {"size": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    edit_manifest(folder, lambda fields: fields["files"].update({"chat_template.jinja": entry}))
    return folder


@pytest.fixture
def server(thinking: Path) -> Iterator[Running]:
    with serving(thinking) as running:
        yield running


@contextlib.contextmanager
def writes(server: Running, text: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The model's next answer; every token of it must be one that the grammar allows."""
    tokenizer = server.service.answers.tokenizer
    tokens = [*tokenizer.encode_text(text), min(tokenizer.stop_ids)]

    def sample(_: Sampler, logits: np.ndarray, *, answer=(), allowed=None) -> int:
        token = tokens[len(answer)]
        assert allowed is None or allowed[token], tokenizer.decode(tokens[: len(answer) + 1])
        return token

    with patch.context() as patched:
        patched.setattr(Sampler, "sample", sample)
        yield


def test_the_template_tells_the_model_of_tools_and_results(server, monkeypatch):
    tools = [{"type": "function", "function": FUNCTION}]
    create = server.client().chat.completions.create
    with writes(server, THOUGHT + CALL, monkeypatch):
        said = create(model="tiny", messages=HI, tools=tools)
    message = said.choices[0].message
    assert said.choices[0].finish_reason == "tool_calls" and not message.content
    assert message.reasoning_content == "A dog, I think.\n"
    (call,) = message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("pet", {"dog": True})
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rex"}
    with writes(server, "Rex it is", monkeypatch):
        then = create(model="tiny", messages=[*HI, message.to_dict(), result], tools=tools)
    assert then.choices[0].message.content == "Rex it is"
    tokenizer = server.service.answers.tokenizer
    written = [
        *HI,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "pet", "arguments": {"dog": True}}}],
        },
        {"role": "tool", "content": "Rex"},
    ]
    asked = tokenizer.encode_chat(written, more={"tools": tools})
    assert then.usage.prompt_tokens == len(asked)


def test_a_chat_stream_tells_reasoning_and_arguments_apart(server, monkeypatch):
    tools = [{"type": "function", "function": FUNCTION}]
    with writes(server, THOUGHT + CALL, monkeypatch):
        chunks = list(
            server.client().chat.completions.create(
                model="tiny", messages=HI, tools=tools, tool_choice="required", stream=True
            )
        )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    pieces = [call.function.arguments for delta in deltas for call in delta.tool_calls or ()]
    assert thought == "A dog, I think.\n"
    assert json.loads("".join(pieces)) == {"dog": True} and len(pieces) > 5
    assert not any(delta.content for delta in deltas)


def test_a_response_has_items_for_reasoning_and_calls(server, monkeypatch):
    tools = [{"type": "function", **FUNCTION}]
    create = server.client().responses.create
    with writes(server, THOUGHT + CALL, monkeypatch):
        said = create(model="tiny", input="Hi", tools=tools)
    assert [item.type for item in said.output] == ["reasoning", "function_call"]
    assert said.output[0].content[0].text == "A dog, I think.\n"
    assert said.usage.output_tokens_details.reasoning_tokens > 10
    result = {
        "type": "function_call_output",
        "call_id": said.output[1].call_id,
        "output": "Rex",
    }
    with writes(server, "<think>\nRex.\n</think>\n\nRex", monkeypatch):
        then = create(model="tiny", input=[result], previous_response_id=said.id, tools=tools)
    assert [item.type for item in then.output] == ["reasoning", "message"]
    assert then.output_text == "Rex"
    assert then.usage.input_tokens_details.cached_tokens > said.usage.input_tokens


def test_a_message_has_blocks_for_reasoning_and_calls(server, monkeypatch):
    tools = [{"name": "pet", "description": "A pet.", "input_schema": SCHEMA}]
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
    asked = {"model": "tiny", "max_tokens": 200, "tools": tools}
    with writes(server, THOUGHT + CALL, monkeypatch):
        said = client.messages.create(messages=HI, **asked)
    assert [block.type for block in said.content] == ["thinking", "tool_use"]
    assert said.content[0].thinking == "A dog, I think.\n"
    assert said.content[1].input == {"dog": True}
    assert said.stop_reason == "tool_use"
    with (
        writes(server, THOUGHT + CALL, monkeypatch),
        client.messages.stream(messages=HI, **asked) as stream,
    ):
        kinds = {event.type for event in stream}
        final = stream.get_final_message()
    assert {"thinking", "input_json"} <= kinds
    assert [block.type for block in final.content] == ["thinking", "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": said.content[1].id, "content": "Rex"}]
    talk = [
        *HI,
        {"role": "assistant", "content": said.content},
        {"role": "user", "content": results},
    ]
    with writes(server, "Rex", monkeypatch):
        then = client.messages.create(messages=talk, **asked)
    assert then.content[0].text == "Rex"


def test_an_effort_switches_reasoning_where_the_template_has_a_switch(server, monkeypatch):
    create = server.client().chat.completions.create
    with writes(server, "Hello", monkeypatch):
        whole = create(model="tiny", messages=HI)
        off = create(model="tiny", messages=HI, reasoning_effort="none")
        kwargs = {"chat_template_kwargs": {"enable_thinking": False}}
        also = create(model="tiny", messages=HI, extra_body=kwargs)
    assert off.usage.prompt_tokens == also.usage.prompt_tokens > whole.usage.prompt_tokens
    assert off.choices[0].message.content == "Hello"


def test_a_schema_holds_where_an_answer_may_call_too(server, monkeypatch):
    """One with a pattern that is rewritten."""
    number = {"type": "string", "pattern": "^(?=.*1)[0-9]{2}$"}
    schema = SCHEMA | {"properties": {"n": number}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    tools = [{"type": "function", "function": FUNCTION}]
    for more in ({}, {"tools": tools}):
        with writes(server, '{"n": "21"}', monkeypatch):
            said = server.client().chat.completions.create(
                model="tiny", messages=HI, response_format=form, **more
            )
        assert json.loads(said.choices[0].message.content) == {"n": "21"}
    with writes(server, '{"n": "22"}', monkeypatch), pytest.raises(openai.InternalServerError):
        server.client().chat.completions.create(
            model="tiny", messages=HI, response_format=form, tools=tools
        )
