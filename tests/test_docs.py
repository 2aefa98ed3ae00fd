"""What holds of every page: links lead somewhere, named files exist, guides stay short."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest
from tree import ROOT

TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
).stdout.splitlines()
FILES = [name for name in TRACKED if (ROOT / name).is_file()]
PAGES = [name for name in FILES if name.endswith(".md") and "tests/fuzz/corpus" not in name]
# The reference of commands is made from the parsers and looked things up in.
GUIDES = [f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.stem != "commands"]
CODE = [name for name in FILES if name.endswith((".py", ".kt", ".sh"))]
_NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|json|jsonl|png|sh|kt|txt|pte))`")
_PAGE = re.compile(r"\b((?:docs|evaluation|experiments|benchmarks)/[\w./-]+\.(?:md|json|png))\b")


@pytest.mark.parametrize("guide", sorted(GUIDES))
def test_a_guide_has_at_most_a_thousand_words_and_one_table(guide: str) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    assert len(text.split()) <= 1000
    assert len(re.findall(r"^\|(?: *:?-+:? *\|)+$", text, re.MULTILINE)) <= 1


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_that_exist(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    lost = [link for link in links if not re.match(r"[a-z]+:", link) and not _leads(page, link)]
    assert not lost


def _leads(page: str, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = ROOT / os.path.normpath(Path(page).parent / name) if name else ROOT / page
    if not target.exists():
        return False
    return not (heading and target.suffix == ".md") or heading in _headings(target)


@functools.cache
def _headings(page: Path) -> frozenset[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found: dict[str, int] = {}
    names = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        names.append(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return frozenset(names)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_every_file_of_the_tree_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    tops = {name.partition("/")[0] for name in FILES}
    named = {name for name in _NAMED.findall(text) if name.partition("/")[0] in tops}
    # From the page's folder, or from the root.
    assert not [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not (ROOT / page).parent.joinpath(name).exists()
    ]


def test_every_page_and_file_of_rows_that_code_names_exists() -> None:
    lost = [
        f"{name}: {named}"
        for name in CODE
        for named in _PAGE.findall((ROOT / name).read_text(encoding="utf-8"))
        if not (ROOT / named).exists()
    ]
    assert not lost
