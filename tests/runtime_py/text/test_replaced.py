"""Pieces don't change what is found: the same as one call of `re` over the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeinfinite.runtime_py.text import replaced as pieces
from edgeinfinite.runtime_py.text.replaced import Names

NAMES = st.lists(st.text("ab<", min_size=1, max_size=5), max_size=4, unique=True)


@pytest.fixture(autouse=True, params=[1, 2, 3, 7, 1 << 16])
def piece(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PIECE", request.param)
        patch.setattr(pieces, "_SEARCHED", request.param)
        yield


@given(st.text("ab<c", max_size=40), NAMES)
def test_every_start_is_found_once(text: str, names: list[str]) -> None:
    expected = [i for i in range(len(text)) if any(text.startswith(name, i) for name in names)]
    assert list(Names(names).starts(text)) == expected
    assert Names(names).are_in(text) == bool(expected)


@given(st.text("ab<c", max_size=40), NAMES)
def test_what_is_replaced_is_what_one_expression_replaces(text: str, names: list[str]) -> None:
    others = {name: f"({i}{name})" for i, name in enumerate(names)}
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first)) or r"(?!)"
    assert Names(names).replaced(text, others) == re.sub(
        pattern, lambda found: others[found[0]], text
    )
