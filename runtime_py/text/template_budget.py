"""What one rendering of a chat template may use, and what its operations would cost.

The costs are known before an operation runs: an allocation that fails may end the process.
"""

from __future__ import annotations

import re
import time
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import jinja2

_MOST_NUMBER = 1_000_000
"""The largest whole number that a template may give to a filter or a method: widths, counts."""

_MOST_BITS = 4_096
_MOST_INDENT = 64
_LONGEST_PATTERN = 256
_WIDTH_OF_PERCENT = re.compile(r"%[^%a-zA-Z]*\d{5}")
_WIDTH_OF_BRACES = re.compile(r"\{[^{}]*\d{5}")
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class OverLimitError(jinja2.TemplateError):
    """The template asks for more than it gets."""


@dataclass
class Budget:
    """What one rendering may use.

    Args:
        seconds: of time.
        characters: the largest value. Together, what it writes may be four times as long.
    """

    seconds: float
    characters: int
    _written: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def step(self) -> None:
        """Called at every operation."""
        if time.monotonic() > self._end:
            raise OverLimitError(f"it takes longer than {self.seconds:g} seconds")

    def write(self, characters: int) -> None:
        """Called with the length of everything that it writes, also into a variable."""
        self._written += characters
        if self._written > 4 * self.characters:
            raise OverLimitError("it writes without end")

    def check(self, size: int) -> None:
        """Called with the size of what an operation will give."""
        if size > self.characters:
            raise OverLimitError(f"it makes values of more than {self.characters:,} characters")


BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)
"""Of the rendering that goes on."""


def budget() -> Budget:
    """Of the rendering that goes on; while jinja2 compiles, of each constant that it computes."""
    return BUDGET.get() or Budget(seconds=float("inf"), characters=_MOST_NUMBER)


def written(value: Any) -> Any:
    """What is about to be written; jinja2's `finalize`."""
    budget().write(_weight(value))
    return value


def measured(value: Any) -> Any:
    """The value that an operation gave, unless it is too large."""
    allowed = budget()
    allowed.step()
    allowed.check(_weight(value))
    return value


def _weight(value: Any) -> int:
    """About the characters of `str(value)`; stops counting once they are too many."""
    most = budget().characters
    weight, left = 0, [value]
    while left and weight <= most:
        one = left.pop()
        if isinstance(one, str | bytes):
            weight += len(one)
        elif isinstance(one, int):
            weight += one.bit_length() if one.bit_length() > _MOST_BITS else 1
            if one.bit_length() > _MOST_BITS:
                raise OverLimitError(f"it makes numbers of more than {_MOST_BITS} bits")
        elif isinstance(one, Mapping):
            weight += 4 * len(one)
            left += [*one.keys(), *one.values()]
        elif isinstance(one, _CONTAINERS):
            weight += 2 * len(one)
            left += one
        weight += 1
    return weight


def check_operation(operator: str, left: Any, right: Any) -> None:
    """Before a binary operator."""
    if operator == "%" and isinstance(left, str):
        _check_format(left, right, "%", _WIDTH_OF_PERCENT)
    whole = isinstance(left, int) and isinstance(right, int)
    if operator == "**" and whole and left.bit_length() * abs(right) > _MOST_BITS:
        raise OverLimitError(f"it makes numbers of more than {_MOST_BITS} bits")
    if operator == "*":
        for one, count in ((left, right), (right, left)):
            if isinstance(count, int) and hasattr(one, "__len__"):
                budget().check(_weight(one) * max(0, count))


def _check_format(text: str, arguments: Any, sign: str, width: re.Pattern[str]) -> None:
    """Refuses long paddings, and one long argument used many times."""
    if width.search(text) or (sign == "%" and "*" in text):
        raise OverLimitError("it pads a text without end")
    budget().check(len(text) + text.count(sign) * _weight(arguments))
    for number in _numbers(arguments):
        _check_number(number)


def _numbers(value: Any) -> Iterable[int]:
    """Whole numbers among arguments, which may be widths of other fields."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _numbers(one)


def check_format_method(text: str, arguments: Any) -> None:
    """Before `text.format(...)`."""
    _check_format(text, arguments, "{", _WIDTH_OF_BRACES)


def check_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Before any call: no number that is too large for a width or a count."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, int):
            _check_number(value)


def _check_number(value: int) -> None:
    if abs(value) > _MOST_NUMBER:
        raise OverLimitError(f"it uses the number {str(value)[:20]}, which is too large")


def check_text_method(
    owner: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Measures what a method of a string will give; returns the arguments to call it with."""
    if name == "join" and args:
        return (_pieces(owner, args[0]), *args[1:])
    if name == "replace" and len(args) >= 2:
        _check_replace(owner, args[0], args[1])
    elif name == "replace" and kwargs:
        raise OverLimitError("it calls replace in an unusual way")
    return args


def _pieces(separator: str, items: Iterable[Any]) -> list[Any]:
    pieces = list(items)
    budget().check(_weight(pieces) + len(separator) * len(pieces))
    return pieces


def _check_replace(text: str, old: Any, new: Any) -> None:
    old, new = str(old), str(new)
    found = text.count(old) if old else len(text) + 1
    budget().check(len(text) + found * len(new))


def check_filter(name: str, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Measures what a filter will give; returns the value to give to it."""
    if name == "replace":
        _check_replace(str(value), *(*args, *kwargs.values(), "", "")[:2])
    elif name == "join":
        separator = args[0] if args else kwargs.get("d", "")
        return _pieces(str(separator), value)
    elif name == "indent":
        width = args[0] if args else kwargs.get("width", 4)
        size = width if isinstance(width, int) else len(str(width))
        budget().check((str(value).count("\n") + 1) * size)
    elif name == "format":
        _check_format(str(value), (args, dict(kwargs)), "%", _WIDTH_OF_PERCENT)
    elif name == "sum" and not isinstance(kwargs.get("start", (*args, 0, 0)[1]), int | float):
        raise OverLimitError("it sums what isn't a number")
    elif name == "tojson":
        indents = (*args[1:2], kwargs.get("indent"))
        if any(isinstance(one, int) and one > _MOST_INDENT for one in indents):
            raise OverLimitError("it indents JSON without end")
        measured(value)
    return value


def check_pattern(pattern: str) -> str:
    """A pattern of `strftime`; C libraries pad its fields as far as it asks."""
    if len(pattern) > _LONGEST_PATTERN or re.search(r"\d{4}", pattern):
        raise OverLimitError("it asks for a date in an unusual way")
    return pattern
