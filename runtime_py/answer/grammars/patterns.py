"""Patterns of libraries that look ahead, written without: grammars have no look-around.

What is given in place of a pattern are patterns that must all be found in a text. Letters and
digits are ASCII's, as in ECMA-262, which JSON Schema means.
"""

from __future__ import annotations

import re

_DECIMAL = re.compile(r"\^\(\?!\^\[-\+\.\]\*\$\)\[\+-\]\?0\*(.*)", re.DOTALL)
"""How pydantic's pattern of a Decimal begins: a look-ahead, by which it has a digit."""

_PLACES = re.compile(
    r"\(\?:\\d\{0,(\d+)\}\|\(\?=\[\\d\.\]\{1,(\d+)\}0\*\$\)\\d\{0,(\d+)\}\\\.\\d\{0,(\d+)\}0\*\$\)"
)
_DIGITS = re.compile(r"\(\?:\\d\{0,(\d+)\}\|\(\?=\[\\d\.\]\{1,(\d+)\}0\*\$\)\\d\*\\\.\\d\*0\*\$\)")
_FRACTION = re.compile(r"\\d\*\\\.\?\\d\{0,(\d+)\}0\*\$")
_MOST_DIGITS = 100

_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")

_ZOD_EMAIL = (
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@"
    r"([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
)
"""No dot stands at its beginning, no two stand in a row."""

_ZOD_DURATION = (
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?"
    r"(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$"
)
"""Of ISO 8601: a part follows the P, and one follows the T."""

_SECONDS = r"\d+([.,]\d+)?S"
_TIME = rf"T(\d+H(\d+M)?({_SECONDS})?|\d+M({_SECONDS})?|{_SECONDS})"
_KNOWN = {
    _ZOD_EMAIL: (
        r"^([A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+\-]@"
        r"([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
    ),
    _ZOD_DURATION: (rf"^P(\d+W|(\d+Y(\d+M)?(\d+D)?|\d+M(\d+D)?|\d+D)({_TIME})?|{_TIME})$"),
}


def without_look_around(pattern: str) -> tuple[str, ...] | None:
    """Patterns that together mean the same; None where it has none, or means more than is known.

    Rewritten are pydantic's patterns of a Decimal, some of zod's, and look-ahead at the beginning,
    as in `^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{8,}$`.
    """
    if (decimal := decimal_pattern(pattern)) is not None:
        return (decimal,)
    if (known := _KNOWN.get(pattern)) is not None:
        return (known,)
    parts = []
    rest = pattern.removeprefix("^")
    while pattern.startswith("^(?=") and rest.startswith("(?="):
        end = _end_of_group(rest)
        if end is None:
            return None
        parts.append(f"^(?:{rest[3 : end - 1]})")
        rest = rest[end:]
    if not parts or rest[:1] in ("*", "+", "?", "{") or _has_choices(rest):
        return None
    if rest:
        parts.append(f"^{rest}")
    return None if any(mark in part for part in parts for mark in _LOOK_AROUND) else tuple(parts)


def decimal_pattern(pattern: str) -> str | None:
    """Pydantic's pattern of a Decimal without its look-aheads; None for any other pattern."""
    begun = _DECIMAL.fullmatch(pattern)
    if begun is None:
        return None
    rest = begun[1]
    if rest == r"\d*\.?\d*$":
        return r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
    if found := _FRACTION.fullmatch(rest):
        return rf"^[+-]?([0-9]+(\.{_zeros(int(found[1]))})?|\.{_digit(int(found[1]))})$"
    if found := _PLACES.fullmatch(rest):
        whole, most, again, fraction = map(int, found.groups())
        if whole != again or max(whole, fraction) > _MOST_DIGITS:
            return None
        fraction = min(fraction, most - 1)
        return rf"^[+-]?({_digit(whole, '0*')}(\.{_zeros(fraction)})?|\.{_digit(fraction)})$"
    if found := _DIGITS.fullmatch(rest):
        most = int(found[1])
        if int(found[2]) != most + 1 or most > _MOST_DIGITS:
            return None
        parts = [rf"0*[0-9]{{{whole}}}\.{_zeros(most - whole)}" for whole in range(1, most + 1)]
        parts += [rf"0+\.{_zeros(most)}", rf"\.{_digit(most)}", _digit(most, "0*")]
        return rf"^[+-]?({'|'.join(parts)})$"
    return None


def _zeros(most: int) -> str:
    """Up to `most` digits, then zeros."""
    return rf"[0-9]{{0,{most}}}0*" if most else "0*"


def _digit(most: int, before: str = "") -> str:
    """At least a digit, up to `most` besides zeros before or behind them."""
    if not most:
        return "0+"
    counted = rf"[0-9]{{1,{most}}}"
    return rf"(0+|0*{counted})" if before else rf"({counted}0*|0+)"


def _depths(pattern: str) -> list[int]:
    """For each sign, how many groups are open behind it; an escaped one, or one of a class, has -1.

    A class that isn't closed gives -1 to its end.
    """
    depths, depth, i = [], 0, 0
    while i < len(pattern):
        sign, length = pattern[i], 1
        if sign == "\\":
            length = 2
        elif sign == "[":
            closed = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL).match(pattern, i)
            length = closed.end() - i if closed else len(pattern) - i
        if length > 1 or sign == "\\":
            depths += [-1] * min(length, len(pattern) - i)
        else:
            depth += (sign == "(") - (sign == ")")
            depths.append(depth)
        i += length
    return depths


def _end_of_group(pattern: str) -> int | None:
    """Where the group that a pattern begins with has ended; None if it doesn't end."""
    depths = _depths(pattern)
    return depths.index(0) + 1 if 0 in depths else None


def _has_choices(pattern: str) -> bool:
    """Whether a `|` stands outside all groups."""
    pairs = zip(pattern, _depths(pattern), strict=True)
    return any(sign == "|" and depth == 0 for sign, depth in pairs)
