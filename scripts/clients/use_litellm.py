"""litellm."""

from __future__ import annotations

from typing import Any

import litellm
from tasks import MODEL, TOKENS, URL, run

HI = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"dog": {"type": "boolean"}}, "required": ["dog"]}


def asked(**more: Any) -> Any:
    """A chat completion."""
    base = {"model": f"openai/{MODEL}", "messages": HI, "max_tokens": TOKENS, "num_retries": 0}
    return litellm.completion(api_base=URL, api_key="none", **(base | more))


run(
    "litellm",
    {
        "completion": asked,
        "completion, streamed": lambda: list(asked(stream=True))[-1],
        "cache control in a part": lambda: asked(
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
                    ],
                }
            ]
        ),
        "a JSON schema": lambda: asked(
            max_tokens=40,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "pet", "schema": SCHEMA, "strict": True},
            },
        ),
        "text completion": lambda: litellm.text_completion(
            model=f"text-completion-openai/{MODEL}",
            prompt="Once",
            max_tokens=TOKENS,
            api_base=URL,
            api_key="none",
        ),
        "a tool": lambda: asked(tools=[{"type": "function", "function": {"name": "f"}}]),
    },
)
