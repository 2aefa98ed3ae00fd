"""litellm."""

from __future__ import annotations

from typing import Any

import litellm
from tasks import MODEL, TOKENS, URL, run

HI = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"dog": {"type": "boolean"}}, "required": ["dog"]}
TOOL = {"type": "function", "function": {"name": "pet", "parameters": SCHEMA}}
ROOT = URL.removesuffix("/v1")


def asked(**more: Any) -> Any:
    """A chat completion."""
    base = {"model": f"openai/{MODEL}", "messages": HI, "max_tokens": TOKENS, "num_retries": 0}
    return litellm.completion(api_key="none", **(base | {"api_base": URL} | more))


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
        "a tool": lambda: asked(tools=[TOOL]),
        "a call": lambda: (
            asked(tools=[TOOL], tool_choice="required", max_tokens=200)
            .choices[0]
            .message.tool_calls
        ),
        "a response": lambda: litellm.responses(
            model=f"openai/{MODEL}",
            input="Hi",
            max_output_tokens=TOKENS,
            api_base=URL,
            api_key="none",
        ),
        "as Anthropic's model": lambda: asked(model=f"anthropic/{MODEL}", api_base=ROOT),
        "as Anthropic's model, streamed": lambda: list(
            asked(model=f"anthropic/{MODEL}", api_base=ROOT, stream=True)
        )[-1],
    },
)
