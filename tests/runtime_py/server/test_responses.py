"""`/v1/responses`, asked by OpenAI's own client."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import httpx
import openai
import pytest
from greedy import open_greedy
from tiny_server import serving

from edgeinfinite.runtime_py.server.openai_responses.stored import (
    ResponseStore,
    Stored,
    new_number,
    packed,
)

GREEDY = {"model": "tiny", "temperature": 0, "max_output_tokens": 12}
MANY = 10**9


def test_a_response_is_the_answer_of_the_chat_route(server):
    client = server.client()
    said = client.responses.create(input="Hi", instructions="Be brief.", **GREEDY)
    chat = client.chat.completions.create(
        model="tiny",
        temperature=0,
        max_tokens=12,
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    )
    assert said.output_text == chat.choices[0].message.content
    assert said.usage.input_tokens == chat.usage.prompt_tokens
    cut = chat.choices[0].finish_reason == "length"
    assert said.status == ("incomplete" if cut else "completed")
    assert (said.incomplete_details is not None) is cut
    assert said.instructions == "Be brief." and said.temperature == 0


def test_a_stream_grows_into_the_same_response(server):
    client = server.client()
    whole = client.responses.create(input="Hello", **GREEDY)
    with client.responses.stream(input="Hello", **GREEDY) as stream:
        events = list(stream)
        final = stream.get_final_response() if whole.status == "completed" else None
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    end = ["output_text.done", "content_part.done", "output_item.done", whole.status]
    assert kinds[-4:] == [f"response.{kind}" for kind in end]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text and len(deltas) > 3
    assert events[-1].response.output_text == whole.output_text
    assert final is None or final.output_text == whole.output_text


def test_an_id_goes_on_with_the_tokens_that_were_sampled(server, artifact):
    client = server.client()
    first = client.responses.create(input="Once upon a time", **GREEDY)
    second = client.responses.create(input="And then?", previous_response_id=first.id, **GREEDY)
    conversation = open_greedy(artifact, threads=1)
    before = "".join(conversation.ask("Once upon a time", max_new_tokens=12))
    after = "".join(conversation.ask("And then?", max_new_tokens=12))
    assert (first.output_text, second.output_text) == (before, after)
    assert second.usage.input_tokens_details.cached_tokens == conversation.session.tokens_read - (
        second.usage.output_tokens + len(conversation.tokenizer.encode_turn("And then?"))
    )
    assert second.previous_response_id == first.id


def test_two_continuations_of_one_id_know_nothing_of_each_other(server):
    client = server.client()
    first = client.responses.create(input="A story", **GREEDY)
    alone = {}
    for question in ("Who?", "Where?", "Who?"):
        said = client.responses.create(input=question, previous_response_id=first.id, **GREEDY)
        assert alone.setdefault(question, said.output_text) == said.output_text
        assert said.usage.input_tokens_details.cached_tokens > first.usage.input_tokens
    client.responses.delete(first.id)
    for question in alone:
        again = client.responses.create(input=question, **GREEDY)
        assert again.usage.input_tokens < first.usage.input_tokens + 20


def test_other_instructions_read_the_conversation_anew(server):
    client = server.client()
    first = client.responses.create(input="Hi", instructions="Be brief.", **GREEDY)
    same = client.responses.create(
        input="Go on", instructions="Be brief.", previous_response_id=first.id, **GREEDY
    )
    other = client.responses.create(
        input="Go on", instructions="Be loud.", previous_response_id=first.id, **GREEDY
    )
    none = client.responses.create(input="Go on", previous_response_id=first.id, **GREEDY)
    assert same.usage.input_tokens_details.cached_tokens >= first.usage.total_tokens - 1
    assert other.usage.input_tokens_details.cached_tokens == 0
    whole = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "Go on"},
    ]
    sent = client.responses.create(input=whole, **GREEDY)
    assert (none.output_text, none.usage.input_tokens) == (
        sent.output_text,
        sent.usage.input_tokens,
    )


def test_a_stored_response_is_told_listed_and_forgotten(server):
    client = server.client()
    said = client.responses.create(input="Hi", metadata={"a": "b"}, **GREEDY)
    assert client.responses.retrieve(said.id).to_dict() == said.to_dict()
    (item,) = client.responses.input_items.list(said.id)
    assert item.role == "user" and item.content[0].text == "Hi"
    client.responses.delete(said.id)
    with pytest.raises(openai.NotFoundError, match=f"'{said.id}' not found"):
        client.responses.retrieve(said.id)
    unstored = client.responses.create(input="Hi", store=False, **GREEDY)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(unstored.id)


@pytest.mark.parametrize("name", [f"resp_{'0' * 48}", "../../etc/passwd", "resp_", "x" * 10_000])
def test_an_id_that_was_never_made_is_refused_in_the_apis_words(server, name):
    with pytest.raises(openai.BadRequestError, match="not found") as caught:
        server.client().responses.create(input="Hi", previous_response_id=name, **GREEDY)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"
    assert len(str(caught.value)) < 600


def test_ids_outlive_the_server_but_not_their_key_model_or_age(
    serve, paper_artifact, artifact, tmp_path
):
    folder = {"cache_dir": tmp_path / "states"}
    with serve(api_key="one", **folder) as server:
        first = server.client("one").responses.create(input="Hi", **GREEDY)
    with serve(api_key="one", **folder) as server:
        client = server.client("one")
        said = client.responses.create(input="Go on", previous_response_id=first.id, **GREEDY)
        assert said.usage.input_tokens_details.cached_tokens >= first.usage.total_tokens - 1
    for options in ({"api_key": "two"}, {"api_key": "one", "responses_days": 0}):
        with serve(**options, **folder) as server:
            client = server.client(options["api_key"])
            with pytest.raises(openai.BadRequestError, match="not found"):
                client.responses.create(input="x", previous_response_id=first.id, **GREEDY)
    with serve(api_key="one", **folder) as server:
        again = server.client("one").responses.create(input="Hi", **GREEDY)
    (kept,) = (tmp_path / "states").rglob(f"{again.id}.response")
    assert kept.stat().st_mode & 0o077 == 0
    with serving(paper_artifact, api_key="one", **folder) as server:
        (theirs,) = {path.parent for path in (tmp_path / "states").rglob("responses")} - {
            kept.parent.parent
        }
        with pytest.raises(openai.NotFoundError):
            server.client("one").responses.retrieve(again.id)
    shutil.copy(kept, theirs / "responses" / kept.name)  # by hand: the file says whose it is
    with serving(paper_artifact, api_key="one", **folder) as server:
        client = server.client("one")
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(again.id)


def stored(number: str = "", text: str = "") -> Stored:
    name = f"resp_{number or new_number()}"
    return Stored(name, "model", {"id": name, "text": text}, [], {}, [], packed((1, 2, 3)))


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_thousand_ids_stay_within_the_budget(tmp_path: Path, on_disk: bool) -> None:
    folder = tmp_path if on_disk else None
    store = ResponseStore("model", None, 40_000, 30, folder)
    names = []
    for _ in range(1_000):
        names.append(stored(text="x" * 200).id)
        store.put(stored(names[-1].removeprefix("resp_"), "x" * 200))
        assert store.figures()["bytes"] <= 40_000
        assert store.get(names[0]) is not None  # used, so it isn't the least recently used
    kept = store.figures()["responses"]
    assert 50 < kept < 200
    if on_disk:
        assert len(list(tmp_path.iterdir())) == kept
        store = ResponseStore("model", None, 40_000, 30, folder)
    assert store.get(names[-1]) is not None and store.get(names[1]) is None
    store.put(stored(text="x" * 50_000))
    assert store.figures()["responses"] == kept


def test_a_response_expires_by_its_age_not_by_its_use(tmp_path: Path) -> None:
    now = [1_000_000.0]
    store = ResponseStore("model", None, MANY, 2, tmp_path, now=lambda: now[0])
    one = stored()
    store.put(one)
    for _ in range(3):
        now[0] += 86_400 * 0.6
        assert store.get(one.id) is not None
    now[0] += 86_400 * 0.6
    assert store.get(one.id) is None
    assert not list(tmp_path.iterdir())


def test_a_clock_that_is_set_expires_nothing_and_keeps_nothing_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResponseStore("model", None, MANY, 2, tmp_path)
    one = stored()
    store.put(one)
    os.utime(tmp_path / f"{one.id}.response", (2**33, 2**33))  # written while it was far ahead
    ahead = time.time() + 86_400 * 300
    monkeypatch.setattr(time, "time", lambda: ahead)
    assert store.get(one.id) is not None
    monkeypatch.undo()
    now = [time.time()]
    again = ResponseStore("model", None, MANY, 2, tmp_path, now=lambda: now[0])
    assert again.get(one.id) is not None
    now[0] += 86_400 * 2.1
    assert again.get(one.id) is None


def test_a_file_is_believed_only_under_its_own_name(tmp_path: Path) -> None:
    store = ResponseStore("model", "key", MANY, 2, tmp_path)
    one = stored()
    store.put(one)
    forged = tmp_path / f"resp_{'a' * 48}.response"
    shutil.copy(tmp_path / f"{one.id}.response", forged)
    (tmp_path / f"resp_{'b' * 48}.response").write_bytes(b"nonsense")
    (tmp_path / f"resp_{'c' * 48}.response").symlink_to(tmp_path / f"{one.id}.response")
    again = ResponseStore("model", "key", MANY, 2, tmp_path)
    kept = again.get(one.id)
    assert kept is not None and kept.read == [1, 2, 3]
    for letter in "abc":
        assert again.get(f"resp_{letter * 48}") is None
    assert ResponseStore("model", "other key", MANY, 2, tmp_path).get(one.id) is None
    assert ResponseStore("other model", "key", MANY, 2, tmp_path).get(one.id) is None


def test_a_full_disk_leaves_the_response_in_memory(tmp_path: Path) -> None:
    store = ResponseStore("model", None, MANY, 2, tmp_path / "there")
    (tmp_path / "there").rmdir()
    (tmp_path / "there").write_text("no folder")
    one = stored()
    store.put(one)
    assert store.write_errors == 1 and store.get(one.id) is not None


def test_an_answer_of_a_schema(server):
    pytest.importorskip("llguidance")
    form = {
        "type": "json_schema",
        "name": "n",
        "schema": {
            "type": "object",
            "properties": {"kind": {"enum": ["dog", "cat"]}},
            "required": ["kind"],
            "additionalProperties": False,
        },
    }
    asked = GREEDY | {"max_output_tokens": 60, "text": {"format": form}}
    said = server.client().responses.create(input="Hi", **asked)
    assert json.loads(said.output_text)["kind"] in ("dog", "cat")
    assert said.status == "completed" and said.text.format.type == "json_schema"


def test_log_probabilities_are_listed(server):
    listed = {"include": ["message.output_text.logprobs"], "top_logprobs": 3}
    said = server.client().responses.create(input="Hi", **GREEDY, **listed)
    logprobs = said.output[0].content[0].logprobs
    assert len(logprobs) == said.usage.output_tokens
    assert all(len(one.top_logprobs) == 3 for one in logprobs)


def test_tokens_are_counted_without_an_answer(server):
    client = server.client()
    said = client.responses.create(input="Hi there", **GREEDY)
    counted = client.responses.input_tokens.count(input="Hi there")
    assert counted.input_tokens == said.usage.input_tokens


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"input": [{"type": "computer_call_output"}]}, r"input\[0\] is of type computer_call"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            r"input\[0\]\.content\[0\] is of type input_image",
        ),
        ({"input": [{"role": "tool", "content": "x"}]}, r"input\[0\]\.role is 'tool'"),
        ({"input": [{"role": ["user"], "content": "x"}]}, r"input\[0\]\.role"),
        ({"input": [{"role": "user", "content": [{"type": ["x"]}]}]}, r"content\[0\] is of type"),
        ({"input": ""}, "input is missing"),
        ({"input": []}, "input is missing"),
        ({"input": "x", "background": True}, "not supported here: background"),
        ({"input": "x", "conversation": "c"}, "not supported here: conversation"),
        ({"input": "x", "stop": "a"}, "not supported here: stop"),
        ({"input": "x", "text": {"format": {"type": "json_schema"}}}, "text.format has no schema"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(server, fields, says):
    said = httpx.post(f"{server.url}/v1/responses", json=fields, timeout=20)
    assert said.status_code == 400
    error = said.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert re.search(says, error["message"])


def test_what_changes_nothing_is_passed_over(server):
    said = server.client().responses.create(
        input=[{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        truncation="auto",
        user="ada",
        prompt_cache_key="k",
        service_tier="auto",
        include=["reasoning.encrypted_content"],
        extra_body={"tools": [], "tool_choice": "auto", "parallel_tool_calls": False},
        **GREEDY,
    )
    plain = server.client().responses.create(input="Hi", **GREEDY)
    assert said.output_text == plain.output_text


def test_an_assistants_last_item_is_continued(server, artifact):
    items = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "The dog saw"}]
    said = server.client().responses.create(input=items, **GREEDY)
    conversation = open_greedy(artifact, threads=1)
    tokens = conversation.tokenizer.encode_chat(items[:1])
    tokens += conversation.tokenizer.encode_more("The dog saw")
    assert said.output_text == "".join(conversation.answer(tokens, max_new_tokens=12))
    then = server.client().responses.create(input="x", previous_response_id=said.id, **GREEDY)
    assert then.usage.input_tokens_details.cached_tokens >= said.usage.total_tokens - 1


def test_a_client_that_leaves_stores_nothing(server):
    body = GREEDY | {"input": "Hi", "stream": True, "max_output_tokens": 2_000}
    with httpx.stream("POST", f"{server.url}/v1/responses", json=body, timeout=20) as reply:
        next(reply.iter_lines())
    server.until(lambda: server.service.jobs.running == 0)
    assert server.service.responses.figures()["responses"] == 0


def test_embeddings_are_refused_in_one_line_that_says_why(server):
    with pytest.raises(openai.NotFoundError, match="/v1/embeddings isn't supported: this is a mod"):
        server.client().embeddings.create(model="tiny", input="x")
