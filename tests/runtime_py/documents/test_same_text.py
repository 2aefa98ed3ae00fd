"""One text in six formats is one text."""

from __future__ import annotations

import io

import pytest
from one_text import MARKDOWN, files
from reportlab.pdfgen.canvas import Canvas

from edgeinfinite.runtime_py.documents.document import document_of


def as_pdf() -> bytes:
    """A PDF of the lines: it has no headings or tables, only places."""
    file = io.BytesIO()
    canvas = Canvas(file)
    lines = canvas.beginText(72, 760)
    for line in MARKDOWN.splitlines():
        lines.textLine(line)
    canvas.drawText(lines)
    canvas.save()
    return file.getvalue()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.epub", "a.docx"])
def test_headings_lists_tables_and_links_are_the_same_markdown(name: str) -> None:
    assert document_of(name, files()[name]).text == MARKDOWN


def test_of_a_pdf_the_words_come_in_their_order() -> None:
    assert document_of("a.pdf", as_pdf()).text.split() == MARKDOWN.split()
