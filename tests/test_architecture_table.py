"""The page's list of architectures is the list that the tests go through."""

from __future__ import annotations

from architectures import listing
from every_decoder import counts
from tree import ROOT

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_page_has_the_tested_architectures_and_no_others() -> None:
    assert f"\n\n{listing()}\n\n" in PAGE, f"put this into docs/models.md:\n{listing()}"


def test_the_page_says_how_many_decoders_are_right() -> None:
    assert counts() in " ".join(PAGE.split()), f"put this into docs/models.md:\n{counts()}"
