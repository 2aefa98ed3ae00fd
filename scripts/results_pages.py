"""The pages: what stands between the markers of a table is made from committed rows.

A page says `<!-- table: NAME -->`, the table follows, and `<!-- end -->` ends it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from results_catalog import Shown, table
from results_tables import BENCHMARKS, ROOT

_TABLE = re.compile(r"<!-- table: ([a-z0-9/-]+) -->\n(.*?)<!-- end -->", re.DOTALL)


def pages() -> list[Path]:
    """The pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def names(text: str) -> list[str]:
    """The tables of a page, in its order."""
    return [match[1] for match in _TABLE.finditer(text)]


def written(page: Path) -> str:
    """What the page should say: its text with every table made anew."""

    def block(match: re.Match[str]) -> str:
        shown = table(match[1])
        parts = [
            f"<!-- table: {match[1]} -->",
            shown.text,
            "",
            _caption(shown, page),
            "<!-- end -->",
        ]
        return "\n".join(parts)

    return _TABLE.sub(block, page.read_text(encoding="utf-8"))


def _caption(shown: Shown, page: Path) -> str:
    links = []
    for file, origin in zip(shown.files, shown.origin, strict=True):
        link = os.path.relpath(BENCHMARKS / file, page.parent)
        transcribed = "transcribed, " if file.startswith("typed/") else ""
        when = ", ".join(filter(None, (origin["date"], origin["commit"], origin["machine"])))
        links.append(f"[{Path(file).name}]({link}) ({transcribed}{when or 'date unknown'})")
    return f"<sub>Rows: {', '.join(links)}</sub>\n"
