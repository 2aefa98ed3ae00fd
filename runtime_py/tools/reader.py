"""An answer's text to its parts, while it is written: reasoning, text, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from edgeinfinite.runtime_py.tools.forms import ToolForm
from edgeinfinite.runtime_py.tools.tool import (
    CallBegun,
    CallPiece,
    Part,
    Said,
    Thought,
    Tool,
)

THINK = "<think>"
THOUGHT = "</think>"
_DEEPEST = 64
"""Levels of lists and objects in a call's arguments; as in Kotlin, where stacks are small."""


class AnswerReader:
    """Reads one answer, a piece at a time.

    What begins like a call and is none stays text, and so does a call of a tool that isn't there,
    or one whose arguments are known only as a whole and nested more than 64 levels deep.
    White space around calls and behind reasoning is left out.

    Args:
        form: in which calls are written.
        tools: those that may be called; none for no calls.
        thinks: whether the answer may begin with reasoning.
        thinking: the prompt has begun the reasoning.

    Attributes:
        calls: how many are whole.
        is_open: the last call isn't whole yet.
    """

    def __init__(
        self,
        form: ToolForm,
        tools: Sequence[Tool] = (),
        *,
        thinks: bool = False,
        thinking: bool = False,
    ) -> None:
        self._form = form
        self._tools = {tool.name: tool for tool in tools}
        self._may_think = thinks and not thinking
        self._state = self._think if thinking else self._text
        self._held = ""
        self._began = False  # text or a call came, white space apart
        self._strips = thinking  # white space that comes next
        self._value: _Value | None = None
        self._done = False
        self.calls = 0

    @property
    def is_open(self) -> bool:
        return self._value is not None

    def push(self, text: str) -> list[Part]:
        """The parts that a piece of text completes."""
        self._held += text
        return list(self._read())

    def finish(self) -> list[Part]:
        """The rest, when no text follows."""
        self._done = True
        return list(self._read())

    def _read(self) -> Iterator[Part]:
        while True:
            state, held = self._state, self._held
            yield from state()
            if self._state == state and self._held == held:
                return

    def _think(self) -> Iterator[Part]:
        before, found, after = self._held.partition(THOUGHT)
        keep = 0 if found or self._done else _open_length(self._held, (THOUGHT,))
        told = before[: len(before) - keep]
        if self._strips:
            told = told.lstrip()
        if told.strip() or (told and not self._strips):
            yield Thought(told)
            self._strips = False
        self._held = after if found else before[len(before) - keep :]
        if found:
            self._state, self._strips = self._text, True

    def _text(self) -> Iterator[Part]:
        if self._strips or not self._began:
            stripped = self._held.lstrip()
            if self._may_think and stripped.startswith(THINK):
                self._held = stripped[len(THINK) :]
                self._state, self._may_think, self._strips = self._think, False, True
                return
            if self._may_think and THINK.startswith(stripped) and not self._done:
                return
            if not self._form.begin and self._tools and stripped.startswith("{"):
                self._held, self._state, self._began = stripped, self._call, True
                return
            if not stripped and not self._done:
                return
            if self._strips:
                self._held, self._strips = stripped, False
        begin = self._form.begin if self._tools else ""
        before, found, after = self._held.partition(begin) if begin else (self._held, "", "")
        if found:
            if before.strip():
                yield Said(before.rstrip())
            self._held, self._state, self._began = after, self._call, True
            return
        keep = 0
        if not self._done and begin:
            keep = _open_length(self._held, (begin,))
            keep = len(self._held) - len(self._held[: len(self._held) - keep].rstrip())
        told = self._held[: len(self._held) - keep]
        if self._done and self.calls and not told.strip():
            told = ""
        self._held = self._held[len(self._held) - keep :]
        if told:
            self._began = True
            yield Said(told)

    def _call(self) -> Iterator[Part]:
        """A call that isn't known yet."""
        streams = self._form.body.streams
        begun = streams.match(self._held) if streams is not None else None
        if begun is not None:
            name = _name(begun["name"])
            if name in self._tools:
                yield CallBegun(name)
                self._held, self._value = self._held[begun.end() :], _Value()
                self._state = self._arguments
                return
        body, found, after = self._ended(self._held)
        if not found and not self._done:
            return
        try:
            calls = self._form.body.calls(body, self._tools)
            if not all(name in self._tools for name, _ in calls):
                raise ValueError("no such tool")
            told = [(name, _json(given)) for name, given in calls]
        except (ValueError, RecursionError):
            yield Said(self._form.begin + body + found)
        else:
            for name, given in told:
                yield CallBegun(name)
                yield CallPiece(given)
            self.calls += len(told)
        self._held, self._state, self._strips = after, self._text, True

    def _arguments(self) -> Iterator[Part]:
        """The JSON of a call's arguments, told as it comes."""
        assert self._value is not None
        length = self._value.length(self._held)
        if length:
            yield CallPiece(self._held[:length])
            self._held = self._held[length:]
        if self._value.is_whole:
            self.calls += 1
            self._value, self._state = None, self._after

    def _after(self) -> Iterator[Part]:
        """What stands between a call's arguments and its end."""
        _, found, after = self._ended(self._held)
        if found or self._done:
            self._held, self._state, self._strips = after, self._text, True
        yield from ()

    def _ended(self, text: str) -> tuple[str, str, str]:
        """The text before a call's end, the end, and what follows."""
        form = self._form
        if form.end:
            return text.partition(form.end)
        if form.begin and form.begin in text:  # which begins the next one
            at = text.index(form.begin)
            return text[:at], " ", text[at:]
        return text, "", ""


class _Value:
    """Finds where a JSON object ends."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = self._escaped = False
        self.is_whole = False

    def length(self, text: str) -> int:
        """How many of the next characters belong to it."""
        for at, sign in enumerate(text):
            if self._in_text:
                if self._escaped:
                    self._escaped = False
                elif sign == "\\":
                    self._escaped = True
                elif sign == '"':
                    self._in_text = False
            elif sign == '"':
                self._in_text = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                if not self._depth:
                    self.is_whole = True
                    return at + 1
        return len(text)


def _name(written: str) -> str:
    """A tool's name, as it stands or as JSON; "" for what is neither."""
    try:
        return str(json.loads(written)) if written.startswith('"') else written
    except ValueError:
        return ""


def _json(given: object) -> str:
    level: list[object] = [given]
    for _ in range(_DEEPEST):
        level = [one for value in level for one in _within(value) if isinstance(one, dict | list)]
        if not level:
            break
    else:
        raise ValueError("nested too deeply")
    return json.dumps(given, ensure_ascii=False, allow_nan=False)


def _within(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _open_length(text: str, marks: Sequence[str]) -> int:
    """Characters at the end of a text that may be the start of a mark."""
    longest = max(map(len, marks)) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[-length:]) for mark in marks):
            return length
    return 0
