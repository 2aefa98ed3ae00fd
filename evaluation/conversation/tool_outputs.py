"""What tools answer in a chat: listings, records, logs and manuals, made of a document's text."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")
_WORD = re.compile(r"[A-Za-z]{3,}")
_FEWEST_WORDS, _MOST_CHARACTERS = 4, 240
_LEVELS = ("DEBUG", "INFO", "INFO", "WARN", "ERROR")
_WIDTH = 72


@dataclass(frozen=True)
class ToolUse:
    """One use of a tool.

    Args:
        request: what the user asks for.
        name, arguments: of the call.
        output: what the tool answers.
        remark: what the assistant says to that.
    """

    request: str
    name: str
    arguments: dict[str, str]
    output: str
    remark: str


class Sentences:
    """A document's sentences in their order, from a random one, again and again.

    Args:
        text: the document.
        random: source of randomness.

    Raises:
        EdgeInfiniteError: the text has no sentence of some words.
    """

    def __init__(self, text: str, random: np.random.Generator) -> None:
        parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
        self._all = [
            part
            for part in parts
            if len(_WORD.findall(part)) >= _FEWEST_WORDS and len(part) <= _MOST_CHARACTERS
        ]
        if not self._all:
            raise EdgeInfiniteError("a document has no sentences to make tool outputs of")
        self._next = int(random.integers(len(self._all)))

    def draw(self) -> str:
        """The next sentence."""
        sentence = self._all[self._next]
        self._next = (self._next + 1) % len(self._all)
        return sentence

    def name(self) -> str:
        """A name of two words of the next sentence."""
        return "-".join(word.lower() for word in _WORD.findall(self.draw())[:2])


def draw_tool_use(sentences: Sentences, characters: int, random: np.random.Generator) -> ToolUse:
    """A use of one of the tools.

    Args:
        sentences: of a document.
        characters: of the output, about; the line that reaches it is the last.
        random: source of randomness.
    """
    tools = (_listing, _records, _log, _manual)
    return tools[int(random.integers(len(tools)))](sentences, characters, random)


def _listing(sentences: Sentences, characters: int, random: np.random.Generator) -> ToolUse:
    def line() -> str:
        size, day = int(random.integers(100, 1_000_000)), int(random.integers(1, 29))
        hour, minute = int(random.integers(24)), int(random.integers(60))
        ending = ("txt", "md", "py", "json")[int(random.integers(4))]
        name = f"{sentences.name()}.{ending}"
        return f"-rw-r--r-- 1 user users {size:>6} Mar {day:>2} {hour:02}:{minute:02} {name}"

    folder = sentences.name()
    lines = list(_until(line, characters))
    return ToolUse(
        f"Which files are in {folder}?",
        "list_files",
        {"path": folder},
        "\n".join([f"total {len(lines)}", *lines]),
        f"There are {len(lines)} files in {folder}.",
    )


def _records(sentences: Sentences, characters: int, random: np.random.Generator) -> ToolUse:
    def record() -> str:
        fields = {"id": int(random.integers(1, 10_000)), "key": sentences.name()}
        fields |= {"score": round(float(random.random()), 3), "text": sentences.draw()}
        return json.dumps(fields, ensure_ascii=False)

    wanted = sentences.name()
    found = list(_until(record, characters))
    return ToolUse(
        f"Look up {wanted} in the records.",
        "query_records",
        {"match": wanted},
        '{"results": [\n' + ",\n".join(found) + "\n]}",
        f"I found {len(found)} records.",
    )


def _log(sentences: Sentences, characters: int, random: np.random.Generator) -> ToolUse:
    seconds = int(random.integers(80_000))

    def line() -> str:
        nonlocal seconds
        seconds += int(random.integers(1, 40))
        hour, minute, second = seconds // 3600 % 24, seconds // 60 % 60, seconds % 60
        level = _LEVELS[int(random.integers(len(_LEVELS)))]
        worker = int(random.integers(1, 9))
        when = f"2026-03-14T{hour:02}:{minute:02}:{second:02}Z"
        return f"{when} {level} worker-{worker}: {sentences.draw()}"

    service = sentences.name()
    lines = list(_until(line, characters))
    return ToolUse(
        f"Show me the newest log lines of {service}.",
        "read_log",
        {"service": service},
        "\n".join(lines),
        f"These are the newest {len(lines)} lines of {service}.",
    )


def _manual(sentences: Sentences, characters: int, random: np.random.Generator) -> ToolUse:
    def option() -> str:
        name = sentences.name()
        letter = "abcdefghijklmnopqrstuvwxyz"[int(random.integers(26))]
        said = textwrap.fill(
            sentences.draw(), _WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7
        )
        return f"  -{letter}, --{name}=N\n{said}"

    command = sentences.name()
    options = list(_until(option, characters))
    head = f"NAME\n  {command}\n\nSYNOPSIS\n  {command} [OPTION]... FILE\n\nOPTIONS"
    return ToolUse(
        f"What does the manual of {command} say?",
        "read_manual",
        {"command": command},
        "\n".join([head, *options]),
        f"{command} has {len(options)} options on this page.",
    )


def _until(make: Callable[[], str], characters: int) -> Iterator[str]:
    made = 0
    while made < characters:
        line = make()
        made += len(line)
        yield line
