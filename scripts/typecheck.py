"""Runs mypy on the tree under its import names.

mypy doesn't follow setuptools' editable finder, so the packages are laid out as links in
build/typecheck/edgeinfinite, as an installed wheel would have them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "typecheck"


def lay_out() -> dict[str, str]:
    """Makes the links.

    Returns:
        For every folder in the stage, the folder of the tree that it stands for.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shutil.rmtree(STAGE, ignore_errors=True)
    folders = {}
    for name, folder in settings["tool"]["setuptools"]["package-dir"].items():
        place = STAGE / name.replace(".", "/")
        if not (ROOT / folder / "__init__.py").is_file():
            continue
        if "." in name:
            place.symlink_to(ROOT / folder, target_is_directory=True)
            folders[str(place.relative_to(STAGE))] = folder
        else:  # holds the others: its files one by one
            place.mkdir(parents=True)
            for file in (ROOT / folder).iterdir():
                if file.suffix == ".py" or file.name == "py.typed":
                    (place / file.name).symlink_to(file)
                elif (file / "__init__.py").is_file():
                    (place / file.name).symlink_to(file, target_is_directory=True)
    return folders


def main() -> int:
    """Prints mypy's findings with the tree's own paths; returns its exit code."""
    folders = lay_out()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--package", "edgeinfinite"),
            *("--config-file", str(ROOT / "pyproject.toml")),
            *("--cache-dir", str(ROOT / ".mypy_cache")),
            *sys.argv[1:],
        ],
        cwd=STAGE,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    report = done.stdout
    for staged, folder in folders.items():
        report = re.sub(rf"^{staged}/", f"{folder}/", report, flags=re.MULTILINE)
    print(report, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
