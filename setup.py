"""The packages of the tree: pyproject.toml maps import names to folders, here they are found.

setuptools can find packages below one root, or map names to folders, but not both; the list is
made here so that a new sub-package needs no entry, and a folder that isn't there yet does no harm.
"""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent


def packages() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = []
    for name, folder in settings["tool"]["setuptools"]["package-dir"].items():
        if (ROOT / folder / "__init__.py").is_file():
            found += [name, *(f"{name}.{below}" for below in find_packages(str(ROOT / folder)))]
    return found


setup(packages=packages())
