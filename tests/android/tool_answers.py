"""Answers that call tools, in every form: as models write them, and broken by chance."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

from edgeinfinite.runtime_py.tools.tool import Tool

_PLACE = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where <|im_end|> \u00e9"},
        "days": {"type": "integer", "default": 1, "minimum": 0.5},
        "more": {"type": ["object", "null"], "properties": {}, "$ref": "#/$defs/x"},
    },
    "required": ["city"],
    "$defs": {"x": {"enum": ["a", 1, None, 1e-7, 12345678901234567890]}},
}
_REFERS = {
    "allOf": [{"$ref": "#/$defs/All"}],
    "$defs": {
        "All": {
            "properties": {
                "n": {"$ref": "#/$defs/N"},
                "t": {"$ref": "#/$defs/T~1U"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]},
                "text": {"type": ["string", "null"]},
                "wide": {"minimum": 0.5},
                "any": {},
                "loop": {"$ref": "#/$defs/All/properties/loop"},
            }
        },
        "N": {"type": "integer"},
        "T/U": {"enum": ["5", "6"]},
    },
}
TOOLS = (
    Tool("weather", 'Of a "city" <tool_call>\n \u4f60', _PLACE),
    Tool("now", "", {"type": "object", "properties": {}}),
    Tool("refers", "", _REFERS),
)
_ROME = {"city": 'Rome "}]\\ </tool_call> \u4f60\U0001f642', "days": 2}
_MORE = {"city": "x", "more": {"a": [1.5, True, None, "[ARGS]"], "b": {}}}


PLAIN = (
    *("Plain text, <tool and <tool_cal", "  \n two lines \n\n and an end \n"),
    *("<think>\nHm, <tool_call> so.\n</think>\n\nYes.", "<thin", "", "\u3000"),
)
"""What is no call in any form."""


def answers() -> dict[str, list[str]]:
    """By form."""
    return {
        "hermes": _hermes(),
        "llama3": _llama3(),
        "mistral": _mistral(),
        "mistral-args": _mistral_args(),
        "lfm2": _lfm2(),
        "qwen-xml": _qwen_xml(),
        "gemma": _gemma(),
    }


def _as_json(name: str, given: Any, key: str = "arguments") -> str:
    return json.dumps({"name": name, key: given}, ensure_ascii=False)


def _hermes() -> list[str]:
    def call(body: str) -> str:
        return f"<tool_call>\n{body}\n</tool_call>"

    weather, now = call(_as_json("weather", _ROME)), call(_as_json("now", {}))
    return [
        weather,
        f"Let me see.\n{weather}\n",
        f"<think>\nI must look.\n</think>\n\n{weather}\n{now} Done.",
        f"{weather}\n{now}",
        call(_as_json("weather", _MORE, "parameters")),
        call('{"type": "function", "name": "now", "arguments": {}}'),
        '<tool_call>{"arguments": {"a": 1e5, "b": 1E400}, "name": "now"}</tool_call>',
        '<tool_call>{"arguments": {"a": 1e5, "a": -0.0}, "name": "now"}</tool_call>',
        '<tool_call>{"name": "now", "arguments": "{}"}',
        '<tool_call>{"name": "n\\u006fw", "arguments": {"x": }}</tool_call>',
        '<tool_call>{"name": "\\x", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "now", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "now", "arguments": ' + "[" * 2_000 + "]" * 2_000 + "}</tool_call>",
        *(
            '<tool_call>{"arguments": {"a": ' + "[" * n + "]" * n + '}, "name": "now"}</tool_call>'
            for n in (63, 64, 400)
        ),
        *PLAIN,
    ]


def _llama3() -> list[str]:
    return [
        _as_json("weather", _ROME, "parameters"),
        "\n" + _as_json("now", {}, "parameters") + "\n",
        '{"type": "function", "name": "now", "parameters": {}}',
        '{"answer": 42}',
        '{"parameters": {"a": 1}, "name": "now"}',
        "I say " + _as_json("now", {}),
        "<think>Hm.</think>" + _as_json("now", {}),
        *PLAIN,
    ]


def _mistral() -> list[str]:
    calls = [{"name": "now", "arguments": {}}, {"name": "weather", "arguments": _ROME}]
    return [
        f"[TOOL_CALLS] {json.dumps(calls)}",
        f"Yes. [TOOL_CALLS] {json.dumps([calls[1]], ensure_ascii=False)}</s>",
        "[TOOL_CALLS] []",
        "[TOOL_CALLS] nothing",
        f"[TOOL_CALLS] {json.dumps(calls)}[TOOL_CALLS] {json.dumps(calls[:1])}",
        *PLAIN,
    ]


def _mistral_args() -> list[str]:
    more = json.dumps(_MORE, ensure_ascii=False)
    return [
        f"[TOOL_CALLS]now[ARGS]{{}}[TOOL_CALLS]weather[ARGS]{more}",
        f"Text [TOOL_CALLS] weather [ARGS] {more} and",
        '[TOOL_CALLS]now[ARGS]"{}"[TOOL_CALLS]',
        "[TOOL_CALLS]n\u00f6[ARGS]{}",
        "[TOOL_CALLS]now",
        *PLAIN,
    ]


def _lfm2() -> list[str]:
    given = (
        *("now(), weather(city='Rome', days=2)", 'weather(city="x", days={"a": [true, None, -1]})'),
        *(
            "weather(city='a' \"b\" u'c', days=0x1F, more=1_000)",
            "now(",
            "",
            "now",
            "weather('Rome')",
        ),
        *(
            "weather(city=r'\\d', days=+1.5e3, more=(1, 'a', ()))",
            "weather(city='\\x41\\u00e9\\101\\q')",
        ),
        *(
            "weather(city='''a\n\"b\"''', # why\n days = .5,)",
            "weather(city=b'x')",
            "weather(city={1})",
        ),
        *(
            "weather(**{'city': 1})",
            "weather(city=1, city=2)",
            "weather(city=007)",
            "weather(city=00)",
        ),
        *("weather(city={'a': 1, 2: null, True: 1.0, None: (1)})", "weather(city=1e999)"),
        *("now(class=1)", "a.b(x=1)", "now(x=open('y'))", "weather(city=1j)", "weather(city=...)"),
        *(
            "weather(city=" + "[" * 63 + "]" * 63 + ")",
            "weather(city=" + "[" * 64 + "]" * 64 + ")",
            "weather(city=" + "[" * 150 + "]" * 150 + ")",
            "weather(city=" + "[" * 250 + "]" * 250 + ")",
        ),
        *(
            "weather(\u00e7ity='\u4f60\U0001f642', d\uff41ys=1)",
            "weather(city=99999999999999999999, days=-0.0)",
        ),
    )
    made = [f"<|tool_call_start|>[{one}]<|tool_call_end|>" for one in given]
    bare = [
        f"<|tool_call_start|>{one}<|tool_call_end|>Wait."
        for one in ("now()", "(now(),)", "now(), now()")
    ]
    return [*made, *bare, f"<think>Hm.</think>\nSo: {made[0]}", *PLAIN]


def _qwen_xml() -> list[str]:
    def call(name: str, **given: str) -> str:
        told = "".join(f"<parameter={key}>\n{one}\n</parameter>\n" for key, one in given.items())
        return f"<tool_call>\n<function={name}>\n{told}</function>\n</tool_call>"

    return [
        call("weather", city="Rome\nNorth", days="2"),
        call("now") + "\n" + call("weather", city="{}", more='{"a": [1.50, "x"]}'),
        "Text\n" + call("weather", city="", days="two"),
        call("weather", other="<parameter=x>\n1</parameter>", days="1"),
        "<tool_call>\n<function=weather>\n</tool_call>",
        "<tool_call><function=now></function></tool_call>",
        call("unknown"),
        call("refers", n="5", t="5", maybe="5", text="null", wide="2.5", any="null", loop="5"),
        call("refers", maybe="null", text="6", wide="1e400", any="[1]"),
        call("refers", maybe="x", text="y"),
        *PLAIN,
    ]


def _gemma() -> list[str]:
    bodies = (
        *("call:weather{city:<escape>Rome, {x}<escape>,days:2}", "call:now{}"),
        *(
            "call:weather{city:[true,{a:<escape>b<escape>}],days:{}}",
            "call:now{a:}",
            "call:now{a:1,}",
        ),
        *(
            "call:weather{city:<escape>Rome}",
            "call:now{<escape>k<escape>:1.50, l: x y }",
            "call:n\u00f6w{}",
        ),
        *(
            "call:weather{city:[1,2",
            *("call:now{a:" + "[" * n + "]" * n + "}" for n in (63, 64, 400)),
            "call:now{} more",
            "call:now[]",
            " call:now {a:NaN}",
            "call:now{a:[[],{}]}",
        ),
    )
    made = [f"<start_function_call>{one}<end_function_call>" for one in bodies]
    return [*made, made[0] + made[1], f"Text {made[2]} text", *PLAIN]


_PIECES = (
    *"{}[](),:\"'\\#=.-_ \n\t<>/019aeE\u00e9\U0001f642\u00a0\x1c\x00",
    *(
        "true",
        "None",
        "null",
        "NaN",
        "1e5",
        "0x1F",
        "007",
        "1_000",
        "-1",
        "\\u00e9",
        "\\n",
        "{}",
        "[]",
        "()",
    ),
    *(
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|tool_call_start|>",
        "<|tool_call_end|>",
    ),
    *(
        "<start_function_call>",
        "<end_function_call>",
        "<escape>",
        "<think>",
        "</think>",
        "</function>",
    ),
    *(
        "<parameter=a>",
        "</parameter>",
        '"name": "now"',
        '"arguments": {',
        "now",
        "weather",
        "'x'",
        "\r\n",
    ),
)


def broken(dice: random.Random, text: str) -> str:
    """The text with parts of it left out, written twice, or with others in it."""
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.choice((1, 1, 2, 5, 30)))
        kind = dice.randrange(4)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:end] + text[at:]
        else:
            text = text[:at] + dice.choice(_PIECES) + text[at if kind == 2 else end :]
    return text


def cut(dice: random.Random, text: str) -> list[str]:
    """The text in pieces of up to a few characters, or of many."""
    longest = dice.choice((1, 3, 12, len(text) + 1)) if len(text) < 1_500 else 700
    pieces, at = [], 0
    while at < len(text):
        end = at + dice.randint(1, longest)
        pieces.append(text[at:end])
        at = end
    return pieces


def json_texts(dice: random.Random) -> Iterator[str]:
    """Texts that are JSON, or nearly."""
    whole = [json.dumps(one, ensure_ascii=False) for one in (_ROME, _MORE, _PLACE, [], "", 0)]
    whole += [
        *(
            "-0",
            "-0.0",
            "1E5",
            "1.0e-5",
            "1e16",
            "1e22",
            "123456789012345678901234567890",
            "01",
            "1.",
            "-",
        ),
        *(
            " [1 , 2]\n",
            '{"a": 1, "a": 2}',
            '"\\ud83d\\ude42 \\ud83d"',
            '"\\u12"',
            '"\t"',
            "[1,]",
            "{,}",
        ),
        *(
            "NaN",
            "-Infinity",
            "[Infinity]",
            "nul",
            "tru",
            '"\\/\\b\\f\x7f\u2028"',
            "\ufeff1",
            "1e400",
            "\u00a01",
        ),
        *(
            "[" * 90 + "]" * 90,
            "[" * 2_000 + "]" * 2_000,
            "9" * 4_300,
            "9" * 4_301,
            "-" + "9" * 4_300,
        ),
    ]
    yield from whole
    for _ in range(1_500):
        yield broken(dice, dice.choice(whole[:-5]))
    for _ in range(1_500):
        (number,) = struct.unpack("<d", dice.randbytes(8))
        yield repr(number) if dice.random() < 0.5 else f"{dice.uniform(-1, 1):.17e}"
        yield repr(round(dice.uniform(0, 10 ** dice.randrange(24)), dice.randrange(9)))
        yield repr(dice.randrange(1, 10**6) / 10 ** dice.randrange(12))
