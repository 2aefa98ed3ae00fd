"""LangChain's models."""

from __future__ import annotations

import pydantic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI
from tasks import MODEL, TOKENS, URL, run

HI = [SystemMessage("Be brief."), HumanMessage("Hi", name="ada")]
long = ChatOpenAI(model=MODEL, base_url=URL, api_key="none", max_tokens=40, max_retries=0)
model = ChatOpenAI(model=MODEL, base_url=URL, api_key="none", max_tokens=TOKENS, max_retries=0)


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


def tool(word: str) -> str:
    """Echoes a word."""
    return word


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
        "bound tools": lambda: model.bind_tools([tool]).invoke(HI),
    },
)
