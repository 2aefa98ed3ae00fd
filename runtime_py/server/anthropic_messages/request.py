"""A request for a message: what is understood, and one clear line for everything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.ask import sampling_of
from edgeinfinite.runtime_py.server.declared import tool_of, tools_of
from edgeinfinite.runtime_py.server.decoding import converted, object_of, only_known
from edgeinfinite.runtime_py.server.leniency import MOST_COUNTED, OF_OTHER_APIS, whole
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.repetition import Detection
from edgeinfinite.runtime_py.tools.tool import Choice, Tools

IGNORED = {
    *(
        "anthropic_beta",
        "anthropic_version",
        "betas",
        "cache_control",
        "context_management",
        "diagnostics",
        "inference_geo",
        "metadata",
    ),
    *("service_tier", "speed", "user_profile_id", "workspace_id"),
}
"""Who asks, and how to bill and cache: what was read is kept anyway, and nothing is compacted."""

DEFAULT_EFFORT = "high"
"""What this API means by a request that names none; Claude Code names it in each of its own."""

NEUTRAL: dict[str, tuple[Any, ...]] = OF_OTHER_APIS | {
    "container": ({},),
    "mcp_servers": ([],),
}

_MOST_STOPS = 16

_CHOICES: dict[str, Choice] = {
    "auto": "auto",
    "any": "required",
    "tool": "required",
    "none": "none",
}


class OutputFormat(msgspec.Struct, frozen=True):
    """`output_config.format`; it always holds strictly."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`output_config`."""

    format: OutputFormat | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None


class Thinking(msgspec.Struct, frozen=True):
    """`thinking`. The model's own template says how; no budget bounds it."""

    type: Literal["enabled", "disabled", "adaptive"]


class ToolChoice(msgspec.Struct, frozen=True):
    """`tool_choice`."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class MessageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`/v1/messages`, and without `max_tokens` `/v1/messages/count_tokens`."""

    messages: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    model: str | None = None
    system: str | list[dict[str, Any]] = ""
    stop_sequences: list[str] = []
    stream: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    repetition_detection: Detection | None = None
    tools: list[dict[str, Any]] = []
    tool_choice: ToolChoice = ToolChoice("auto")
    output_config: OutputConfig = OutputConfig()
    thinking: Thinking = Thinking("adaptive")

    def sampling(self, default: SamplingOptions) -> SamplingOptions:
        """How to choose tokens; at temperature 0 the likeliest, by no default changed."""
        return sampling_of(
            default,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            repetition_detection=self.repetition_detection,
        )

    @property
    def declared(self) -> Tools:
        """The tools that the model is told of.

        Raises:
            ApiProblem: one isn't a client's own, or the chosen one isn't there.
        """
        tools = []
        for i, one in enumerate(self.tools):
            where = f"tools[{i}]"
            if one.get("type") not in (None, "custom"):
                raise ApiProblem(
                    400,
                    f"{where} is of type {one.get('type')!s:.40}, which isn't here; declare a tool "
                    "with its input_schema",
                    param=where,
                )
            tools.append(tool_of(one, where, schema="input_schema"))
        chosen = self.tool_choice
        if (chosen.type == "tool") is (chosen.name is None):
            raise ApiProblem(
                400, "tool_choice: type tool needs a name, others have none", param="tool_choice"
            )
        only = [] if chosen.name is None else [chosen.name]
        parallel = not chosen.disable_parallel_tool_use
        return tools_of(tools, _CHOICES[chosen.type], only, parallel=parallel)

    @property
    def effort(self) -> str | None:
        """How much the model is to reason; None leaves it to its template."""
        if self.thinking.type == "disabled":
            return "none"
        effort = self.output_config.effort
        return "medium" if effort is None and self.thinking.type == "enabled" else effort

    @property
    def stops(self) -> tuple[str, ...]:
        """The strings that end the answer.

        Raises:
            ApiProblem: there are too many.
        """
        stops = tuple(stop for stop in self.stop_sequences if stop)
        if len(stops) > _MOST_STOPS:
            raise ApiProblem(
                400, f"stop_sequences: give at most {_MOST_STOPS}", param="stop_sequences"
            )
        return stops

    @property
    def schema(self) -> str | None:
        """The JSON schema that the answer must follow."""
        form = self.output_config.format
        return None if form is None else msgspec.json.encode(form.schema).decode()


def parse_message(body: bytes, *, counts: bool = False) -> MessageRequest:
    """A request for a message.

    Args:
        body: JSON.
        counts: its tokens are only counted.

    Raises:
        ApiProblem: 400; the message says what is wrong.
    """
    understood = MessageRequest.__struct_fields__
    fields = whole(only_known(object_of(body), understood, ignored=IGNORED, neutral=NEUTRAL))
    if fields.get("top_k") == -1:
        fields["top_k"] = 0
    if fields.get("top_p") == 0:
        fields["top_p"] = 1e-9  # the likeliest token alone
    if isinstance(fields.get("max_tokens"), int):
        fields["max_tokens"] = min(fields["max_tokens"], MOST_COUNTED)
    request = converted(fields, MessageRequest)
    if request.max_tokens is None and not counts:
        raise ApiProblem(400, "max_tokens: Field required", param="max_tokens")
    return request
