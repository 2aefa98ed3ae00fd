"""LlamaIndex, for servers that speak as OpenAI's."""

from __future__ import annotations

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from tasks import MODEL, TOKENS, URL, run

HI = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Hi")]


def name(dog: bool) -> str:
    """Names a pet."""
    return "Rex" if dog else "Tom"


TOOLS = [FunctionTool.from_defaults(name)]


def made(**more: object) -> OpenAILike:
    """A model at the server."""
    return OpenAILike(
        model=MODEL, api_base=URL, api_key="none", max_tokens=TOKENS, max_retries=0, **more
    )


chats = made(is_chat_model=True)
caller = OpenAILike(
    model=MODEL,
    api_base=URL,
    api_key="none",
    max_tokens=200,
    max_retries=0,
    is_chat_model=True,
    is_function_calling_model=True,
)
run(
    "llama-index-llms-openai-like",
    {
        "chat": lambda: chats.chat(HI),
        "chat, streamed": lambda: list(chats.stream_chat(HI))[-1],
        "complete, by chat": lambda: chats.complete("Hi"),
        "chat with tools": lambda: caller.chat_with_tools(TOOLS, user_msg="A pet"),
        "chat with tools, a call": lambda: caller.get_tool_calls_from_response(
            caller.chat_with_tools(TOOLS, user_msg="A pet", tool_required=True)
        ),
        "predict and call": lambda: caller.predict_and_call(
            TOOLS, user_msg="A pet", tool_required=True
        ),
        "complete": lambda: made(is_chat_model=False).complete("Once"),
        "complete, streamed": lambda: list(made(is_chat_model=False).stream_complete("Once"))[-1],
    },
)
