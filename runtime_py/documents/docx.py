"""Word (.docx): text, headings, lists, tables and notes, by way of HTML."""

from __future__ import annotations

import io

from edgeinfinite.runtime_py.documents import archive, markup
from edgeinfinite.runtime_py.documents.parts import Extracted, one_line, reading

_PROPERTIES = "docProps/core.xml"


def read(name: str, data: bytes) -> Extracted:
    """See `document.read_document`."""
    with archive.opened(name, data) as file, reading(name, "Word (.docx)"):
        import mammoth
        from bs4 import BeautifulSoup

        # Pictures aren't unpacked, and those elsewhere aren't looked for.
        no_pictures = mammoth.images.img_element(lambda _: {})
        page = mammoth.convert_to_html(io.BytesIO(data), convert_image=no_pictures).value
        title = None
        if _PROPERTIES in file.namelist():
            title = BeautifulSoup(file.read(_PROPERTIES), "xml").find("title")
        text = markup.extracted(page).text
    return Extracted(text, one_line(title.get_text()) if title else "")
