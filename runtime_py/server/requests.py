"""OpenAI's requests: what is understood, and one clear line for everything else."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.chat_template import Message
from edgeinfinite.runtime_py.generation import MAX_NEW_TOKENS
from edgeinfinite.runtime_py.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.problems import ApiProblem

_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]

SAMPLING = SamplingOptions(temperature=0.7, top_p=0.9)
"""What a request doesn't say."""

_COMPLETION_TOKENS = 16
"""OpenAI's default of `max_tokens` in `/v1/completions`."""

# Parameters that change nothing here at these values, and those that never change the answer.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True, False),
    "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "stop": ([],),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none",),
    "tools": ([],),
}
_IGNORED = {"metadata", "prompt_cache_key", "safety_identifier", "user"}
# What a client sends along when it sends an answer of ours back.
_EMPTY_IN_MESSAGES = {"annotations", "audio", "function_call", "reasoning", "refusal", "tool_calls"}


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stream_options`. Nothing is ever obfuscated."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds of request have."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: _Count | None = None
    temperature: _Temperature | None = None
    top_p: _Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seed: int | None = None

    def sampling(self) -> SamplingOptions:
        """How to choose tokens.

        Raises:
            ApiProblem: a number is out of range.
        """
        given = {
            name: value
            for name in ("temperature", "top_p", "top_k")
            if (value := getattr(self, name)) is not None
        }
        if self.seed is not None:
            given["seed"] = self.seed % 2**64  # OpenAI's may be negative
        try:
            return dataclasses.replace(SAMPLING, **given)
        except EdgeInfiniteError as error:
            raise ApiProblem(400, str(error)) from error


class TextPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`{"type": "text", "text": ...}`."""

    type: Literal["text"]
    text: str


class ChatMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message; its content is text, or a list of parts of text."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    def plain(self) -> Message:
        """The message as chat templates know it."""
        text = self.content
        if not isinstance(text, str):
            text = "".join(part.text for part in text)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class ChatRequest(Settings, frozen=True, kw_only=True):
    """`/v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    max_completion_tokens: _Count | None = None

    @property
    def most_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or MAX_NEW_TOKENS


class CompletionRequest(Settings, frozen=True, kw_only=True):
    """`/v1/completions`; one prompt."""

    prompt: str

    @property
    def most_tokens(self) -> int:
        return self.max_tokens or _COMPLETION_TOKENS


_Request = TypeVar("_Request", bound=Settings)


def parse_chat(body: bytes) -> ChatRequest:
    """A request for a chat completion.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    fields = _fields(body, ChatRequest)
    messages = fields.get("messages")
    if isinstance(messages, list):
        fields["messages"] = [_message(i, message) for i, message in enumerate(messages)]
    return _convert(fields, ChatRequest)


def parse_completion(body: bytes) -> CompletionRequest:
    """A request for a completion.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    fields = _fields(body, CompletionRequest)
    prompt = fields.get("prompt")
    if isinstance(prompt, list):
        if len(prompt) != 1 or not isinstance(prompt[0], str):
            raise ApiProblem(400, "prompt is a list; give one text, no token ids", param="prompt")
        fields["prompt"] = prompt[0]
    return _convert(fields, CompletionRequest)


def _fields(body: bytes, kind: type[Settings]) -> dict[str, Any]:
    """The request's fields without those that say nothing."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiProblem(400, f"the body isn't JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ApiProblem(400, f"the body is a JSON {_name(fields)}; give an object")
    given = {name: value for name, value in fields.items() if value is not None}
    unknown = sorted(
        name
        for name in set(given) - set(kind.__struct_fields__) - _IGNORED
        if not any(given[name] == neutral for neutral in _NEUTRAL.get(name, ()))
    )
    if unknown:
        named = ", ".join(name[:40] for name in unknown[:20])
        raise ApiProblem(
            400,
            f"not supported here: {named}; leave it out",
            param=unknown[0],
            code="unsupported_parameter",
        )
    return {name: given[name] for name in kind.__struct_fields__ if name in given}


def _message(index: int, message: Any) -> Any:
    """A message without empty fields; images and sounds are refused by name."""
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ApiProblem(
                400,
                f"messages[{index}] has a part of type {kind[:40]}; this model reads text only",
                param=f"messages[{index}].content",
            )
    return {
        name: value
        for name, value in message.items()
        if not (name in _EMPTY_IN_MESSAGES and value in (None, [], ""))
    }


def _convert(fields: dict[str, Any], kind: type[_Request]) -> _Request:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        param = re.sub(r"^`\$\.?|`$", "", path) or None
        where = f"{param}: " if param else ""
        raise ApiProblem(400, f"{where}{message}", param=param) from error


def _name(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
