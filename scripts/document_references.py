"""What reference tools make of a document, and how two texts are compared word by word."""

from __future__ import annotations

import bisect
import codecs
import io
import re
import subprocess
import unicodedata
import zipfile
from collections import Counter
from pathlib import PurePath

FORMATS = {"html": "html", "htm": "html", "xhtml": "html", "docx": "docx", "epub": "epub"}
_WORD = re.compile(r"[^\W_]+")
_TEX = re.compile(r"\\(?:begin|end)\{[^{}]*\}|\\[a-zA-Z]+")
"""What pandoc writes for formulas that it can't show: commands, no words of the document."""

_RAISED = re.compile("[²³¹⁰-₟ª-ºᵃ-ᵪ]+")
"""Superscripts as signs of their own, which NFKC would make a part of the number before them."""

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\x80-\x9f]")
_EMPHASIS = re.compile(r"(?<=\w)(?:\*+|~~|`+)+(?=\w)")
"""Marks of emphasis within a word, in our text only: `wo**r**d` is one word."""

_LEFT_OUT = re.compile(rb"<(nav|rt|rp|rtc|noscript|template)\b.*?</\1\s*>", re.S | re.I)
"""What ours leaves out on purpose: menus, readings of ruby, what browsers don't show."""

_TITLE = re.compile(rb"<title\b[^>]*>.*?</title\s*>", re.S | re.I)
"""Ours has it apart from the text; pandoc shows it where a page has no head."""

_CHARSET = re.compile(rb"<meta\b[^<>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_AS_BROWSERS = {"big5": "big5hkscs", "iso8859-1": "cp1252", "ascii": "cp1252"}
_PAGES = (".xhtml", ".html", ".htm")

NOT_COMPARABLE = {
    "indirect-rotation.pdf": "pdftotext sets the letters of a scan's words apart",
    "nlp2004slides.pdf": "fonts don't say their letters; both lose them, pdftotext shows parts",
    "kampo.pdf": "fonts don't say their letters; both lose them",
    "jo.pdf": "fonts don't say their letters; both lose them",
    "toy.pdf": "pdftotext sets letters apart by their spacing",
    "simple1.pdf": "pdftotext sets letters apart by their spacing",
}
"""Files whose reference isn't what the document says, with the reason."""


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
        command = ["pandoc", "--sandbox", "-f", FORMATS[suffix], "-t", "plain", "--wrap=none"]
        texts = [_output(command, data)] * 2
    plain, ordered = texts
    return None if plain is None or ordered is None else (plain, ordered)


def prepared(path: str, data: bytes) -> bytes:
    """A page or book in UTF-8 and without what ours leaves out on purpose; else the data itself."""
    suffix = FORMATS.get(PurePath(path).suffix[1:].lower())
    if suffix == "html":
        return _page(data)
    if suffix != "epub":
        return data
    out, is_changed = io.BytesIO(), False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book, zipfile.ZipFile(out, "w") as made:
            for member in book.infolist():
                content = book.read(member)
                if member.filename.lower().endswith(_PAGES):
                    content, count = _LEFT_OUT.subn(b"", content)
                    is_changed = is_changed or count > 0
                made.writestr(member, content)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        return data
    return out.getvalue() if is_changed else data


def _page(data: bytes) -> bytes:
    """pandoc reads UTF-8 only, and takes anything else for Latin-1."""
    found = _CHARSET.search(data[:4096])
    try:
        encoding = codecs.lookup(found[1].decode()).name if found else "utf-8"
        encoding = _AS_BROWSERS.get(encoding, encoding)
        data = data.decode(encoding, "replace").encode() if encoding != "utf-8" else data
    except LookupError:
        pass
    return _LEFT_OUT.sub(b"", _TITLE.sub(b"", data))


def _output(command: list[str], data: bytes) -> str | None:
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=240)
    except subprocess.TimeoutExpired:
        return None
    return _TEX.sub(" ", done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else None


def words(text: str) -> list[str]:
    """The words of a text, however its signs are written."""
    plain = unicodedata.normalize("NFKC", _RAISED.sub(r" \g<0>", text)).casefold()
    return _WORD.findall(_UNSEEN.sub("", plain))


def words_of_markdown(text: str) -> list[str]:
    """The words of our text."""
    return words(_EMPHASIS.sub("", text))


def kept(theirs: list[str], ours: list[str]) -> float:
    """The share of the reference's words that we have."""
    both = Counter(theirs) & Counter(ours)
    return sum(both.values()) / len(theirs) if theirs else 1.0


def kept_joined(theirs: list[str], ours: list[str]) -> float:
    """`kept` where the reference doesn't say where words end: each is looked for in our letters."""
    letters, at, found = "".join(ours), 0, 0
    for word in theirs:
        place = letters.find(word, at)
        place = letters.find(word) if place < 0 else place
        if place >= 0:
            found, at = found + 1, place + len(word)
    return found / len(theirs) if theirs else 1.0


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
