"""How many of 200 requests for a tool end in a valid call, with and without the grammar.

    python experiments/tool_calls.py ARTIFACT --json ROWS.json

Ten tools are declared in every request; each prompt asks for one of them. Answers are greedy. Two
ways: it must call, by the grammar (`required`), or the model is told of the tools and writes what
it likes (`free`). A call is valid if its tool is declared and its
arguments are what the tool's schema says, judged by a check of its own below; one that was cut at
120 tokens isn't. Texts have at most 60 characters: a small model repeats itself without end.

The rows (tool_calls.json) are no test set. A first run on the same prompts, at 60 tokens and with
texts of any length, ended in 162 valid calls; the other 38 were cut. So texts and lists were
bounded and the limit raised, and the 200 were run again: 199 valid, one cut. The two ways were run
one after the other, `free` by a copy of this script with that way alone, and joined.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

from edgeinfinite.runtime_py.answer.generation import Grammar
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.answers import Answers
from edgeinfinite.runtime_py.server.ask import Ask, Talk
from edgeinfinite.runtime_py.server.events import Finished
from edgeinfinite.runtime_py.server.metrics import Metrics
from edgeinfinite.runtime_py.server.options import ServeOptions
from edgeinfinite.runtime_py.server.parts import AnswerParts
from edgeinfinite.runtime_py.server.served import served_artifact
from edgeinfinite.runtime_py.tools.tool import CallBegun, CallPiece, Tool, Tools

Schema = dict[str, Any]
_MOST_TOKENS = 120


def _text(**more: Any) -> Schema:
    return {"type": "string", "maxLength": 60, **more}


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _tool(name: str, about: str, required: int, **properties: Schema) -> Tool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:required],
        "additionalProperties": False,
    }
    return Tool(name, about, schema, strict=True)


_MONEY = ["EUR", "USD", "GBP", "JPY", "CHF"]
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

TOOLS = (
    _tool(
        *("get_weather", "The weather forecast of a city.", 1),
        city=_text(minLength=1),
        days=_whole(1, 14),
        unit=_text(enum=["celsius", "fahrenheit"]),
    ),
    _tool(
        *("set_alarm", "Sets an alarm.", 2),
        hour=_whole(0, 23),
        minute=_whole(0, 59),
        label=_text(),
    ),
    _tool(
        *("send_message", "Sends a message to a person.", 2),
        to=_text(minLength=1),
        text=_text(minLength=1),
    ),
    _tool(
        *("convert_currency", "Converts an amount of money.", 3),
        amount={"type": "number", "minimum": 0},
        source=_text(enum=_MONEY),
        target=_text(enum=_MONEY),
    ),
    _tool(
        *("play_music", "Plays music of an artist.", 1),
        artist=_text(minLength=1),
        shuffle={"type": "boolean"},
    ),
    _tool(
        *("create_event", "Writes an event into the calendar.", 2),
        title=_text(minLength=1),
        date=_text(pattern=_DAY),
        guests={"type": "array", "items": _text(minLength=1), "maxItems": 3},
    ),
    _tool(
        *("search_files", "Searches the user's files.", 1),
        query=_text(minLength=1),
        most=_whole(1, 50),
    ),
    _tool(
        *("set_light", "Sets the brightness of a lamp.", 2),
        room=_text(enum=["kitchen", "bedroom", "hall", "garden"]),
        brightness=_whole(0, 100),
    ),
    _tool(
        *("translate", "Translates a text.", 2),
        text=_text(minLength=1),
        language=_text(enum=["French", "German", "Spanish", "Italian"]),
    ),
    _tool("calculate", "Computes an expression.", 1, expression=_text(minLength=1)),
)

_CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Delhi", "Quito", "Dakar", "Hanoi", "Perth", "Minsk"]
_PEOPLE = ["Anna", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Henry", "Iris", "Jonas"]
_ASKED = {
    "get_weather": (
        "What will the weather be in {city}?",
        "Weather in {city}, next {n} days, please.",
    ),
    "set_alarm": ("Wake me at {n}:30.", "Set an alarm for {n} o'clock, called {city} trip."),
    "send_message": ("Tell {who} that I am late.", "Send {who} a message: see you in {city}."),
    "convert_currency": ("How much are {n} USD in EUR?", "Convert {n}.50 GBP to JPY."),
    "play_music": ("Play something by {who}.", "Put on {who}'s songs, shuffled."),
    "create_event": (
        "Put dinner with {who} on 2026-03-{n:02d} into my calendar.",
        "Create an event 'Trip to {city}' on 2026-07-{n:02d}.",
    ),
    "search_files": ("Find my files about {city}.", "Search for letters to {who}, at most {n}."),
    "set_light": ("Set the kitchen light to {n}0 percent.", "Dim the bedroom to {n}."),
    "translate": ("Translate 'good morning, {who}' to French.", "Say 'I am in {city}' in German."),
    "calculate": ("What is {n} * 37?", "Compute (12 + {n}) / 3."),
}


def prompts() -> list[tuple[str, str]]:
    """Twenty requests for each tool: its name, and the text."""
    return [
        (name, forms[i % 2].format(city=_CITIES[i // 2], who=_PEOPLE[i // 2], n=i // 2 + 1))
        for name, forms in _ASKED.items()
        for i in range(20)
    ]


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value is what a schema of the kinds above says."""
    kind = schema["type"]
    if kind == "object":
        known = schema["properties"]
        return (
            isinstance(value, dict)
            and set(schema["required"]) <= set(value) <= set(known)
            and all(fits(one, known[key]) for key, one in value.items())
        )
    if kind == "array":
        return (
            isinstance(value, list)
            and len(value) <= schema["maxItems"]
            and all(fits(one, schema["items"]) for one in value)
        )
    if kind == "string":
        return (
            isinstance(value, str)
            and schema.get("minLength", 0) <= len(value) <= schema["maxLength"]
            and value in schema.get("enum", [value])
            and re.search(schema.get("pattern", ""), value) is not None
        )
    if kind == "boolean":
        return isinstance(value, bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer" and is_number:
        is_number = value == int(value)
    return is_number and schema["minimum"] <= value <= schema.get("maximum", value)


class _Heard:
    """In a job's place: keeps what happens."""

    def __init__(self) -> None:
        self.created = time.perf_counter()
        self.events: list[object] = []

    def emit(self, event: object) -> None:
        self.events.append(event)

    def cancelled(self) -> bool:
        return False


class _Free(Answers):
    """Answers without a grammar."""

    def _grammar(self, parts: AnswerParts, job: Any) -> Grammar | None:
        return None


def _read_what_all_begin_with(answers: Answers) -> None:
    """The tools' declarations are the same in every prompt: read once."""
    texts = [text for _, text in prompts()]
    first, *others = (
        Talk(({"role": "user", "content": text},), tools=Tools(TOOLS)).encode(answers.tokenizer)
        for text in texts
    )
    same = next(
        i for i in range(len(first)) if any(one[i : i + 1] != first[i : i + 1] for one in others)
    )
    heard: Any = _Heard()
    answers.read(first[:same], heard)


def _row(answers: Answers, how: str, wanted: str, text: str) -> dict[str, Any]:
    tools = Tools(TOOLS, "required" if how == "required" else "auto", parallel=False)
    talk = Talk(({"role": "user", "content": text},), tools=tools)
    heard: Any = _Heard()
    answers.answer(Ask(talk, SamplingOptions(), _MOST_TOKENS), heard)
    calls: list[list[str]] = []
    for event in heard.events:
        if isinstance(event, CallBegun):
            calls.append([event.name, ""])
        elif isinstance(event, CallPiece):
            calls[-1][1] += event.text
    (finished,) = (event for event in heard.events if isinstance(event, Finished))
    schemas = {tool.name: dict(tool.parameters) for tool in TOOLS}
    valid = bool(calls)
    for name, arguments in calls:
        try:
            valid = valid and name in schemas and fits(json.loads(arguments), schemas[name])
        except ValueError:
            valid = False
    return {
        "how": how,
        "wanted": wanted,
        "called": [name for name, _ in calls],
        "arguments": [arguments for _, arguments in calls],
        "valid": valid,
        "right_tool": [name for name, _ in calls] == [wanted],
        "ended": finished.reason,
        "tokens": finished.new_tokens,
        "seconds": round(time.perf_counter() - heard.created, 3),
    }


def main() -> None:
    """Asks, counts and writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    served = served_artifact(given.artifact, ServeOptions(cache_mb=200), threads=given.threads)
    rows = []
    for how in ("required", "free"):
        made = _Free if how == "free" else Answers
        answers = made(served.tokenizer, served.states, Metrics())
        if how == "required":
            _read_what_all_begin_with(answers)
        mine = [_row(answers, how, wanted, text) for wanted, text in prompts()]
        rows += mine
        called = sum(bool(row["called"]) for row in mine)
        valid = sum(row["valid"] for row in mine)
        right = sum(row["right_tool"] for row in mine)
        print(f"{how}: {len(mine)} prompts, {called} called, {valid} valid, {right} the right tool")
        given.json.write_text(json.dumps({"command": "tool_calls", "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
