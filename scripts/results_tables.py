"""Tables of figures: what a table is made of, and how its cells come from committed rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"

Row = dict[str, Any]
Cell = Callable[[list[Row]], str]


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        labels: its first cells, as they are written.
        file: rows, relative to benchmarks/.
        where: what the fields of a row must be for the row to count.
        default: the line's figures are called those of the default.
        question: what a row's `question` must contain, where rows have one.
    """

    labels: tuple[str, ...]
    file: str
    where: Row
    default: bool = False
    question: str = ""

    def rows(self) -> list[Row]:
        """The rows that count; the line is wrong if there are none."""
        found = [
            row
            for row in chosen(rows_of(self.file), **self.where)
            if self.question in row.get("question", "")
        ]
        if not found:
            raise SystemExit(f"benchmarks/{self.file} has no row with {self.where}")
        return found


@dataclass(frozen=True)
class Grid:
    """A table that is computed.

    Args:
        heads: the columns of the labels.
        columns: by name, how a cell comes from a line's rows.
        lines: from the top down.
        beside: further files of rows that the cells are computed from.
    """

    heads: tuple[str, ...]
    columns: tuple[tuple[str, Cell], ...]
    lines: tuple[Line, ...]
    beside: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The table as a page shows it."""
        heads = [*self.heads, *(name for name, _ in self.columns)]
        lines = []
        for line in self.lines:
            rows = line.rows()
            lines.append([*line.labels, *(cell(rows) for _, cell in self.columns)])
        return markdown(heads, lines)

    def files(self) -> list[str]:
        """The files of rows, each once."""
        return list(dict.fromkeys([*(line.file for line in self.lines), *self.beside]))


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    parts = [heads, ["---"] * len(heads), *lines]
    return "\n".join(("| " + " | ".join(cells) + " |").replace("|  |", "| |") for cells in parts)


def document(file: str) -> Any:
    """What a file below benchmarks/ holds, JSON or lines of JSON."""
    text = (BENCHMARKS / file).read_text(encoding="utf-8")
    if file.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def rows_of(file: str) -> list[Row]:
    """The rows of a file below benchmarks/."""
    found = document(file)
    return found["rows"] if isinstance(found, dict) else found


def one(field: str, form: str, unit: float = 1, **where: object) -> Cell:
    """A field of the line's only row (with `where`) by its unit; a dash where it's missing."""

    def cell(rows: list[Row]) -> str:
        (row,) = chosen(rows, **where)
        value = row.get(field)
        return "–" if value in (None, 0) else form.format(value / unit)

    return cell


def mean(field: str, form: str, **where: object) -> Cell:
    """The mean of a field over the line's rows (those with `where`); a dash without any."""

    def cell(rows: list[Row]) -> str:
        values = [row[field] for row in chosen(rows, **where)]
        return form.format(fmean(values)) if values else "–"

    return cell


def chosen(rows: list[Row], **where: object) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if where.items() <= row.items()]


def percent(field: str) -> Cell:
    """The share of the line's rows in which a field is true."""

    def cell(rows: list[Row]) -> str:
        return f"{100 * fmean(row[field] for row in rows):.0f} %"

    return cell


def count(rows: list[Row]) -> str:
    """How many rows the line has."""
    return f"{len(rows)}"


def share_of(file: str, field: str, of: Row, form: str = "{:.2f}", **where: object) -> Cell:
    """A field of the line's row (with `where`), divided by the same of row `of` of the file."""

    def cell(rows: list[Row]) -> str:
        (row,) = chosen(rows, **where)
        (other,) = chosen(rows_of(file), **{**of, **where})
        ratio = row[field] / other[field]
        return "1" if ratio == 1 else form.format(ratio)

    return cell
