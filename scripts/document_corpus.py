"""Reads documents that others made for their tests, and compares their words with a reference's.

`python scripts/document_corpus.py FOLDER [--rows FILE]` takes source distributions out of FOLDER,
as `pip download --no-deps --no-binary :all: pypdf mammoth ...` puts them there. References
are Debian's: pdftotext (poppler-utils) for PDFs, pandoc for all else.
"""

from __future__ import annotations

import argparse
import bisect
import json
import re
import subprocess
import sys
import tarfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.isolated import document_isolated

_FORMATS = {"html": "html", "htm": "html", "xhtml": "html", "docx": "docx", "epub": "epub"}
_WORD = re.compile(r"[^\W_]+")
_WORST = 20


def documents(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """Each document's package, path in it, and bytes."""
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as members:
            for member in members:
                suffix = PurePath(member.name).suffix[1:].lower()
                if member.isfile() and (suffix in _FORMATS or suffix == "pdf"):
                    content = members.extractfile(member)
                    if content is not None:
                        yield archive.name.removesuffix(".tar.gz"), member.name, content.read()


def reference(path: str, data: bytes) -> str | None:
    """The text as the reference tool has it; None if it reads nothing."""
    suffix = PurePath(path).suffix[1:].lower()
    if suffix == "pdf":
        command = ["pdftotext", "-q", "-enc", "UTF-8", "-", "-"]
    else:
        command = ["pandoc", "--sandbox", "-f", _FORMATS[suffix], "-t", "plain", "--wrap=none"]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


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


def measured(package: str, path: str, data: bytes) -> dict[str, object]:
    """One row of the results."""
    start = time.perf_counter()
    row: dict[str, object] = {"package": package, "file": path, "bytes": len(data)}
    try:
        document = document_isolated(PurePath(path).name, data)
        ours = words(document.text)
        row |= {"kind": document.kind, "notes": len(document.notes)}
    except EdgeInfiniteError as error:
        ours = []
        row |= {"kind": PurePath(path).suffix[1:].lower(), "refused": str(error)[:200]}
    row["seconds"] = round(time.perf_counter() - start, 2)
    text = reference(path, data)
    if text is not None:
        theirs = words(text)
        row |= {"words": len(theirs), "kept": round(kept(theirs, ours), 4)}
        row["in_order"] = round(in_order(theirs, ours), 4)
    return row


def main() -> None:
    """Writes the rows, and a table of kinds and the worst files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=Path)
    arguments = parser.parse_args()
    rows = []
    for package, path, data in documents(arguments.folder):
        rows.append(measured(package, path, data))
        print(json.dumps(rows[-1]), file=sys.stderr)
    if arguments.rows:
        arguments.rows.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for kind in sorted({str(row["kind"]) for row in rows}):
        _report(kind, [row for row in rows if row["kind"] == kind])
    compared = [row for row in rows if row.get("words")]
    for row in sorted(compared, key=lambda row: float(str(row["kept"])))[:_WORST]:
        print(
            f"{row['kept']} {row['in_order']} {row['words']} {row['file']} {row.get('refused', '')}"
        )


def _report(kind: str, rows: list[dict[str, object]]) -> None:
    compared = [row for row in rows if row.get("words") and "refused" not in row]
    total = sum(int(str(row["words"])) for row in compared) or 1
    share = sum(int(str(row["words"])) * float(str(row["kept"])) for row in compared) / total
    order = sum(int(str(row["words"])) * float(str(row["in_order"])) for row in compared) / total
    refused = sum("refused" in row for row in rows)
    slowest = max(float(str(r["seconds"])) / max(int(str(r["bytes"])) / 1e6, 0.1) for r in rows)
    read = f"{kind}: {len(rows)} files, {refused} refused, {total:,} words"
    print(f"{read}, kept {share:.4f}, in order {order:.4f}, slowest {slowest:.1f} s/MB")


if __name__ == "__main__":
    main()
