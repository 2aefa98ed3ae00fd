"""Grammars by which an answer's calls of tools are right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance, TokenGrammar
from edgeinfinite.runtime_py.answer.grammars.json_schemas import understood
from edgeinfinite.runtime_py.tools.arguments import refers
from edgeinfinite.runtime_py.tools.forms import ToolForm
from edgeinfinite.runtime_py.tools.reader import THINK, THOUGHT
from edgeinfinite.runtime_py.tools.rules import json_rule
from edgeinfinite.runtime_py.tools.tool import Tool, Tools

_ANY = "/(?s:.*)/"


def tool_grammar(
    guidance: Guidance,
    form: ToolForm,
    tools: Tools,
    *,
    special: Mapping[str, int] | None = None,
    schema: str | None = None,
    thinks: bool = False,
    thinking: bool = False,
    cancelled: Callable[[], bool] | None = None,
) -> TokenGrammar:
    """A grammar for one answer that may, must or mustn't call tools.

    Args:
        guidance: of the model.
        form: in which the model writes calls.
        tools: at least one.
        special: ids of special tokens by text, for which no text of a grammar stands.
        schema: of an answer that calls nothing, as JSON; None for any text.
        thinks: whether the answer may begin with reasoning.
        thinking: the prompt has begun the reasoning.
        cancelled: asked while the grammar works.

    Raises:
        EdgeInfiniteError: the schema of a strict tool, or `schema`, can't be held to; it says why.
        Cancelled: `cancelled` said so.
    """
    thought = "open" if thinking else "may" if thinks else ""

    def made(callable_tools: tuple[Tool, ...]) -> TokenGrammar:
        source = _source(form, tools, callable_tools, special or {}, schema, thought)
        return guidance.lark(source, cancelled=cancelled)

    given = tuple(_understood(tool) for tool in tools.callable)
    for tool in given:
        if tool.strict and refers(tool.parameters):
            _usable(guidance, tool, cancelled)  # a form may write less than the schema says
    if schema is not None:
        schema = json.dumps(understood(json.loads(schema)))
    try:
        return made(given)
    except EdgeInfiniteError:
        if schema is not None:
            guidance.json_schema(schema, cancelled=cancelled)
        return made(tuple(_usable(guidance, tool, cancelled) for tool in given))


def _understood(tool: Tool) -> Tool:
    return Tool(tool.name, tool.description, understood(dict(tool.parameters)), tool.strict)


def _usable(guidance: Guidance, tool: Tool, cancelled: Callable[[], bool] | None) -> Tool:
    """The tool; with a schema of which only that is left which can be held to, if it isn't strict.

    Raises:
        EdgeInfiniteError: it is strict.
    """
    if tool.strict:
        try:
            guidance.json_schema(tool.parameters, cancelled=cancelled)
        except EdgeInfiniteError as error:
            raise EdgeInfiniteError(f"the tool {tool.name}: {error}") from error
        return tool
    nearest = guidance.nearest(tool.parameters, cancelled=cancelled)
    return Tool(tool.name, tool.description, nearest or {"type": "object"})


def _source(
    form: ToolForm,
    tools: Tools,
    callable_tools: tuple[Tool, ...],
    special: Mapping[str, int],
    schema: str | None,
    thought: str,
) -> str:
    def quoted(text: str) -> str:
        parts = _split(text, special)
        return (
            " ".join(f"<[{special[one]}]>" if one in special else json.dumps(one) for one in parts)
            or '""'
        )

    rules = ["%llguidance {}"]
    start = {"": "", "may": "thought? ", "open": "thinking "}[thought]
    if thought:
        lead = f"{quoted(THINK)} " if thought == "may" else ""
        name = "thought" if thought == "may" else "thinking"
        if THOUGHT in special:
            rules.append(f"{name}: {lead}{_ANY} {quoted(THOUGHT)} WHITE")
        else:
            rules += [f"{name}: {lead}ended WHITE", f"ended[lazy]: {_ANY} {json.dumps(THOUGHT)}"]
        rules.append(r"WHITE: /[ \n]*/")
    rules += _answers(form, tools, callable_tools, schema, quoted, start, special)
    return "\n".join(rules) + "\n"


def _answers(
    form: ToolForm,
    tools: Tools,
    callable_tools: tuple[Tool, ...],
    schema: str | None,
    quoted: Callable[[str], str],
    start: str,
    special: Mapping[str, int],
) -> Iterator[str]:
    marked = bool(form.begin) and form.begin not in special
    plain = f"{_ANY} & ~/(?s:.*){_pattern(form.begin)}(?s:.*)/" if marked else _ANY
    if not form.begin and callable_tools:
        plain = r"/([^{ \n](?s:.*))?/"
    said = "SAID" if schema is None else json_rule(json.loads(schema), strict=True)
    if not callable_tools:
        yield f"start: {start}{said}"
    else:
        yield from form.body.rules(callable_tools, quoted, parallel=tools.parallel)
        several = form.parallel and tools.parallel and not form.body.lists
        between = f"{quoted(form.between)} " if form.between else ""
        tail = f" {quoted(form.end)}" if form.end else ""
        whole = f"{quoted(form.begin)} body{tail}" if form.begin else "body"
        more = f" ({between}{whole})*" if several else ""
        yield f"calls: {whole}{more}"
        if tools.choice == "required":
            yield f"start: {start}calls"
        elif schema is None and marked:
            # Text before a call: the longest one that doesn't hold the mark, which then ends it.
            yield f"begun[lazy]: {_ANY} {json.dumps(form.begin)}"
            yield f"start: {start}(begun body{tail}{more} | SAID)"
        elif schema is None and form.begin:
            yield f"start: {start}SAID calls?"
        else:
            yield f"start: {start}(calls | {said})"
    if schema is None:
        yield f"SAID: {plain}"


def _split(text: str, special: Mapping[str, int]) -> list[str]:
    """A text as special tokens and what stands between them."""
    for mark in sorted(special, key=len, reverse=True):
        before, found, after = text.partition(mark)
        if found:
            parts = [*_split(before, special), mark, *_split(after, special)]
            return [part for part in parts if part]
    return [text] if text else []


def _pattern(text: str) -> str:
    """A text as a part of a regular expression within slashes."""
    return re.sub(r"[][\\/.*+?(){}|^$]", lambda found: "\\" + found[0], text)
