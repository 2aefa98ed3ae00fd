"""Differences between methods of `evaluate perplexity`, paired over documents, with an interval.

Every document is one observation, because tokens of one document aren't independent.

    python scripts/paired.py rows.json --of trained-gate --minus swapped-memory --from 512
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import fmean, stdev

# Student's t, two-sided 95 %, by degrees of freedom; beyond the table the normal's.
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


def differences(rows: list[dict], of: str, minus: str, start: int, end: float) -> list[float]:
    """Nats per token of one method minus those of another, for every document.

    Args:
        rows: of `evaluate perplexity --json`.
        of, minus: methods.
        start, end: bins that lie between these positions count.
    """
    found: dict[tuple[str, int], dict[str, tuple[float, int]]] = {}
    for row in rows:
        if row["bin_start"] >= start and row["bin_end"] <= end:
            place = found.setdefault((row["document"], row["bin_start"]), {})
            place[row["method"]] = (row["nats_per_token"], row["tokens"])
    by_document: dict[str, list[tuple[float, int]]] = {}
    for (document, _), place in found.items():
        if of in place and minus in place:
            difference = place[of][0] - place[minus][0]
            by_document.setdefault(document, []).append((difference, place[of][1]))
    return [sum(d * n for d, n in bins) / sum(n for _, n in bins) for bins in by_document.values()]


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and the half width of its 95 % interval (Student's t); nan for fewer than two."""
    if len(values) < 2:
        return fmean(values) if values else math.nan, math.nan
    t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else 1.96
    return fmean(values), t * stdev(values) / math.sqrt(len(values))


def main() -> None:
    """Prints one line for all bins and one for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--of", required=True)
    parser.add_argument("--minus", required=True)
    parser.add_argument("--from", type=int, default=0, dest="start")
    parser.add_argument("--to", type=float, default=math.inf, dest="end")
    arguments = parser.parse_args()
    rows = [row for path in arguments.rows for row in json.loads(path.read_text())["rows"]]
    starts = sorted(
        {(r["bin_start"], r["bin_end"]) for r in rows if r["bin_start"] >= arguments.start}
    )
    for start, end in [(arguments.start, arguments.end), *starts]:
        values = differences(rows, arguments.of, arguments.minus, start, end)
        mean, half = interval(values)
        print(
            f"{start:>6}-{end:<6} {mean:+.4f} ± {half:.4f} nats, {len(values)} documents, "
            f"lower in {sum(v < 0 for v in values)}"
        )


if __name__ == "__main__":
    main()
