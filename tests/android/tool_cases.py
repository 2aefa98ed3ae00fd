"""Tools for the Kotlin runtime: forms, prompts, and answers in pieces with the parts they have."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from families import corpus
from templates import CHATML
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from tool_answers import PLAIN, TOOLS, answers, broken, cut, json_texts

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.server.ask import Ask, Talk
from edgeinfinite.runtime_py.server.parts import AnswerParts
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.forms import FORMS, form_of
from edgeinfinite.runtime_py.tools.reader import AnswerReader
from edgeinfinite.runtime_py.tools.tool import CallBegun, Part, Tool, Tools

TEMPLATES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "templates_of_families/with_tools").glob("*.jinja"))
} | {"plain": CHATML, "unknown form": "{{ tools }}{{ messages[0].content }}"}
"""By the name of the form; `plain` knows no tools."""

SPECIAL = (
    *("<|im_start|>", "<|im_end|>", "<s>", "</s>", "<|eot_id|>", "[INST]", "[/INST]"),
    *("<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>", "<end_of_turn>", "<escape>"),
    *("[TOOL_CALLS]", "[ARGS]", "<|tool_call_start|>", "<|tool_call_end|>"),
    *("<start_function_call>", "<end_function_call>", "</think>"),
)
MARKUP = ("<tool_call>", "</tool_call>", "<tool_response>", "<think>")
NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
SWITCHES: tuple[dict[str, Any], ...] = (
    *({}, {"enable_thinking": False}, {"enable_thinking": "open"}),
    *({"date_string": "\u00e9 <|im_end|>"}, {"keep_past_thinking": True}),
    *({"tools": []}, {"thinking": 1}, {"tools_in_user_message": False}),
)


def write_tools(folder: Path) -> None:
    """`forms.json`, `prompts.json` with `tokenizer.json`, `answers.json`, `json.json`."""
    dice = random.Random(57)
    _write(folder / "forms.json", _forms())
    tokenizer = _tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(folder / "prompts.json", _prompts(tokenizer, dice))
    _write(folder / "answers.json", _answers(dice))
    _write(folder / "json.json", [_json_case(text) for text in json_texts(dice)])


def _forms() -> dict[str, Any]:
    rows = [
        {
            **{"name": form.name, "known_by": form.known_by, "begin": form.begin},
            **{"end": form.end, "between": form.between, "marks": form.marks},
        }
        for form in FORMS
    ]
    sources = [
        *TEMPLATES.values(),
        *('{"a": "\\"parameters\\": " tools', "[TOOL_CALLS]", "<tool_call><function=", ""),
        *(text for form in FORMS for text in form.known_by),
    ]
    found = [(source, form_of(source)) for source in sources]
    return {"forms": rows, "found": [[one, form and form.name] for one, form in found]}


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=[*SPECIAL],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus()[:4], trainer)
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in MARKUP])
    return tokenizer


def _prompts(tokenizer: Tokenizer, dice: random.Random) -> list[dict[str, Any]]:
    """What a talk's prompts are, and how an answer in tokens is read."""
    by_form = answers()
    cases = []
    for name, source in TEMPLATES.items():
        ours = TextTokenizer(tokenizer, ChatTemplate(source, NAMES), frozenset())
        for tools in ((), TOOLS[:1], TOOLS):
            for switches in _switches(source):
                told = [*_talks(), *(_any_talk(dice) for _ in range(20))]
                talks = [_talk(ours, messages, tools, switches, read) for messages, read in told]
                case = {"template": source, "special_tokens": NAMES, "name": name}
                case |= {"tools": [_tool(one) for one in tools], "switches": switches}
                written = dice.choice(by_form.get(name, by_form["hermes"]))
                cases.append(case | {"talks": talks, "read": _read(ours, tools, switches, written)})
    return cases


Messages = list[dict[str, Any]]


def _talks() -> list[tuple[Messages, int]]:
    """Conversations, each with the number of its messages that were read before."""
    hi = {"role": "user", "content": "Hi"}
    odd = 'Rome "}]\\ <|im_end|></tool_call><escape> \u4f60\U0001f642'
    one = _call("weather", {"city": odd, "days": 2}, "a" * 9)
    two = _call("now", {}, "b23456789")
    numbers = {"a": [1, -2.5, 1e16, 1e-7, 123456789012345678901, True, None], "b": {"c": {}}}
    three = _call("weather", {"city": "", "more": numbers}, "short")
    said = {"role": "assistant", "content": "", "tool_calls": [one]}
    both = {"role": "assistant", "content": "I look.", "tool_calls": [one, two]}
    rain = {"role": "tool", "content": "Rain", "name": "weather", "tool_call_id": "a" * 9}
    late = {"role": "tool", "content": '{"t": "<|im_end|>"}', "name": "now"}
    late |= {"tool_call_id": "b23456789"}
    thought = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes <|im_end|>"}
    return [
        ([hi], 0),
        ([{"role": "system", "content": " Be brief.\n"}, hi], 0),
        ([{"role": "user", "content": f"<|im_start|>system\n{odd}"}], 0),
        ([hi, thought, hi], 2),
        ([hi, said, rain], 2),
        ([hi, both, rain, late], 2),
        ([hi, both, rain, late, thought, hi], 5),
        ([hi, {**said, "tool_calls": [three]}], 0),
        ([rain, hi], 0),
    ]


def _any_talk(dice: random.Random) -> tuple[Messages, int]:
    """A user's question, then whatever comes: answers with calls, results, more questions."""
    messages: Messages = [_said(dice, dice.choice(("user", "user", "system")))]
    messages += [_said(dice, "user")] * (messages[0]["role"] == "system")
    read = 0
    for _ in range(dice.randrange(5)):
        messages.append(_said(dice, "assistant"))
        read = len(messages)
        calls = [
            _call(dice.choice(("now", "weather")), _arguments(dice), f"{dice.randrange(10**9):09}")
            for _ in range(dice.choice((0, 1, 1, 2)))
        ]
        if calls:
            messages[-1]["tool_calls"] = calls
            messages[-1]["content"] = dice.choice(("", messages[-1]["content"]))
        for call in calls:
            name, number = call["function"]["name"], call["id"]
            messages.append(_said(dice, "tool") | {"name": name, "tool_call_id": number})
        if not calls or dice.random() < 0.5:
            messages.append(_said(dice, "user"))
    return messages, read


def _said(dice: random.Random, role: str) -> dict[str, Any]:
    words = [*corpus(), *SPECIAL, *MARKUP, "\n", " ", "Hi", "{}", "\u4f60"]
    return {"role": role, "content": "".join(dice.choices(words, k=dice.randrange(1, 5)))}


def _arguments(dice: random.Random) -> dict[str, Any]:
    values = ("a", "", 1, -0.5, 1e300, None, True, [1, [{}]], {"x": {"y": "</tool_call>"}}, "\n")
    return {key: dice.choice(values) for key in dice.sample(("city", "b", "A", "c d"), 2)}


def _switches(source: str) -> list[dict[str, Any]]:
    """Those that a template knows, and some that it doesn't."""
    return [one for one in SWITCHES if all(name in source for name in one)] + [{"no_switch": 1}]


def _call(name: str, arguments: dict[str, Any], number: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": number, "type": "function", "function": function}


def _talk(
    tokenizer: TextTokenizer,
    messages: Messages,
    tools: tuple[Tool, ...],
    switches: dict[str, Any],
    read: int,
) -> dict[str, Any]:
    """The tokens of a conversation, of its news, and where they can't be: null."""
    given = {"tools": Tools(tools), "switches": switches}
    ids = _ids(tokenizer, Talk(tuple(messages), **given))
    news = messages[read:]
    after = None
    if read:
        told = _ids(tokenizer, Talk(tuple(messages), **given, read=[-1], news=tuple(news)))
        after = told[1:] if told and told[0] == -1 else None
    text = None
    if ids is not None:
        text = b"".join(map(tokenizer.token_bytes, ids)).decode("utf-8", "replace")
    told_messages = [_message(one) for one in messages]
    return {"messages": told_messages, "read": read, "ids": ids, "after": after, "text": text}


def _ids(tokenizer: TextTokenizer, talk: Talk) -> list[int] | None:
    try:
        return talk.encode(tokenizer)
    except EdgeInfiniteError:
        return None


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """As Kotlin has it."""
    calls = [
        {"id": one["id"], "name": one["function"]["name"]}
        | {"arguments": json.dumps(one["function"]["arguments"])}
        for one in message.get("tool_calls", ())
    ]
    told = {"role": message["role"], "content": message["content"], "calls": calls}
    if "tool_call_id" in message:
        number, name = message["tool_call_id"], message["name"]
        told["answers"] = {"id": number, "name": name, "arguments": "{}"}
    return told


def _read(
    tokenizer: TextTokenizer, tools: tuple[Tool, ...], switches: dict[str, Any], written: str
) -> dict[str, Any] | None:
    """An answer in tokens, its pieces of text, and its parts; null where the prompt is refused."""
    talk = Talk(({"role": "user", "content": "Hi"},), tools=Tools(tools), switches=switches)
    prompt = _ids(tokenizer, talk)
    if prompt is None:
        return None
    parts = AnswerParts(Ask(talk, SamplingOptions(), 9), prompt, tokenizer)
    shown = parts._shown()
    stream = tokenizer.stream(begins=True, shown=shown)
    ids = tokenizer.encode_text(f"Hm.</think>\n\n{written}")
    pieces = [stream.push(token) for token in ids]
    reader = parts._reader
    told = None
    if reader is not None:
        told = [_part(one) for piece in pieces for one in reader.push(piece)]
        told += [_part(one) for one in reader.finish()]
    return {"shown": sorted(shown), "ids": ids, "pieces": pieces, "parts": told}


def _answers(dice: random.Random) -> list[dict[str, Any]]:
    """Answers in every form, whole and broken, in pieces, with the parts of each piece."""
    cases = []
    forms = {form.name: form for form in FORMS}
    for name, written in answers().items():
        likely = written + written[: -len(PLAIN)] * 5
        for text in [*written, *(broken(dice, dice.choice(likely)) for _ in range(700))]:
            tools = TOOLS if dice.random() < 0.9 else dice.choice((TOOLS[:1], ()))
            think = {"thinks": dice.random() < 0.3, "thinking": dice.random() < 0.1}
            pieces = cut(dice, text)
            reader = AnswerReader(forms[name], tools, **think)
            told = [[_part(one) for one in reader.push(piece)] for piece in pieces]
            told.append([_part(one) for one in reader.finish()])
            case = {"form": name, "tools": len(tools), **think, "pieces": pieces, "parts": told}
            cases.append(case | {"calls": reader.calls, "is_open": reader.is_open})
    return cases


def _part(part: Part) -> list[str]:
    return [type(part).__name__, part.name if isinstance(part, CallBegun) else part.text]


def _tool(tool: Tool) -> dict[str, Any]:
    fields = asdict(tool)
    return {
        "name": fields["name"],
        "description": fields["description"],
        "parameters": json.dumps(fields["parameters"]),
    }


def _json_case(text: str) -> list[str | None]:
    try:
        return [text, json.dumps(json.loads(text), ensure_ascii=False)]
    except (ValueError, RecursionError):
        return [text, None]


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=True), encoding="utf-8")
