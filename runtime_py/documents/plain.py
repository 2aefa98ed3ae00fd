"""Plain text and Markdown, in whatever encoding."""

from __future__ import annotations

from edgeinfinite.runtime_py.documents.budget import Budget
from edgeinfinite.runtime_py.documents.clean import visible
from edgeinfinite.runtime_py.documents.encoding import decoded
from edgeinfinite.runtime_py.documents.parts import Extracted


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`. Newlines become those of Unix; all that is seen stays."""
    found = decoded(name, data)
    budget.spend(len(found.text))
    return Extracted(visible(found.text), notes=found.notes)
