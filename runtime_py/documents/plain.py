"""Plain text and Markdown, in whatever encoding."""

from __future__ import annotations

from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.clean import visible
from edgeinfinite.runtime_py.documents.encoding import decoded, stated_encoding
from edgeinfinite.runtime_py.documents.parts import Extracted

_NEAR = 200
_END_OF_FILE = "\x1a"
"""CP/M's and DOS's, at the end of old texts."""


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`. Newlines become those of Unix; all that is seen stays."""
    stated = stated_encoding(data) if data[:_NEAR].lstrip().startswith(b"<") else ""
    found = decoded(name, data, stated)
    budget.spend(len(found.text))
    return Extracted(visible(found.text.removesuffix(_END_OF_FILE)), notes=found.notes)
