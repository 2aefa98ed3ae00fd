"""Pydantic AI's agents."""

from __future__ import annotations

import pydantic
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from tasks import MODEL, URL, run

model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="none"))
responses = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="none"))
claude = AnthropicModel(
    MODEL, provider=AnthropicProvider(base_url=URL.removesuffix("/v1"), api_key="none")
)


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


def name(dog: bool) -> str:
    """Names a pet."""
    return "Rex" if dog else "Tom"


run(
    "pydantic-ai-slim",
    {
        "a text": lambda: Agent(model, model_settings={"max_tokens": 8}).run_sync("Hi").output,
        "a text with instructions": lambda: (
            Agent(model, instructions="Be brief.", model_settings={"max_tokens": 8, "seed": 1})
            .run_sync("Hi")
            .output
        ),
        "an object, by its schema": lambda: (
            Agent(model, output_type=NativeOutput(Pet), model_settings={"max_tokens": 40})
            .run_sync("A pet")
            .output
        ),
        "an object, by a tool": lambda: Agent(model, output_type=Pet).run_sync("A pet").output,
        "a tool is offered": lambda: (
            Agent(model, tools=[name], model_settings={"max_tokens": 8}).run_sync("Hi").output
        ),
        "a response": lambda: (
            Agent(responses, model_settings={"max_tokens": 16}).run_sync("Hi").output
        ),
        "a response, an object by a tool": lambda: (
            Agent(responses, output_type=Pet).run_sync("A pet").output
        ),
        "a message": lambda: Agent(claude, model_settings={"max_tokens": 8}).run_sync("Hi").output,
        "a message, an object by a tool": lambda: (
            Agent(claude, output_type=Pet).run_sync("A pet").output
        ),
    },
)
