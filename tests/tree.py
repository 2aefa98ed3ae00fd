"""What stands in the tree, for tests of the package as a whole."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "tool"
]["setuptools"]["package-dir"]


def modules() -> Iterator[tuple[str, Path]]:
    """The import name and file of every module in the tree."""
    for name, folder in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            below = [*file.relative_to(ROOT / folder).with_suffix("").parts]
            if below[-1] == "__init__":
                below.pop()
            yield ".".join([name, *below]), file
