"""A request for a response: what is understood, and one clear line for everything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast, get_args

import msgspec

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.ask import sampling_of
from edgeinfinite.runtime_py.server.declared import tool_of, tools_of
from edgeinfinite.runtime_py.server.decoding import converted, object_of, only_known
from edgeinfinite.runtime_py.server.leniency import (
    MOST_COUNTED,
    MOST_TOKENS,
    OF_OTHER_APIS,
    counted,
    whole,
)
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.repetition import Detection
from edgeinfinite.runtime_py.tools.tool import Choice, Tool, Tools

IGNORED = {
    *("background_options", "client_metadata", "context_management", "max_tool_calls"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier"),
    *("service_tier", "stream_options", "user"),
}
"""Who asks, and how to store and bill; nothing is ever compacted, and no built-in tool called."""

NEUTRAL: dict[str, tuple[Any, ...]] = OF_OTHER_APIS | {
    "background": (False,),
    "conversation": ({},),
    "prompt": ({},),
    "truncation": ("auto", "disabled"),
}
"""Values by which a parameter changes nothing: no text is too long, so none is truncated."""

_MODES = ("auto", "required")

_LOGPROBS = "message.output_text.logprobs"

_EFFORTS = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Reasoning(msgspec.Struct, frozen=True):
    """`reasoning`. Summaries are never made: the reasoning itself is told."""

    effort: _EFFORTS | None = None


class TextForm(msgspec.Struct, frozen=True):
    """`text.format`; a schema always holds strictly."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`text`."""

    format: TextForm | None = None
    verbosity: Literal["medium"] | None = None


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`/v1/responses`."""

    input: str | list[str | dict[str, Any]] = ""
    model: str | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool = True
    stream: bool = False
    max_output_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    repetition_detection: Detection | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    include: list[str] = []
    metadata: dict[str, str] = {}
    text: TextSettings = TextSettings()
    tools: list[dict[str, Any]] = []
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    reasoning: Reasoning = Reasoning()

    def sampling(self, default: SamplingOptions) -> SamplingOptions:
        """How to choose tokens; at temperature 0 the likeliest, by no default changed."""
        return sampling_of(
            default,
            temperature=self.temperature,
            top_p=self.top_p,
            repetition_detection=self.repetition_detection,
        )

    @property
    def most_tokens(self) -> int:
        given = self.max_output_tokens
        return MOST_TOKENS if given is None else min(given, MOST_COUNTED)

    @property
    def listed_logprobs(self) -> int | None:
        """How many likely tokens to list for each token; None lists nothing."""
        if _LOGPROBS in self.include or self.top_logprobs:
            return self.top_logprobs or 0
        return None

    @property
    def declared(self) -> Tools:
        """The tools that the model is told of.

        Raises:
            ApiProblem: one isn't a function, or the choice isn't understood.
        """
        tools = []
        for i, one in enumerate(self.tools):
            where = f"tools[{i}]"
            if one.get("type") == "namespace":
                tools += in_namespace(one, where)
            else:
                tools.append(_function(one, where))
        choice, only = _choice(self.tool_choice)
        return tools_of(tools, choice, only, parallel=self.parallel_tool_calls)

    @property
    def namespaces(self) -> dict[str, str]:
        """The namespaces of the tools that have one, by the names that the model knows them by."""
        return {
            tool.name: one["name"]
            for i, one in enumerate(self.tools)
            if one.get("type") == "namespace"
            for tool in in_namespace(one, f"tools[{i}]")
        }

    @property
    def form(self) -> TextForm:
        return self.text.format or TextForm()

    @property
    def schema(self) -> str | None:
        """The JSON schema that the answer must follow.

        Raises:
            ApiProblem: it is missing.
        """
        if self.form.type == "text":
            return None
        if self.form.type == "json_object":
            return '{"type": "object"}'
        if self.form.schema is None:
            raise ApiProblem(400, "text.format has no schema; give one", param="text.format.schema")
        return msgspec.json.encode(self.form.schema).decode()


def _function(given: Any, where: str) -> Tool:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind != "function":
        raise ApiProblem(
            400,
            f"{where} is of type {kind!s:.40}, which isn't here; this model calls functions only",
            param=where,
        )
    return tool_of(given, where, schema="parameters")


def in_namespace(given: dict[str, Any], where: str) -> list[Tool]:
    """The functions of a namespace, as Codex groups them; to the model each is `NAMESPACE.NAME`.

    Raises:
        ApiProblem: 400; it has no name, or holds something else.
    """
    name, functions = given.get("name"), given.get("tools")
    if not isinstance(name, str) or not name or not isinstance(functions, list):
        raise ApiProblem(400, f"{where} is no namespace; give its name and tools", param=where)
    tools = [_function(one, f"{where}.tools[{i}]") for i, one in enumerate(functions)]
    return [
        tool_of(
            {
                "name": f"{name}.{tool.name}",
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": tool.strict,
            },
            where,
            schema="parameters",
        )
        for tool in tools
    ]


def _choice(given: str | dict[str, Any]) -> tuple[Choice, list[str]]:
    """What `tool_choice` says: whether a tool is called, and which ones may be."""
    if isinstance(given, str) and given in get_args(Choice):
        return cast("Choice", given), []
    if isinstance(given, dict):
        if given.get("type") == "function" and isinstance(given.get("name"), str):
            return "required", [given["name"]]
        allowed = given.get("tools")
        mode = given.get("mode", "auto")
        if given.get("type") == "allowed_tools" and isinstance(allowed, list) and mode in _MODES:
            names = [one.get("name") if isinstance(one, dict) else None for one in allowed]
            if names and all(isinstance(name, str) for name in names):
                return mode, [str(name) for name in names]
    raise ApiProblem(
        400,
        "tool_choice: give auto, required, none, a function by its name, or allowed_tools",
        param="tool_choice",
    )


def parse_response(body: bytes) -> ResponseRequest:
    """A request for a response.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    understood = ResponseRequest.__struct_fields__
    fields = whole(only_known(object_of(body), understood, ignored=IGNORED, neutral=NEUTRAL))
    if "max_output_tokens" in fields:
        fields["max_output_tokens"] = counted(fields["max_output_tokens"])
    if fields.get("top_p") == 0:
        fields["top_p"] = 1e-9  # the likeliest token alone
    request = converted(fields, ResponseRequest)
    if not request.input and request.previous_response_id is None:
        raise ApiProblem(400, "input is missing; give a text or a list of items", param="input")
    return request
