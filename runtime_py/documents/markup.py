"""HTML to text: headings, lists and tables as Markdown, everything that isn't read left out."""

from __future__ import annotations

import warnings

from edgeinfinite.runtime_py.documents.parts import Extracted, one_line, reading, tidied

_UNREAD = ("script", "style", "noscript", "template", "svg", "math", "nav", "head")
_STRIPPED = ["a", "img"]
"""Of links the text stays; of pictures nothing."""


def read(name: str, data: bytes) -> Extracted:
    """See `document.read_document`."""
    with reading(name, "HTML"):
        return extracted(data)


def extracted(html: bytes | str) -> Extracted:
    """The text and the title of a page.

    Args:
        html: as bytes, the page's own statement on its encoding counts.

    Raises:
        Exception: of the libraries, see `parts.reading`.
    """
    import bs4
    from markdownify import MarkdownConverter

    with warnings.catch_warnings():
        # EPUB's pages are XHTML: as HTML they are read even if they aren't well-formed.
        warnings.simplefilter("ignore", bs4.XMLParsedAsHTMLWarning)
        page = bs4.BeautifulSoup(html, "lxml")
    title = one_line(page.title.get_text()) if page.title else ""
    for element in page.find_all(_UNREAD):
        element.decompose()
    converter = MarkdownConverter(
        heading_style="atx",
        bullets="-",
        strip=_STRIPPED,
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    return Extracted(tidied(converter.convert_soup(page)), title)
