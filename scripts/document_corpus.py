"""Reads documents that others made for their tests, and compares their words with a reference's.

`python scripts/document_corpus.py FOLDER [--rows FILE]` takes archives (`.tar.gz`) out of FOLDER:
source distributions, as `pip download --no-deps --no-binary :all: pypdf python-docx html5lib ...`
puts them there, and repositories (IDPF/epub3-samples, w3c/epub-tests, jgm/pandoc, ...), as
`git archive` packs them. References are Debian's: pdftotext (poppler-utils) for PDFs, pandoc for
all else; html5lib's trees and charset_normalizer's encodings are known.

`kept` compares with the reference as it stands, `comparable` with what the reference makes of the
document without what ours leaves out on purpose (`document_references`). Seconds are the
processor's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path, PurePath

from document_references import (
    FORMATS,
    NOT_COMPARABLE,
    in_order,
    kept,
    kept_joined,
    prepared,
    reference,
    words,
    words_of_markdown,
)
from document_sources import Sample, samples

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

_WORST = 20
_SMALLEST = 0.1
"""Megabytes that a small file counts as: what a reader takes to begin isn't the file's."""

Row = dict[str, object]


def measured(sample: Sample) -> Row:
    """One row of the results."""
    kind = PurePath(sample.path).suffix[1:].lower()
    row: Row = {"package": sample.package, "file": sample.path}
    row |= {"kind": FORMATS.get(kind, kind), "bytes": len(sample.data)}
    is_tree = ".dat-" in sample.path
    if is_tree:
        row |= {"kind": "html5lib", "file": sample.path.rpartition("-")[0], "pages": 1}
    start = time.process_time()
    try:
        document = document_of(PurePath(sample.path).name, sample.data)
        ours = words_of_markdown(document.text)
        row["notes"] = len(document.notes)
    except EdgeInfiniteError as error:
        ours = []
        row["refused"] = str(error)[:200]
    row["seconds"] = round(time.process_time() - start, 2)
    known = sample.text
    texts = reference(sample.path, sample.data) if known is None else (known, known)
    if texts is None:
        return row
    theirs, ordered = map(words, texts)
    row |= {"words": len(theirs), "kept": round(kept(theirs, ours), 4)}
    row["in_order"] = round(in_order(ordered, ours), 4)
    if is_tree:
        row["comparable"] = round(kept_joined(theirs, ours), 4)
        return row
    if reason := NOT_COMPARABLE.get(PurePath(sample.path).name):
        return row | {"not_comparable": reason}
    data = prepared(sample.path, sample.data)
    if data != sample.data and (texts := reference(sample.path, data)) is not None:
        theirs, ordered = map(words, texts)
        row["in_order"] = round(in_order(ordered, ours), 4)
    return row | {"comparable_words": len(theirs), "comparable": round(kept(theirs, ours), 4)}


def merged(rows: list[Row]) -> list[Row]:
    """The rows with the pages of each of html5lib's files in one."""
    others = [row for row in rows if row["kind"] != "html5lib"]
    files: dict[str, list[Row]] = {}
    for row in rows:
        if row["kind"] == "html5lib":
            files.setdefault(str(row["file"]), []).append(row)
    for pages in files.values():
        total = sum(_number(page, "words") for page in pages)
        shares = {
            field: round(sum(_number(page, "words") * _number(page, field) for page in pages), 4)
            for field in ("kept", "comparable", "in_order")
        }
        others.append(
            {field: pages[0][field] for field in ("package", "file", "kind")}
            | {"pages": len(pages), "bytes": int(sum(_number(page, "bytes") for page in pages))}
            | {"pages_refused": sum("refused" in page for page in pages)}
            | {"seconds": round(sum(_number(page, "seconds") for page in pages), 2)}
            | {"words": int(total)}
            | {field: round(sum_ / total, 4) if total else 1.0 for field, sum_ in shares.items()}
        )
    return others


def main() -> None:
    """Writes the rows, and a table of kinds and the worst files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--kind", help="reads only documents of one kind")
    arguments = parser.parse_args()
    document_of("first.html", b"<p>The libraries are imported.")
    rows: list[Row] = []
    for sample in samples(arguments.folder):
        if arguments.kind and arguments.kind not in (_kind(sample), None):
            continue
        rows.append(measured(sample))
        print(json.dumps(rows[-1]), file=sys.stderr)
    rows = merged(rows)
    if arguments.rows:
        body = ",\n".join(f" {json.dumps(row)}" for row in rows)
        arguments.rows.write_text(f"[\n{body}\n]\n")
    for kind in sorted({str(row["kind"]) for row in rows}):
        _report(kind, [row for row in rows if row["kind"] == kind])


def _kind(sample: Sample) -> str:
    suffix = PurePath(sample.path).suffix[1:].lower()
    return "html5lib" if ".dat-" in sample.path else FORMATS.get(suffix, suffix)


def _report(kind: str, rows: list[Row]) -> None:
    read = [row for row in rows if row.get("words") and "refused" not in row]
    comparable = [row for row in read if "not_comparable" not in row]
    slowest = max(_number(r, "seconds") / max(_number(r, "bytes") / 1e6, _SMALLEST) for r in rows)
    refused = sum("refused" in row for row in rows)
    print(
        f"{kind}: {len(rows)} files, {refused} refused, {sum(_number(r, 'words') for r in read):,} "
        f"words, kept {_mean(read, 'kept'):.4f}, comparable {_mean(comparable, 'comparable'):.4f}, "
        f"in order {_mean(comparable, 'in_order'):.4f}, slowest {slowest:.1f} s/MB"
    )
    for row in sorted(comparable, key=_lost, reverse=True)[:_WORST]:
        print(f"    {_lost(row):.0f} of {_weight(row):.0f} words lost: {row['file']}")


def _mean(rows: list[Row], field: str) -> float:
    """Of a share, each file as often as it has words."""
    weigh = _weight if field == "comparable" else lambda row: _number(row, "words")
    total = sum(map(weigh, rows)) or 1
    return sum(weigh(row) * _number(row, field) for row in rows) / total


def _weight(row: Row) -> float:
    return _number(row, "comparable_words" if "comparable_words" in row else "words")


def _lost(row: Row) -> float:
    return _weight(row) * (1 - _number(row, "comparable"))


def _number(row: Row, field: str) -> float:
    return float(str(row.get(field, 0)))


if __name__ == "__main__":
    main()
