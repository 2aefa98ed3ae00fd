"""Tokenizers that loop or explode: what is refused before a tokenizer reads any text.

A `tokenizer.json` is data, but its normaliser may replace a letter by a page, sixty times in a row,
and its patterns go to a regular-expression engine that tries every way to match. The library has
limits for neither, and a failed allocation ends the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import Tokenizer

from edgeinfinite.errors import EdgeInfiniteError

_MOST_PARTS = 200
_MOST_GROWTH = 256
"""How many times as long a text may become; NFKC makes 18 characters of one."""

_LARGEST_ID = 1 << 24
"""The largest vocabularies have a quarter of a million tokens."""

_LONGEST_PATTERN = 10_000

Result = TypeVar("Result")


def check_parts(path: Path, tokenizer: Tokenizer) -> None:
    """Looks at normaliser, pre-tokenizer and decoder.

    Args:
        path: the tokenizer's file, for errors.
        tokenizer: as loaded.

    Raises:
        EdgeInfiniteError: one of them makes texts many times as long, or has a pattern whose time
            grows exponentially with a text's length.
    """
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        part = getattr(tokenizer, name)
        if part is None:
            continue
        parts = list(_parts(json.loads(part.__getstate__())))
        if len(parts) > _MOST_PARTS:
            raise _refused(path, f"its {name} has {len(parts)} parts")
        growth = 1.0
        for one in parts:
            growth *= _growth(one)
            pattern = (one.get("pattern") or {}).get("Regex", "")
            if len(pattern) > _LONGEST_PATTERN:
                raise _refused(path, f"its {name} has a pattern of {len(pattern)} characters")
            if repeats_repeats(pattern):
                raise _refused(path, f"its {name} has the pattern {pattern[:60]!r}, which repeats "
                                     "what repeats and may never end")  # fmt: skip
        if growth > _MOST_GROWTH:
            raise _refused(path, f"its {name} makes texts many times as long")


def as_json(tokenizer: Tokenizer) -> str:
    """The tokenizer as its file has it.

    Raises:
        EdgeInfiniteError: it has an id so large that the library, which goes through all ids up to
            the last one, would take minutes.
    """
    last = max(tokenizer.get_vocab().values(), default=0)
    if last > _LARGEST_ID:
        raise EdgeInfiniteError(
            f"the tokenizer has a token of the id {last:,}; export the artifact again"
        )
    return str(tokenizer.to_str())


def guarded(what: str, call: Callable[[], Result]) -> Result:
    """Runs a call of the library, whose own faults (`PanicException`) aren't even `Exception`s.

    Args:
        what: for the error: "the tokenizer can't read the text".
        call: the call.

    Raises:
        EdgeInfiniteError: the library failed.
    """
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, EdgeInfiniteError):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200]
        raise EdgeInfiniteError(
            f"{what}: {type(error).__name__} {reason}; export the artifact again"
        ) from error


def repeats_repeats(pattern: str) -> bool:
    """Whether something without an upper bound is repeated without one, as in `(a+)+`.

    Backtracking engines try exponentially many ways to match such a pattern.
    """
    inner = [False]  # for each open group: whether it holds an unbounded repetition
    last = False  # of what stands before: a group that holds one
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at, last = at + 2, False
        elif sign == "[":
            at, last = _after_class(pattern, at), False
        elif sign == "(":
            # An atomic group or a look-around gives its match back as a whole or not at all.
            inner.append(False)
            at, last = at + 1, False
        elif sign == ")" and len(inner) > 1:
            last = inner.pop()
            inner[-1] |= last
            at += 1
        elif length := _unbounded(pattern, at):
            if last:
                return True
            inner[-1] = True
            at, last = at + length, True
            if pattern[at : at + 1] in ("?", "+"):  # lazy or possessive
                at += 1
        else:
            at, last = at + 1, False
    return False


def _unbounded(pattern: str, at: int) -> int:
    """The length of `*`, `+` or `{n,}` at a place; 0 where there is none."""
    if pattern[at] in "*+":
        return 1
    if pattern[at] != "{":
        return 0
    end = pattern.find("}", at)
    low, comma, high = pattern[at + 1 : end].partition(",")
    many = high if comma else low
    is_bound = end > 0 and (low + high).isdecimal()
    return end - at + 1 if is_bound and (not many or int(many) > 1_000) else 0


def _after_class(pattern: str, at: int) -> int:
    depth = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            depth += 1
        elif pattern[at] == "]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)


def _growth(part: dict[str, Any]) -> float:
    if part.get("type") == "Prepend":
        return 1.0 + len(part.get("prepend", "")) / 16
    if part.get("type") != "Replace":
        return 1.0
    old = (part.get("pattern") or {}).get("String", "")
    return max(1.0, len(part.get("content", "")) / max(1, len(old)))


def _refused(path: Path, wrong: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(f"{path} can't be used: {wrong}; export the artifact again")
