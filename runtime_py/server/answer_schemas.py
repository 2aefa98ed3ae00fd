"""The shapes of answers, for `/openapi.json`; `replies` and `routes` write them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgeinfinite.runtime_py.server.request_schemas import REF

_Ends = Literal["stop", "length", "tool_calls"]
_Repetition = Literal["repetition_detected"] | msgspec.UnsetType


class Error(msgspec.Struct):
    """What is wrong, in one line."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None
    code: str | None


class ErrorAnswer(msgspec.Struct):
    """Every answer that isn't a 200."""

    error: Error


class MessageError(msgspec.Struct):
    """What is wrong, in Anthropic's words."""

    type: str
    message: str


class MessageErrorAnswer(msgspec.Struct):
    """Every answer of `/v1/messages` that isn't a 200."""

    type: Literal["error"]
    error: MessageError


class CachedTokens(msgspec.Struct):
    """Tokens of the prompt that a saved state had read already; what the state holds at the end.

    `exact_tokens` are held by every layer, the pairs of the `older_tokens` compete for recall
    slots, of which `recall_slots` are in use.
    """

    cached_tokens: int
    exact_tokens: int
    older_tokens: int
    recall_slots: int


class Usage(msgspec.Struct):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class Progress(msgspec.Struct):
    """How far a prompt is read, in tokens; `cache` of them a saved state had read already."""

    total: int
    cache: int
    processed: int
    time_ms: int


class LikelyToken(msgspec.Struct):
    """A token; `bytes` are exact, `token` may be a part of a character."""

    token: str
    logprob: float
    bytes: list[int]


class ChosenToken(LikelyToken):
    """A token of the answer, and the likeliest ones in its place."""

    top_logprobs: list[LikelyToken]


class ChatLogprobs(msgspec.Struct):
    """`logprobs` of `/v1/chat/completions`."""

    content: list[ChosenToken]
    refusal: None


class CompletionLogprobs(msgspec.Struct):
    """`logprobs` of `/v1/completions`."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class Function(msgspec.Struct):
    """A called function; its arguments are JSON of an object, in a stream a piece of it."""

    arguments: str
    name: str | msgspec.UnsetType = msgspec.UNSET


class AnswerCall(msgspec.Struct):
    """A call of a tool; in a stream with its `index`, and id and name in its first chunk alone."""

    function: Function
    id: str | msgspec.UnsetType = msgspec.UNSET
    type: Literal["function"] | msgspec.UnsetType = msgspec.UNSET
    index: int | msgspec.UnsetType = msgspec.UNSET


class AnswerMessage(msgspec.Struct):
    """The answer; its text is null where it only calls tools."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[AnswerCall] | msgspec.UnsetType = msgspec.UNSET


class ChatChoice(msgspec.Struct):
    """The one choice."""

    index: Literal[0]
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: _Ends
    stop_reason: _Repetition = msgspec.UNSET


class Delta(msgspec.Struct):
    """What a chunk adds."""

    role: Literal["assistant"] | msgspec.UnsetType = msgspec.UNSET
    content: str | msgspec.UnsetType = msgspec.UNSET
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[AnswerCall] | msgspec.UnsetType = msgspec.UNSET


class DeltaChoice(msgspec.Struct):
    """The one choice of a chunk."""

    index: Literal[0]
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: _Ends | None
    stop_reason: _Repetition = msgspec.UNSET


class TextChoice(msgspec.Struct):
    """The one choice of a completion; without `finish_reason` while it is streamed."""

    index: Literal[0]
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: _Ends | None
    stop_reason: _Repetition = msgspec.UNSET


class Head(msgspec.Struct):
    """What all answers begin with."""

    id: str
    created: int
    model: str
    system_fingerprint: str


class ChatCompletion(Head):
    """A whole answer."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]
    usage: Usage


class ChatCompletionChunk(Head, kw_only=True):
    """One event of a streamed answer; the last with `include_usage` has no choice."""

    object: Literal["chat.completion.chunk"]
    choices: list[DeltaChoice]
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    prompt_progress: Progress | msgspec.UnsetType = msgspec.UNSET


class Completion(Head, kw_only=True):
    """A whole answer, or one event of a streamed one."""

    object: Literal["text_completion"]
    choices: list[TextChoice]
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    prompt_progress: Progress | msgspec.UnsetType = msgspec.UNSET


class Model(msgspec.Struct):
    """A model; `edgeinfinite` says how large its state is."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: Literal["edgeinfinite"]
    edgeinfinite: dict[str, Any]


class ModelList(msgspec.Struct):
    """The one model that is here."""

    object: Literal["list"]
    data: list[Model]


class Health(msgspec.Struct):
    """The server is up."""

    status: Literal["ok"]


class DocumentFound(msgspec.Struct):
    """The first line of a document's reading."""

    title: str
    kind: str
    notes: list[str]
    tokens: int
    cached_tokens: int


class DocumentRead(msgspec.Struct):
    """A line for each chunk that was read."""

    read: int
    compressions: int


class DocumentBeginning(msgspec.Struct):
    """The last line: a message that begins so goes on from what was read."""

    beginning: str


_KINDS = (
    *(ErrorAnswer, ChatCompletion, ChatCompletionChunk, Completion, Progress, Model, ModelList),
    *(MessageErrorAnswer, Health, DocumentFound, DocumentRead, DocumentBeginning),
)


def answer_schemas() -> dict[str, dict[str, Any]]:
    """A schema for each type, by the type's name."""
    return msgspec.json.schema_components(_KINDS, ref_template=REF)[1]
