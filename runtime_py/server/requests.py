"""OpenAI's requests: what is understood, and one clear line for everything else."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.leniency import MOST_TOKENS, known_fields
from edgeinfinite.runtime_py.server.messages import (
    continues_answer,
    normalised_messages,
    wants_prefix,
)
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.text.chat_template import Message

_Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""Of tokens; 0 reads the prompt, so that a later request needn't."""
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
_Bias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
_TokenId = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,9}$")]

_SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)

_MOST_STOPS = 16
_COMPLETION_TOKENS = 16
"""OpenAI's default of `max_tokens` in `/v1/completions`."""


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stream_options`. Nothing is ever obfuscated."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds of request have."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    return_progress: bool = False
    max_tokens: _Count | None = None
    temperature: _Temperature | None = None
    top_p: _Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    min_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    logit_bias: dict[_TokenId, _Bias] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None

    def sampling(self, default: SamplingOptions) -> SamplingOptions:
        """How to choose tokens; what the request leaves out is as in `default`.

        Whoever asks for temperature 0 wants the likeliest tokens, so no default changes them.
        """
        if self.temperature == 0:
            default = SamplingOptions()
        given = {name: value for name in _SAMPLING if (value := getattr(self, name)) is not None}
        if self.seed is not None:
            given["seed"] = self.seed % 2**64  # OpenAI's may be negative; -1 never comes here
        if self.logit_bias is not None:
            given["logit_bias"] = {int(token): bias for token, bias in self.logit_bias.items()}
        return dataclasses.replace(default, **given)

    @property
    def stops(self) -> tuple[str, ...]:
        """The strings that end the answer.

        Raises:
            ApiProblem: there are too many, or one is empty.
        """
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        if len(stops) > _MOST_STOPS or not all(stops):
            raise ApiProblem(
                400, f"stop: give at most {_MOST_STOPS} strings, none of them empty", param="stop"
            )
        return stops


def default_settings(sampling: SamplingOptions) -> dict[str, Any]:
    """What a chat takes that says nothing of it, by the request's own names."""
    chosen = {name: getattr(sampling, name) for name in _SAMPLING}
    return chosen | {"max_tokens": MOST_TOKENS}


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


class JsonSchema(msgspec.Struct, frozen=True):
    """`json_schema` of `response_format`; it always holds strictly."""

    schema: dict[str, Any]
    name: str = ""
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`response_format`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(Settings, frozen=True, kw_only=True):
    """`/v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    max_completion_tokens: _Count | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] = 0

    @property
    def plain_messages(self) -> list[Message]:
        """The messages as chat templates know them."""
        return [message.plain() for message in self.messages]

    @property
    def continues(self) -> bool:
        """Whether the answer goes on with the last message.

        Raises:
            ApiProblem: the request contradicts itself, or wants a form for half an answer.
        """
        continues = continues_answer(
            self.plain_messages, self.continue_final_message, self.add_generation_prompt
        )
        if continues and self.schema is not None:
            raise ApiProblem(
                400,
                "response_format holds for a whole answer, and the last message begins one; leave "
                "that message or response_format out",
                param="response_format",
            )
        return continues

    @property
    def listed_logprobs(self) -> int | None:
        """How many likely tokens to list for each token; None lists nothing."""
        return self.top_logprobs if self.logprobs else None

    @property
    def schema(self) -> str | None:
        """The JSON schema that the answer must follow.

        Raises:
            ApiProblem: it is missing.
        """
        wanted = self.response_format
        if wanted is None or wanted.type == "text":
            return None
        if wanted.type == "json_object":
            return '{"type": "object"}'
        if wanted.json_schema is None:
            raise ApiProblem(
                400, "response_format has no json_schema; give one", param="response_format"
            )
        return msgspec.json.encode(wanted.json_schema.schema).decode()

    @property
    def most_tokens(self) -> int:
        given = self.max_completion_tokens
        if given is None:
            given = self.max_tokens
        return MOST_TOKENS if given is None else given


class CompletionRequest(Settings, frozen=True, kw_only=True):
    """`/v1/completions`; one prompt."""

    prompt: str
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None

    @property
    def most_tokens(self) -> int:
        return _COMPLETION_TOKENS if self.max_tokens is None else self.max_tokens


_Request = TypeVar("_Request", bound=Settings)


def parse_chat(body: bytes) -> ChatRequest:
    """A request for a chat completion.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    fields = _fields(body, ChatRequest)
    messages = fields.get("messages")
    if isinstance(messages, list):
        fields.setdefault("continue_final_message", wants_prefix(messages))
        fields["messages"] = normalised_messages(messages)
    request = _convert(fields, ChatRequest)
    if request.top_logprobs and not request.logprobs:
        raise ApiProblem(
            400, "top_logprobs needs logprobs: true; give both or none", param="top_logprobs"
        )
    return request


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
    return known_fields(fields, kind.__struct_fields__)


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
