"""Writes every table of README and docs from committed rows, or says which differ from theirs.

python scripts/results.py            # `make results`
python scripts/results.py --check    # `make results-check`; exit code 1 if something differs
"""

from __future__ import annotations

import argparse
import sys

from results_default import complaints
from results_pages import pages, written
from results_sources import changed
from results_tables import ROOT


def problems() -> list[str]:
    """What is wrong with the pages as they are, a line each."""
    found = []
    for page in pages():
        if page.read_text(encoding="utf-8") != written(page):
            name = page.relative_to(ROOT)
            found.append(f"{name} differs from its rows: change those, then run `make results`")
    return found + changed() + complaints()


def main() -> int:
    """Rewrites the pages, or with `--check` only looks.

    Returns:
        0, or 1 if something is wrong.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        for page in pages():
            page.write_text(written(page), encoding="utf-8")
    found = problems()
    for line in found:
        print(line, file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
