"""Requests as well-known clients send them: what is answered, what is refused.

benchmarks/trust/clients.json was recorded from the clients themselves (scripts/record_clients.py).
The shapes in `clients.json` were written down, from what is known of the clients or, where the row
says so, from their source; a new client that can't be run here is a new row there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.anthropic_messages.request import parse_message
from edgeinfinite.runtime_py.server.anthropic_messages.routes import talk_of
from edgeinfinite.runtime_py.server.openai_responses.request import parse_response
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import ChatRequest, parse_chat, parse_completion

RECORDED = json.loads(Path(__file__).with_name("clients.json").read_text(encoding="utf-8"))

ROWS = Path(__file__).parents[3] / "benchmarks" / "trust" / "clients.json"

PARSED: dict[str, Callable[[bytes], object]] = {
    "chat/completions": lambda body: parse_chat(body).declared,
    "completions": parse_completion,
    "responses": lambda body: parse_response(body).declared,
    "messages": lambda body: talk_of(parse_message(body)),
}


def route_of(asked: dict) -> str:
    return re.sub(r"^POST /v1/|\?.*", "", asked["route"])


def test_what_clients_sent_is_answered_or_refused_as_it_was_then() -> None:
    posted = [
        asked
        for row in json.loads(ROWS.read_text(encoding="utf-8"))
        for asked in row["requests"]
        if route_of(asked) in PARSED
    ]
    assert len(posted) > 120 and {route_of(asked) for asked in posted} == set(PARSED)
    for asked in posted:
        parse, body = PARSED[route_of(asked)], json.dumps(asked["body"]).encode()
        if asked["status"] == 200:
            parse(body)
        else:
            with pytest.raises(ApiProblem, match=re.escape(asked["refused"])):
                parse(body)


@pytest.mark.parametrize("recorded", RECORDED, ids=[one["client"] for one in RECORDED])
def test_a_clients_request_is_answered_or_refused_by_name(recorded: dict) -> None:
    parse = parse_completion if recorded.get("route") == "completions" else parse_chat
    body = json.dumps(recorded["body"]).encode()
    if "refused" in recorded:
        with pytest.raises(ApiProblem) as refused:
            parse(body)
        assert (refused.value.status, refused.value.param) == (400, recorded["refused"])
        return
    request = parse(body)
    request.sampling(SamplingOptions(temperature=0.7))
    assert request.most_tokens > 0 and len(request.stops) < 17
    if isinstance(request, ChatRequest):
        last = recorded["body"]["messages"][-1]
        assert request.continues is (last["role"] == "assistant")
        assert request.schema is None or json.loads(request.schema)
