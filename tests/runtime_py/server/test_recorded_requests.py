"""Requests in the shapes in which well-known clients send them: what is answered, what is refused.

The shapes were written down from what is known of the clients, not captured from them; a new client
is a new row in `clients.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeinfinite.runtime_py.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import ChatRequest, parse_chat, parse_completion

RECORDED = json.loads(Path(__file__).with_name("clients.json").read_text(encoding="utf-8"))


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
