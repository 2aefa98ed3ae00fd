"""instructor, which makes objects of answers."""

from __future__ import annotations

from typing import Any

import instructor
import openai
import pydantic
from tasks import MODEL, URL, run


class Pet(pydantic.BaseModel):
    """A form for an answer."""

    dog: bool


def made(mode: Any) -> Any:
    """An answer in one of instructor's modes."""
    client = openai.OpenAI(base_url=URL, api_key="none", max_retries=0)
    return instructor.from_openai(client, mode=mode).chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "A pet"}],
        response_model=Pet,
        max_tokens=200,
        max_retries=0,
    )


run(
    "instructor",
    {
        "mode JSON_SCHEMA": lambda: made(instructor.Mode.JSON_SCHEMA),
        "mode JSON": lambda: made(instructor.Mode.JSON),
        "mode TOOLS, its default": lambda: made(instructor.Mode.TOOLS),
        "mode TOOLS_STRICT": lambda: made(instructor.Mode.TOOLS_STRICT),
        "mode RESPONSES_TOOLS": lambda: instructor.from_openai(
            openai.OpenAI(base_url=URL, api_key="none", max_retries=0),
            mode=instructor.Mode.RESPONSES_TOOLS,
        ).responses.create(
            model=MODEL,
            input="A pet",
            response_model=Pet,
            max_output_tokens=200,
            max_retries=0,
        ),
    },
)
