"""The README's table of architectures is the list that the tests go through."""

from __future__ import annotations

from pathlib import Path

from architectures import table
from every_decoder import counts


def test_the_readme_has_the_tested_architectures_and_no_others() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"\n\n{table()}\n\n" in readme, f"put this into the README:\n{table()}"


def test_the_readme_says_how_many_decoders_are_right() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert counts() in " ".join(readme.split()), f"put this into the README:\n{counts()}"
