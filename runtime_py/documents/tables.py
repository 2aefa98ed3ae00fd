"""Tables of markup as Markdown's."""

from __future__ import annotations

from dataclasses import dataclass, field

_EMPTY_A_CELL = 2


@dataclass
class Cell:
    """Text on one line, and how many columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


@dataclass
class Table:
    """Rows of cells, while they are read."""

    rows: list[list[Cell]] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The table's lines; its first row is the header.

        Covered places are empty cells. There are at most a few for each cell that the table has,
        whatever its cells say that they cover.
        """
        rows = [row for row in self.rows if row]
        width = max((len(row) for row in rows), default=0)
        allowed = _EMPTY_A_CELL * sum(map(len, rows)) + width
        lines = []
        covered: dict[int, int] = {}
        for row in rows:
            texts: list[str] = []
            below = {at: left - 1 for at, left in covered.items() if left > 1}
            for cell in row:
                while len(texts) in covered:
                    texts.append("")
                start = len(texts)
                texts.append(cell.text.replace("|", "\\|"))
                texts += [""] * max(0, min(cell.columns, width, allowed) - 1)
                cost = len(texts) - start - 1
                if cell.rows > 1 and (cost := cost + (cell.rows - 1) * (cost + 1)) <= allowed:
                    below |= dict.fromkeys(range(start, len(texts)), cell.rows - 1)
                allowed = max(0, allowed - cost)
            while len(texts) in covered:
                texts.append("")
            covered = below
            lines.append(f"| {' | '.join(texts)} |")
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(texts)}")
        return lines


def span(value: str | None) -> int:
    """A `colspan` or `rowspan` as browsers read it, at least 1."""
    digits = (value or "").strip()[:6]
    return min(max(int(digits), 1), 1000) if digits.isascii() and digits.isdigit() else 1
