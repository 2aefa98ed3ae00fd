"""LangChain's models."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import pydantic
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAI
from tasks import MODEL, TOKENS, URL, run

HI = [SystemMessage("Be brief."), HumanMessage("Hi", name="ada")]
long = ChatOpenAI(model=MODEL, base_url=URL, api_key="none", max_tokens=200, max_retries=0)
model = ChatOpenAI(model=MODEL, base_url=URL, api_key="none", max_tokens=TOKENS, max_retries=0)


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


def name(dog: bool) -> str:
    """Names a pet."""
    return "Rex" if dog else "Tom"


def called(chat: Any) -> Any:
    """A call that the model has to make, and its result."""
    bound = chat.bind_tools([name], tool_choice="any", parallel_tool_calls=False)
    said = bound.invoke(HI)
    (call,) = said.tool_calls
    result = ToolMessage(name(**call["args"]), tool_call_id=call["id"])
    return chat.bind_tools([name]).invoke([*HI, said, result])


def streamed(chat: Any) -> Any:
    """The call of a stream, as LangChain adds up its pieces."""
    bound = chat.bind_tools([name], tool_choice="any", parallel_tool_calls=False)
    return reduce(operator.add, bound.stream(HI)).tool_calls[0]["args"]


responses = ChatOpenAI(
    model=MODEL,
    base_url=URL,
    api_key="none",
    max_tokens=200,
    max_retries=0,
    use_responses_api=True,
    use_previous_response_id=True,
)
claude = ChatAnthropic(
    model=MODEL,
    base_url=URL.removesuffix("/v1"),
    api_key="none",
    max_tokens=200,
    max_retries=0,
)


run(
    "langchain-openai",
    {
        "invoke": lambda: model.invoke(HI),
        "stream": lambda: list(model.stream(HI))[-1],
        "batch of three": lambda: model.batch([HI] * 3),
        "the answer sent back": lambda: model.invoke([*HI, model.invoke(HI), HumanMessage("On")]),
        "stop strings": lambda: model.bind(stop=["x"]).invoke(HI),
        "structured output": lambda: long.with_structured_output(Pet).invoke(HI),
        "text completion": lambda: OpenAI(
            model=MODEL, base_url=URL, api_key="none", max_tokens=TOKENS, max_retries=0
        ).invoke("Once"),
        "bound tools": lambda: model.bind_tools([name]).invoke(HI),
        "bound tools, a call and its result": lambda: called(long),
        "bound tools, streamed": lambda: streamed(long),
        "structured output by a call": lambda: long.with_structured_output(
            Pet, method="function_calling"
        ).invoke(HI),
        "responses": lambda: responses.invoke(HI),
        "responses, streamed": lambda: list(responses.stream(HI))[-1],
        "responses, the answer by its id": lambda: responses.invoke(
            [*HI, responses.invoke(HI), HumanMessage("On")]
        ),
        "responses, a call and its result": lambda: called(responses),
    },
)
run(
    "langchain-anthropic",
    {
        "invoke": lambda: claude.invoke(HI),
        "stream": lambda: list(claude.stream(HI))[-1],
        "the answer sent back": lambda: claude.invoke([*HI, claude.invoke(HI), HumanMessage("On")]),
        "bound tools, a call and its result": lambda: called(claude),
        "bound tools, streamed": lambda: streamed(claude),
        "structured output": lambda: claude.with_structured_output(Pet).invoke(HI),
    },
)
