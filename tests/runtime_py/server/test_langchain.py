"""LangChain's unmodified chat model, pointed at the server."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_openai")

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI


def test_langchain_asks_streams_and_goes_on(server, monkeypatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    model = ChatOpenAI(
        model="tiny",
        base_url=f"{server.url}/v1",
        api_key="none",
        temperature=0,
        max_completion_tokens=8,
        max_retries=0,
    )
    messages = [SystemMessage("Be brief."), HumanMessage("What did the otter see?" * 30)]
    answer = model.invoke(messages)
    streamed = "".join(str(chunk.content) for chunk in model.stream(messages))
    assert streamed == answer.content != ""
    assert answer.usage_metadata["output_tokens"] <= 8
    again = model.invoke([*messages, answer, HumanMessage("And then?")])
    assert again.usage_metadata["input_token_details"]["cache_read"] > 600
    assert model.bind(stop=[answer.content[2]]).invoke(messages).content == answer.content[:2]
