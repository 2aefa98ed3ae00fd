"""Tools for a chat template that knows none: said in the system message, in Hermes' words.

Calls become text of the assistant's messages, results text of the user's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from edgeinfinite.runtime_py.tools.forms import HERMES
from edgeinfinite.runtime_py.tools.tool import Tool, calls_in

_BEFORE = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""

_BEHIND = """
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def plain_messages(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]
) -> list[dict[str, Any]]:
    """The conversation in messages of text alone.

    Args:
        messages: with calls and results.
        tools: those that the model is told of; none leaves the system message as it is.
    """
    told: list[dict[str, Any]] = []
    if tools:
        listed = "\n".join(json.dumps(tool.declared(), ensure_ascii=False) for tool in tools)
        told.append({"role": "system", "content": f"{_BEFORE}{listed}{_BEHIND}"})
    behind_result = False
    for message in messages:
        is_result = message["role"] == "tool"
        plain = {"role": message["role"], "content": message["content"]}
        if is_result:
            text = f"<tool_response>\n{message['content']}\n</tool_response>"
            plain = {"role": "user", "content": text}
        elif calls := calls_in(message):
            texts = [message["content"], *map(_call, calls)]
            plain["content"] = HERMES.between.join(text for text in texts if text)
        if is_result and behind_result:
            told[-1]["content"] += f"\n{plain['content']}"
        elif plain["role"] == "system" and len(told) == 1 and tools:
            told[0]["content"] = f"{plain['content']}\n\n{told[0]['content']}"
        else:
            told.append(plain)
        behind_result = is_result
    return told


def _call(function: Mapping[str, Any]) -> str:
    call = {"name": function["name"], "arguments": function["arguments"]}
    return f"{HERMES.begin}\n{json.dumps(call, ensure_ascii=False)}\n{HERMES.end}"
