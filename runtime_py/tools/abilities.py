"""What a checkpoint's chat template knows: tools, reasoning, switches of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.tools.forms import HERMES, ToolForm, form_of, knows_tools
from edgeinfinite.runtime_py.tools.reader import THINK, THOUGHT

_NO_EFFORT = ("none", "minimal")
_GIVEN = {
    *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
    *("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"),
}
"""What templates are given anyway."""


@dataclass(frozen=True)
class Abilities:
    """What a chat template knows.

    Args:
        source: the template's; "" for a model without.
    """

    source: str

    @property
    def writes_tools(self) -> bool:
        """Whether the template itself tells the model of tools."""
        return knows_tools(self.source)

    @property
    def thinks(self) -> bool:
        """Whether answers may begin with reasoning."""
        return THOUGHT in self.source

    @property
    def tool_form(self) -> ToolForm:
        """How the model writes calls.

        Raises:
            EdgeInfiniteError: the template knows tools, in a form that isn't known here.
        """
        if not self.writes_tools:
            return HERMES
        form = form_of(self.source)
        if form is None:
            raise EdgeInfiniteError(
                "tools: this artifact's chat template writes calls in a form that isn't known "
                "here; leave tools out"
            )
        return form

    def options(
        self, effort: str | None, given: Mapping[str, Any], *, usual: str = "default"
    ) -> dict[str, Any]:
        """The template's own switches.

        Args:
            effort: of reasoning, in OpenAI's words; None where nobody asks for one.
            given: `chat_template_kwargs`.
            usual: the effort that changes nothing.

        Raises:
            EdgeInfiniteError: the template doesn't know one.
        """
        for name in given:
            if name in _GIVEN or not re.search(rf"\b{re.escape(name)}\b", self.source):
                raise EdgeInfiniteError(
                    f"chat_template_kwargs: this artifact's chat template has no switch "
                    f"{name[:40]!r}; leave it out"
                )
        if effort is None:
            return dict(given)
        if "reasoning_effort" in self.source:
            return {"reasoning_effort": effort} | dict(given)
        if "enable_thinking" in self.source:
            return {"enable_thinking": effort not in _NO_EFFORT} | dict(given)
        if effort not in ("none", usual) or (self.thinks and effort == "none"):
            raise EdgeInfiniteError(
                f"reasoning effort {effort[:20]!r}: this artifact's chat template knows none; "
                "leave it out"
            )
        return dict(given)


def opens_thought(text: str) -> bool:
    """Whether a prompt ends where reasoning has just begun."""
    return text.rstrip().endswith(THINK)
