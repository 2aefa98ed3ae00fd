"""OpenAI's agents, which use the Responses API unless told otherwise."""

from __future__ import annotations

from typing import Any

import openai
import pydantic
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from tasks import MODEL, URL, run

set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=URL, api_key="none", max_retries=0)


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


@function_tool
def name(dog: bool) -> str:
    """Names a pet."""
    return "Rex" if dog else "Tom"


def said(kind: Any, *, forced: bool = False, **more: Any) -> Any:
    """What an agent says in the end; a tool that it must call is called once."""
    settings = ModelSettings(max_tokens=60)
    if forced:
        settings = ModelSettings(max_tokens=200, tool_choice="required", parallel_tool_calls=False)
    model = kind(model=MODEL, openai_client=client)
    agent = Agent("pet", instructions="Be brief.", model=model, model_settings=settings, **more)
    return Runner.run_sync(agent, "A pet").final_output


run(
    "openai-agents",
    {
        "a text": lambda: said(OpenAIResponsesModel),
        "a tool that must be called": lambda: said(OpenAIResponsesModel, forced=True, tools=[name]),
        "an object": lambda: said(OpenAIResponsesModel, output_type=Pet),
        "a text, by chat": lambda: said(OpenAIChatCompletionsModel),
        "a tool that must be called, by chat": lambda: said(
            OpenAIChatCompletionsModel, forced=True, tools=[name]
        ),
    },
)
