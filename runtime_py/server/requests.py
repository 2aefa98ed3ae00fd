"""OpenAI's requests: what is understood, and one clear line for everything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.ask import sampling_of
from edgeinfinite.runtime_py.server.declared import Calls, tool_of, tools_of, with_calls
from edgeinfinite.runtime_py.server.decoding import converted, object_of
from edgeinfinite.runtime_py.server.leniency import MOST_COUNTED, MOST_TOKENS, known_fields
from edgeinfinite.runtime_py.server.messages import (
    continues_answer,
    normalised_messages,
    wants_prefix,
)
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.repetition import Detection
from edgeinfinite.runtime_py.text.chat_template import Message
from edgeinfinite.runtime_py.tools.tool import Choice, Tools

_Count = Annotated[int, msgspec.Meta(ge=0)]
"""Of tokens; 0 reads the prompt, so that a later request needn't."""
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
_Bias = Annotated[float, msgspec.Meta(ge=-100, le=100)]
_TokenId = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,9}$")]

_SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "repetition_detection"),
)

_ROLES = {"developer": "system"}

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
    repetition_detection: Detection | None = None
    logit_bias: dict[_TokenId, _Bias] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None

    def sampling(self, default: SamplingOptions) -> SamplingOptions:
        """How to choose tokens; what the request leaves out is as in `default`.

        See `sampling_of` for temperature 0.
        """
        given: dict[str, Any] = {name: getattr(self, name) for name in _SAMPLING}
        if self.seed is not None:
            given["seed"] = self.seed % 2**64  # OpenAI's may be negative; -1 never comes here
        if self.logit_bias is not None:
            given["logit_bias"] = {int(token): bias for token, bias in self.logit_bias.items()}
        return sampling_of(default, **given)

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


class CalledFunction(msgspec.Struct, frozen=True):
    """`function` of a call; its arguments are JSON of an object."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool in an assistant's message."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


class ChatMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message; its content is text, or a list of parts of text."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart]
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None

    def plain(self, calls: Calls, where: str) -> Message:
        """The message as chat templates know it.

        Args:
            calls: those of the messages before it; its own are added.
            where: it stands in the request.

        Raises:
            ApiProblem: 400; it is the result of no call, or a call's arguments are no object.
        """
        text = self.content
        if not isinstance(text, str):
            text = "".join(part.text for part in text)
        if self.role == "tool":
            return calls.answered(self.tool_call_id, text, where)
        made = [
            calls.made(call.id, call.function.name, call.function.arguments, f"{where}.tool_calls")
            for call in self.tool_calls
        ]
        return (
            with_calls(text, made)
            if made
            else {"role": _ROLES.get(self.role, self.role), "content": text}
        )


class ToolFunction(msgspec.Struct, frozen=True):
    """A function that may be called; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(msgspec.Struct, frozen=True):
    """One of `tools`."""

    function: ToolFunction
    type: Literal["function"] = "function"


class ChosenFunction(msgspec.Struct, frozen=True):
    """The function of a `tool_choice`."""

    name: str


class ChosenTool(msgspec.Struct, frozen=True):
    """A `tool_choice` of one tool."""

    type: Literal["function"]
    function: ChosenFunction


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
    tools: list[FunctionTool] = []
    tool_choice: Choice | ChosenTool = "auto"
    parallel_tool_calls: bool = True
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] = {}
    logprobs: bool = False
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] = 0

    @property
    def plain_messages(self) -> list[Message]:
        """The messages as chat templates know them."""
        calls = Calls()
        return [message.plain(calls, f"messages[{i}]") for i, message in enumerate(self.messages)]

    @property
    def declared(self) -> Tools:
        """The tools that the model is told of.

        Raises:
            ApiProblem: one isn't understood, or the chosen one isn't there.
        """
        tools = [
            tool_of(
                msgspec.structs.asdict(one.function), f"tools[{i}].function", schema="parameters"
            )
            for i, one in enumerate(self.tools)
        ]
        chosen, parallel = self.tool_choice, self.parallel_tool_calls
        if isinstance(chosen, ChosenTool):
            return tools_of(tools, "required", [chosen.function.name], parallel=parallel)
        return tools_of(tools, chosen, [], parallel=parallel)

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
        return MOST_TOKENS if given is None else min(given, MOST_COUNTED)


class CompletionRequest(Settings, frozen=True, kw_only=True):
    """`/v1/completions`; one prompt."""

    prompt: str
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None

    @property
    def most_tokens(self) -> int:
        given = self.max_tokens
        return _COMPLETION_TOKENS if given is None else min(given, MOST_COUNTED)


def parse_chat(body: bytes) -> ChatRequest:
    """A request for a chat completion.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    fields = known_fields(object_of(body), ChatRequest.__struct_fields__)
    messages = fields.get("messages")
    if isinstance(messages, list):
        fields.setdefault("continue_final_message", wants_prefix(messages))
        fields["messages"] = normalised_messages(messages)
    request = converted(fields, ChatRequest)
    _ = request.declared, request.plain_messages  # or they are refused
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
    fields = known_fields(object_of(body), CompletionRequest.__struct_fields__)
    prompt = fields.get("prompt")
    if isinstance(prompt, list):
        if len(prompt) != 1 or not isinstance(prompt[0], str):
            raise ApiProblem(400, "prompt is a list; give one text, no token ids", param="prompt")
        fields["prompt"] = prompt[0]
    return converted(fields, CompletionRequest)
