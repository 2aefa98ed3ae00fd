"""Figures that are called the default's: of its settings, and not older than it.

benchmarks/default.json says what the default is and since when. A file of rows says what its
artifact was: in its rows, in its options, or (transcribed) in the table's `default`.
"""

from __future__ import annotations

from typing import Any

from results_catalog import GRIDS
from results_tables import BENCHMARKS, Line, Row, document


def complaints() -> list[str]:
    """Figures of a default that aren't today's default's, a line each."""
    default = document("default.json")
    found: dict[str, None] = {}
    for name, grid in GRIDS.items():
        for line in grid.lines:
            if line.default:
                date = document("sources.json")[line.file]["date"]
                for row in line.rows():
                    found |= dict.fromkeys(_of(default, name, settings_of(line, row), date))
    for file in sorted((BENCHMARKS / "typed").glob("*.json")):
        for slug, entry in document(f"typed/{file.name}")["tables"].items():
            if "default" in entry:
                name = f"{file.stem}/{slug}"
                found |= dict.fromkeys(_of(default, name, entry["default"], entry["date"]))
    return list(found)


def settings_of(line: Line, row: Row) -> dict[str, Any]:
    """What a row says of the artifact that it is of, under the names of default.json."""
    known: Row = {
        name: row[name] for name in ("policy", "quantization", "state_bytes") if name in row
    }
    if str(row.get("system", "")).startswith("edgeinfinite-"):
        known["backend"] = row["system"].removeprefix("edgeinfinite-")
    held = document(line.file)
    geometry = held.get("options", {}).get("geometry", {}) if isinstance(held, dict) else {}
    lengths = ("policy", "sink_length", "segment_length", "window_length")
    return known | {name: geometry[name] for name in lengths if name in geometry}


def _of(default: dict[str, Any], name: str, settings: dict[str, Any], date: str) -> list[str]:
    backend = settings.get("backend", "onnx")
    wanted = {**default["settings"], **default["backends"][backend], "backend": backend}
    found = [
        f"{name} calls figures the default's that are of {key} {value}; it is {wanted[key]}"
        for key, value in settings.items()
        if value != wanted[key]
    ]
    if date is None or date < default["since"]["date"]:
        since = default["since"]["date"]
        found.append(f"{name} calls figures of {date} the default's, which is of {since}")
    return found
