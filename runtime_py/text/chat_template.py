"""The artifact's chat template: the same sandbox, settings and helpers that transformers gives it.

A template is code from a stranger. It runs in jinja2's immutable sandbox with limits on time and
size (`template_limits.py`), and sees what JSON can say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.utils import Namespace

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.template_budget import BUDGET, Budget, check_pattern
from edgeinfinite.runtime_py.text.template_limits import LimitedEnvironment

Message = Mapping[str, Any]
"""`{"role": "system" | "user" | "assistant" | "tool", "content": text}`; an assistant's may have
`tool_calls`, as transformers has them."""

_ANSWER = "EDGEINFINITE-ANSWER-7F3A"
_SYSTEM = "EDGEINFINITE-SYSTEM-4C1E"

LONGEST_SOURCE = 262_144
"""Characters; the longest template of a known checkpoint has a tenth."""

SECONDS = 10.0
"""For one rendering; a book takes milliseconds."""

_CHARACTERS = 1_000_000
_TIMES_AS_LONG = 8
"""What a template makes of messages of n characters may have 1,000,000 + 8 n."""


class SystemDropped(EdgeInfiniteError):
    """A template would tell the model nothing of a system message."""


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: the template's text.
        special_tokens: what the template knows as `bos_token`, `eos_token`, and so on.

    Attributes:
        source: the template's text.

    Raises:
        EdgeInfiniteError: the template has a syntax error, or is far too long.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        self.source = source
        self._special_tokens = dict(special_tokens)
        if len(source) > LONGEST_SOURCE:
            raise _unreadable(f"it has {len(source):,} characters")
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise _unreadable(f"line {error.lineno}: {error.message}") from error
        except Exception as error:  # nesting, numbers: what Python itself can't compile
            raise _unreadable(_shortened(error)) from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        opens: bool = True,
        seconds: float | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> str:
        """The conversation as the model reads it, ending where its next answer starts.

        Args:
            messages: the conversation; further fields of strings are given to the template.
            opens: whether the template writes how an answer begins; it is `add_generation_prompt`.
            seconds: that it may take; None: `SECONDS`.
            more: what else the template is given: `tools`, and switches of its own.

        Raises:
            EdgeInfiniteError: the template refuses the conversation, fails, takes too long or
                writes too much.
            SystemDropped: it writes nothing of a system message.
        """
        text = self._render(messages, opens, seconds, more)
        for place, message in enumerate(messages):
            if message["role"] != "system" or message["content"].strip() in text:
                continue
            # Templates may take words out of it, such as a switch.
            marked = [*messages[:place], {**message, "content": _SYSTEM}, *messages[place + 1 :]]
            if _SYSTEM not in self._render(marked, opens, seconds, more):
                raise SystemDropped(
                    "this artifact's chat template drops the system message; put what it should "
                    "say into the user's message"
                )
        return text

    def _render(
        self,
        messages: Sequence[Message],
        opens: bool,
        seconds: float | None,
        more: Mapping[str, Any] | None,
    ) -> str:
        given = _characters(messages) + _characters(more)
        token = BUDGET.set(
            Budget(SECONDS if seconds is None else seconds, _CHARACTERS + _TIMES_AS_LONG * given)
        )
        try:
            return self._template.render(
                messages=[dict(message) for message in messages],
                documents=None,
                add_generation_prompt=opens,
                **self._special_tokens,
                **{"tools": None} | dict(more or {}),
            )
        except Exception as error:  # whatever a template can bring Python to, memory too
            raise EdgeInfiniteError(
                f"the chat template refuses the conversation: {_shortened(error)}"
            ) from error
        finally:
            BUDGET.reset(token)

    def render_open(
        self, messages: Sequence[Message], *, more: Mapping[str, Any] | None = None
    ) -> str:
        """The conversation up to the end of its last message, which the next answer continues.

        White space at the message's end stays where the template keeps it, as in transformers'
        `continue_final_message`.

        Raises:
            EdgeInfiniteError: as `render`, or the template changes the last message.
        """
        text = messages[-1]["content"]
        marked = _message(messages[-1]["role"], f"{text}{_ANSWER} ")
        head, found, tail = self.render(
            [*messages[:-1], marked], opens=False, more=more
        ).rpartition(_ANSWER)
        if not tail.startswith(" "):  # the template strips messages
            head = head.rstrip()
        if not found or not head.rstrip().endswith(text.strip()):
            raise EdgeInfiniteError(
                "this artifact's chat template changes or drops a part of the last message, so an "
                "answer can't go on with it; let the conversation end with the user's message"
            )
        return head

    def render_turn(self, text: str) -> tuple[str, str]:
        """`render_after` where the user goes on with `text`."""
        return self.render_after([_message("user", text)])

    def render_after(
        self, messages: Sequence[Message], *, more: Mapping[str, Any] | None = None
    ) -> tuple[str, str]:
        """What follows an assistant's answer when the conversation goes on with `messages`.

        A state can't be read again, so only the text after the answer may be appended to it. It is
        taken from the rendering of a stand-in conversation; a default system prompt, a date or
        a first-turn marker stay before the answer. The real answer needn't be rendered: the state
        holds the tokens that were sampled.

        Returns:
            `(head, tail)`: a rendering up to the end of an answer, and what follows it, from the
            template's end of the answer (`<|im_end|>`) to the start of the next one.

        Raises:
            EdgeInfiniteError: the template drops earlier answers, or what it writes after an
                answer depends on the turns before it.
        """
        turn = [_message("user", "Hi"), _message("assistant", _ANSWER), *messages]
        earlier = [_message("user", "Hello"), _message("assistant", "Yes?")]
        head, found, tail = self.render(turn, more=more).partition(_ANSWER)
        _, found_later, tail_later = self.render(earlier + turn, more=more).partition(_ANSWER)
        if not (found and found_later) or tail != tail_later:
            raise EdgeInfiniteError(
                "this artifact's chat template rewrites earlier turns, so a turn can't be appended "
                "to what the model has read; use /reset before every question, or `generate`"
            )
        return head + found, tail


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _characters(value: Any) -> int:
    """Of all texts in what JSON can say."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _characters(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_characters, value))
    return 8  # a number


def _unreadable(wrong: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"the chat template can't be parsed: {wrong}; export the artifact again"
    )


def _shortened(error: Exception) -> str:
    """One line of an error of any kind; some, such as MemoryError, say nothing themselves."""
    text = " ".join(str(error).split())[:200]
    ours = isinstance(error, jinja2.TemplateError)
    return text if ours and text else f"{type(error).__name__} {text}".strip()


def _environment() -> LimitedEnvironment:
    environment = LimitedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.limit_filter("tojson")
    environment.globals.update(
        raise_exception=_raise_exception,
        strftime_now=_strftime_now,
        dict=_Dict(),
        namespace=_PublicNamespace,
    )
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON; jinja2's own filter escapes HTML, which models were not trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)  # fmt: skip


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(check_pattern(pattern))


class _Dict:
    """`dict(...)` and `dict.fromkeys(...)` without the type behind them."""

    def __call__(self, *args: Any, **fields: Any) -> dict[Any, Any]:
        return dict(*args, **fields)

    def fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


class _PublicNamespace(Namespace):
    """jinja2's `namespace`, which takes no name with a leading underscore."""

    def __init__(*args: Any, **fields: Any) -> None:
        namespace, *rest = args  # no named parameter, so that `namespace(self=...)` works
        for name in dict(*rest, **fields):
            _refuse_private(name)
        Namespace.__init__(namespace, *rest, **fields)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:  # its values may hold it again
        return "<Namespace>"


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace can't hold the name {name!r}")


class _GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}` marks answers for training; here it is see-through."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)
