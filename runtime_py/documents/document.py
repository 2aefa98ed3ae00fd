"""One function for every kind of document: `read_document`.

What a document says is data. It is encoded apart from the chat template, so nothing in it becomes a
control token (`control_tokens`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import docx, epub, markup, pdf, plain
from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.contents import contents_of
from edgeinfinite.runtime_py.documents.kinds import KINDS, kind_of
from edgeinfinite.runtime_py.documents.parts import Extracted

__all__ = ["KINDS", "Document", "document_of", "read_document"]

_READERS = {
    "txt": plain.read,
    "md": plain.read,
    "html": markup.read,
    "epub": epub.read,
    "pdf": pdf.read,
    "docx": docx.read,
}


@dataclass(frozen=True)
class Document:
    """A document's text.

    Args:
        text: of headings Markdown, blank lines between paragraphs; plain text as it stands.
        title: as the document gives it; "" if it doesn't.
        kind: of `KINDS`.
        notes: sentences for the user, such as a guess that may be wrong or a part left out.
        name: the file's, without its folder.
        sha256: over the file's bytes.
    """

    text: str
    title: str
    kind: str
    notes: tuple[str, ...]
    name: str
    sha256: str


def read_document(path: Path) -> Document:
    """Reads a document's text.

    Args:
        path: contents decide what it is, then the suffix; anything else is plain text.

    Raises:
        EdgeInfiniteError: it is damaged, encrypted, of another kind, has no text or an impossible
            size, or the extra `documents` isn't installed.
        OSError: the file can't be read; the message names it.
    """
    return document_of(path.name, contents_of(path))


def document_of(name: str, data: bytes) -> Document:
    """`read_document` of a file's contents, as a browser uploads them.

    It is read in the calling thread, which may take as long as `Budget.seconds`; `isolated` has the
    same in a process of its own.

    Args:
        name: the file's, for its suffix and for errors.
        data: its contents.

    Raises:
        EdgeInfiniteError: as `read_document`.
    """
    budget = Budget(name, len(data))
    kind = kind_of(name, data, budget)
    extracted: Extracted = _READERS[kind](name, data, budget)
    if not extracted.text.strip():
        why = f" ({'; '.join(extracted.notes)})" if extracted.notes else ""
        raise EdgeInfiniteError(f"{name} holds no text{why}; give a document with text in it")
    digest = hashlib.sha256(data).hexdigest()
    return Document(extracted.text, extracted.title, kind, extracted.notes, name, digest)
