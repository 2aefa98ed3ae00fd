"""Patterns without look-around: the same texts are found, as Python reads both."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeinfinite.runtime_py.answer.grammars.json_schemas import understood
from edgeinfinite.runtime_py.answer.grammars.patterns import decimal_pattern, without_look_around

SIGNS = "+-.01"
BEGUN = r"^(?!^[-+.]*$)[+-]?0*"


@pytest.mark.parametrize(
    "rest",
    [
        r"\d*\.?\d*$",
        r"\d*\.?\d{0,2}0*$",
        r"\d*\.?\d{0,0}0*$",
        r"(?:\d{0,3}|(?=[\d.]{1,4}0*$)\d*\.\d*0*$)",
        r"(?:\d{0,2}|(?=[\d.]{1,5}0*$)\d{0,2}\.\d{0,2}0*$)",
        r"(?:\d{0,0}|(?=[\d.]{1,3}0*$)\d{0,0}\.\d{0,3}0*$)",
        r"(?:\d{0,0}|(?=[\d.]{1,3}0*$)\d{0,0}\.\d{0,2}0*$)",
    ],
)
def test_a_decimals_pattern_means_the_same_without_look_ahead(rest: str) -> None:
    """Over all texts of six signs, against Python's own reading of what pydantic 2.12 writes."""
    ours = decimal_pattern(BEGUN + rest)
    assert ours is not None and "(?" not in ours
    # Two of the patterns don't say where the number ends; a number is meant.
    theirs = re.compile(BEGUN + rest if rest.endswith("$") else f"{BEGUN}{rest}$")
    mine = re.compile(ours)
    for length in range(1, 7):
        for signs in itertools.product(SIGNS, repeat=length):
            text = "".join(signs)
            assert bool(mine.search(text)) == bool(theirs.search(text)), text


@pytest.mark.parametrize("pattern", ["^a$", r"^(?!x)\d+$", r"^(?!^[-+.]*$)[+-]?0*x"])
def test_other_patterns_are_left_alone(pattern: str) -> None:
    assert decimal_pattern(pattern) is None
    schema = {"type": "string", "pattern": pattern}
    assert understood(schema) is schema


PYDANTIC = [
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,6}0*$)\d{0,3}\.\d{0,2}0*$)",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,5}|(?=[\d.]{1,6}0*$)\d*\.\d*0*$)",
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,2}0*$",
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,0}0*$",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,0}|(?=[\d.]{1,3}0*$)\d{0,0}\.\d{0,5}0*$)",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,5}|(?=[\d.]{1,6}0*$)\d{0,5}\.\d{0,0}0*$)",
]
"""What pydantic 2.12 and 2.13 write for Decimals of any, and of so many, digits and places."""

ZOD_EMAIL = (
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@"
    r"([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
)
ZOD_DURATION = (
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?"
    r"(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$"
)
ZOD_HOST = (
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$"
)
AHEAD = [
    r"^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{4,}$",
    r"^(?=a|.b)[abc]{2}$",
    r"^(?=[)|]*a)(?:a|[)|]a)$",
    r"^(?=\))\)+",
    r"^(?=ab)",
]
LETTERS = {
    ZOD_EMAIL: "aZ0_'+-.@",
    ZOD_DURATION: "PWYMDTHS01.,",
    ZOD_HOST: "aZ0-.",
    **dict.fromkeys(PYDANTIC, "+-.0123"),
    **dict.fromkeys(AHEAD, "aAbBcC019)|"),
}


def same(pattern: str, text: str) -> bool:
    """Whether what is written in a pattern's place finds a text as the pattern does."""
    ours = without_look_around(pattern)
    assert ours is not None and not any("(?=" in one or "(?!" in one for one in ours)
    closed = pattern in PYDANTIC and not pattern.endswith("$")  # see `understood`
    found = re.search(f"{pattern}$" if closed else pattern, text)
    return bool(found) == all(re.search(one, text) for one in ours)


@pytest.mark.parametrize("pattern", LETTERS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_stands_in_a_patterns_place_accepts_the_same_texts(
    pattern: str, data: st.DataObject
) -> None:
    """Texts of the pattern's own letters, texts that it accepts, and those with a sign changed."""
    letters = LETTERS[pattern]
    ours = without_look_around(pattern)
    assert ours is not None
    drawn = st.from_regex(ours[-1], fullmatch=ours[-1].endswith("$"))
    text = data.draw(st.text(letters, max_size=12) | drawn.filter(lambda one: "\n" not in one))
    if text and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.text(letters, max_size=2)) + text[at + 1 :]
    assert same(pattern, text), text


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (ZOD_EMAIL, "a.b'c@x-y.org", "a..b@x.org"),
        (ZOD_EMAIL, "_@0.aa", ".a@x.org"),
        (ZOD_DURATION, "P1Y2DT0,5S", "P1YT"),
        (ZOD_DURATION, "PT1M", "P"),
        (ZOD_HOST, "a" * 63 + ".b.", "a" * 64),
        (ZOD_HOST, ".".join(["a" * 62] * 4), ".".join(["a" * 63] * 4)),
        (AHEAD[0], "aB0c", "abc0"),
        (PYDANTIC[3], "-123.45", "1.234"),
    ],
)
def test_the_patterns_tell_good_texts_from_bad(pattern: str, good: str, bad: str) -> None:
    """So that the property above compares something."""
    assert re.search(pattern, good) and not re.search(pattern, bad)
    assert same(pattern, good) and same(pattern, bad)


@pytest.mark.parametrize(
    "pattern",
    [
        "a(?=b)",  # not at the beginning
        "(?=a)b",  # at any place
        "^(?=a)b|c",  # of one choice
        "^(?!a)b",
        "^(?=a(?!b))a",
        "^(?=a)*b",
        "^(?=a",
        "^(?=[a",
        "^a$",
    ],
)
def test_other_look_around_is_left_to_be_refused(pattern: str) -> None:
    assert without_look_around(pattern) is None
