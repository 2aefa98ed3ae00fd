"""Reads documents that others made for their tests, and compares their words with a reference's.

`python scripts/document_corpus.py FOLDER [--rows FILE]` takes archives (`.tar.gz`) out of FOLDER:
source distributions, as `pip download --no-deps --no-binary :all: pypdf python-docx html5lib ...`
puts them there, and repositories (IDPF/epub3-samples, w3c/epub-tests, jgm/pandoc, ...), as
`git archive` packs them. References are Debian's: pdftotext (poppler-utils) for PDFs, pandoc for
all else; html5lib's trees and charset_normalizer's encodings are known.
"""

from __future__ import annotations

import argparse
import bisect
import json
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path, PurePath

from document_sources import Sample, samples

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

_FORMATS = {"html": "html", "htm": "html", "xhtml": "html", "docx": "docx", "epub": "epub"}
_WORD = re.compile(r"[^\W_]+")
_TEX = re.compile(r"\\(?:begin|end)\{[^{}]*\}|\\[a-zA-Z]+")
"""What pandoc writes for formulas that it can't show: commands, no words of the document."""

_WORST = 20


def reference(path: str, data: bytes) -> tuple[str, str] | None:
    """The text as the reference tool has it, and the one whose order counts.

    They are two for PDFs: pdftotext guesses at columns, or keeps the file's order, as ours does.

    Returns:
        The texts, or None if it reads nothing.
    """
    suffix = PurePath(path).suffix[1:].lower()
    if suffix == "pdf":
        command = ["pdftotext", "-q", "-enc", "UTF-8"]
        texts = [_output([*command, *more, "-", "-"], data) for more in ([], ["-raw"])]
    else:
        command = ["pandoc", "--sandbox", "-f", _FORMATS[suffix], "-t", "plain", "--wrap=none"]
        texts = [_output(command, data)] * 2
    plain, ordered = texts
    return None if plain is None or ordered is None else (plain, ordered)


def _output(command: list[str], data: bytes) -> str | None:
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=240)
    except subprocess.TimeoutExpired:
        return None
    return _TEX.sub(" ", done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else None


def words(text: str) -> list[str]:
    """The words of a text, however its signs are written."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("\u00ad", ""))


def kept(theirs: list[str], ours: list[str]) -> float:
    """The share of the reference's words that we have."""
    both = Counter(theirs) & Counter(ours)
    return sum(both.values()) / len(theirs) if theirs else 1.0


def in_order(theirs: list[str], ours: list[str]) -> float:
    """The share, among words that stand once in each, of those in the reference's order."""
    once_theirs = [word for word, count in Counter(theirs).items() if count == 1]
    places = {word: at for at, word in enumerate(ours)}
    once_ours = {word for word, count in Counter(ours).items() if count == 1}
    found = [places[word] for word in once_theirs if word in once_ours]
    ends: list[int] = []
    for place in found:
        at = bisect.bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends) / len(found) if found else 1.0


def measured(sample: Sample) -> dict[str, object]:
    """One row of the results."""
    kind = PurePath(sample.path).suffix[1:].lower()
    row: dict[str, object] = {"package": sample.package, "file": sample.path}
    row |= {"kind": _FORMATS.get(kind, kind), "bytes": len(sample.data)}
    if ".dat-" in sample.path:
        row["kind"] = "html5lib"
    start = time.perf_counter()
    try:
        document = document_of(PurePath(sample.path).name, sample.data)
        ours = words(document.text)
        row["notes"] = len(document.notes)
    except EdgeInfiniteError as error:
        ours = []
        row["refused"] = str(error)[:200]
    row["seconds"] = round(time.perf_counter() - start, 2)
    known = sample.text
    texts = reference(sample.path, sample.data) if known is None else (known, known)
    if texts is not None:
        theirs, ordered = map(words, texts)
        row |= {"words": len(theirs), "kept": round(kept(theirs, ours), 4)}
        row["in_order"] = round(in_order(ordered, ours), 4)
    return row


def main() -> None:
    """Writes the rows, and a table of kinds and the worst files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=Path)
    arguments = parser.parse_args()
    rows = []
    for sample in samples(arguments.folder):
        rows.append(measured(sample))
        print(json.dumps(rows[-1]), file=sys.stderr)
    if arguments.rows:
        arguments.rows.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for kind in sorted({str(row["kind"]) for row in rows}):
        _report(kind, [row for row in rows if row["kind"] == kind])


def _report(kind: str, rows: list[dict[str, object]]) -> None:
    compared = [row for row in rows if row.get("words") and "refused" not in row]
    total = sum(int(str(row["words"])) for row in compared) or 1
    share = sum(int(str(row["words"])) * float(str(row["kept"])) for row in compared) / total
    order = sum(int(str(row["words"])) * float(str(row["in_order"])) for row in compared) / total
    refused = sum("refused" in row for row in rows)
    slowest = max(float(str(r["seconds"])) / max(int(str(r["bytes"])) / 1e6, 0.1) for r in rows)
    read = f"{kind}: {len(rows)} files, {refused} refused, {total:,} words"
    print(f"{read}, kept {share:.4f}, in order {order:.4f}, slowest {slowest:.1f} s/MB")
    for row in sorted(compared, key=_lost, reverse=True)[:_WORST]:
        print(f"    {_lost(row):.0f} of {row['words']} words lost: {row['file']}")


def _lost(row: dict[str, object]) -> float:
    return int(str(row["words"])) * (1 - float(str(row["kept"])))


if __name__ == "__main__":
    main()
