"""A PDF's fonts are read once, and not all of them are kept."""

from __future__ import annotations

import pypdf.generic._font as pypdf_font
import pytest
from pypdf import _page
from pypdf.generic import DictionaryObject, NameObject
from tiny_documents import pdf

from edgeinfinite.runtime_py.documents import pdf_fonts
from edgeinfinite.runtime_py.documents.document import document_of


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The fonts that pypdf has read."""
    found: list[object] = []
    encoding = pypdf_font.get_encoding

    def counted(font: object) -> object:
        found.append(font)
        return encoding(font)

    monkeypatch.setattr(pypdf_font, "get_encoding", counted)
    return found


def test_a_font_of_many_pages_is_read_once(read: list[object]) -> None:
    pages = [f"Page {number} of a long book." for number in range(50)]
    assert document_of("a.pdf", pdf(*pages)).text == "\n\n".join(pages)
    assert len(read) == 1


def test_of_many_fonts_the_newest_are_kept(
    read: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_fonts, "_MOST", 2)
    pdf_fonts.install()
    kept = _page.Font.newest
    fonts = [DictionaryObject({NameObject("/BaseFont"): NameObject("/X")}) for _ in range(5)]
    for font in fonts + fonts[3:] + fonts[:1]:
        _page.Font.from_font_resource(font)
    assert len(read) == len(fonts) + 1, "the two newest were kept, the first one wasn't"
    assert [one() for one in kept] == [fonts[4], fonts[0]]
