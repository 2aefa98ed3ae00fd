"""benchmarks/sources.json: of every file of rows the command, date, commit and digest."""

from __future__ import annotations

import hashlib

from results_catalog import GRIDS
from results_tables import BENCHMARKS, document


def changed() -> list[str]:
    """Files of rows that aren't those whose command and date are written down, a line each."""
    sources = document("sources.json")
    files = dict.fromkeys(file for grid in GRIDS.values() for file in grid.files())
    found = [f"benchmarks/{file} isn't in sources.json" for file in files if file not in sources]
    for file, source in sources.items():
        path = BENCHMARKS / file
        if not path.is_file():
            found.append(f"benchmarks/sources.json names {file}, which isn't there")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != source["sha256"]:
            found.append(
                f"benchmarks/{file} has other rows than sources.json says; "
                "write down their command, date, commit and sha256"
            )
    return found
