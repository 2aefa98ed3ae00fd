"""The forms in which checkpoints write calls of tools: one row each.

A row is found by what the checkpoint's own chat template writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeinfinite.runtime_py.tools import bodies
from edgeinfinite.runtime_py.tools.bodies import Body
from edgeinfinite.runtime_py.tools.gemma import GemmaCall


@dataclass(frozen=True)
class ToolForm:
    """How calls are written: `begin body end`.

    Args:
        name: of the form.
        known_by: what a chat template of this form writes; all of them.
        begin: what begins a call; "" where the answer as a whole is one.
        end: what ends it.
        between: what stands between two calls.
        parallel: there may be several.
        body: a call, or all of them, between `begin` and `end`.
    """

    name: str
    known_by: tuple[str, ...]
    begin: str
    end: str
    body: Body
    between: str = "\n"
    parallel: bool = True

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that an answer's text must show, also where they are special tokens."""
        marks = (self.begin, self.end, *self.body.marks)
        return tuple(mark.strip() for mark in marks if mark.strip())


HERMES = ToolForm(
    "hermes", ("<tool_call>",), "<tool_call>", "</tool_call>", bodies.JsonCall("arguments", "\n")
)
"""Of Hermes and most Qwens; also what a checkpoint is told whose template knows no tools."""

FORMS = (
    ToolForm(
        *("gemma", ("<start_function_call>",), "<start_function_call>", "<end_function_call>"),
        GemmaCall(),
        between="",
    ),
    ToolForm(
        *("lfm2", ("<|tool_call_start|>",), "<|tool_call_start|>", "<|tool_call_end|>"),
        bodies.PythonCalls(),
    ),
    ToolForm(
        *("mistral-args", ("[TOOL_CALLS]", "[ARGS]"), "[TOOL_CALLS]", ""),
        bodies.NamedJson("[ARGS]"),
        between="",
    ),
    ToolForm("mistral", ("[TOOL_CALLS]",), "[TOOL_CALLS]", "", bodies.JsonCalls("arguments")),
    ToolForm(
        *("qwen-xml", ("<tool_call>", "<function="), "<tool_call>", "</tool_call>"),
        bodies.XmlCall(),
    ),
    HERMES,
    ToolForm(
        *("llama3", ('"parameters": ', "tools"), "", ""),
        bodies.JsonCall("parameters", ""),
        parallel=False,
    ),
)
"""The first one whose texts a template writes is its form."""


def form_of(template: str) -> ToolForm | None:
    """The form of a chat template that knows tools; None where it isn't one of these.

    Args:
        template: its source.
    """
    written = template.replace('\\"', '"')
    return next((f for f in FORMS if all(text in written for text in f.known_by)), None)


def knows_tools(template: str) -> bool:
    """Whether a chat template writes the tools that it is given."""
    return "tools" in template
