"""Small documents of every kind, made anew: nothing of a binary kind is committed."""

from __future__ import annotations

import io
import zipfile

import docx
import pypdf
from docx.document import Document as WordDocument
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>
<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
PAGE = "application/xhtml+xml"


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with a line of text a page; an empty one gets a picture, as a scanner makes it.

    Args:
        pages: their text.
        title: of the document.
    """
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setTitle(title)
    for page in pages:
        if page:
            canvas.drawString(72, 720, page)
        else:
            canvas.drawImage(ImageReader(_grey_picture()), 72, 72)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def encrypted(pdf_: bytes, user: str, owner: str) -> bytes:
    """A PDF with passwords, as today's programs encrypt it."""
    writer, file = pypdf.PdfWriter(io.BytesIO(pdf_)), io.BytesIO()
    writer.encrypt(user, owner, algorithm="AES-256")
    writer.write(file)
    return file.getvalue()


def epub(
    *chapters: str, title: str = "A Book", order: list[int] | None = None, **more: bytes
) -> bytes:
    """An EPUB 3 with a table of contents.

    Args:
        chapters: their bodies, XHTML.
        title: of the book.
        order: of the chapters in the spine; None: as they come.
        more: further members, by name without its folder META-INF.
    """
    items = [f"chapter {i}.xhtml" for i in range(len(chapters))]
    manifest = "".join(
        f'<item id="c{i}" href="{item.replace(" ", "%20")}" media-type="{PAGE}"/>'
        for i, item in enumerate(items)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in order or range(len(chapters)))
    package = f"""<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>
<manifest><item id="nav" href="nav.xhtml" properties="nav" media-type="{PAGE}"/>
{manifest}</manifest>
<spine><itemref idref="nav"/>{spine}</spine></package>"""
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/content.opf": package,
        "OEBPS/nav.xhtml": page_of("<nav><ol><li>The table of contents</li></ol></nav>"),
        **{f"META-INF/{name}.xml": data for name, data in more.items()},
    }
    members |= {f"OEBPS/{i}": page_of(body) for i, body in zip(items, chapters, strict=True)}
    return archive(members)


def page_of(body: str) -> str:
    """A page of XHTML."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head><title>not read</title></head><body>{body}</body></html>"
    )


def word(title: str = "A Report") -> WordDocument:
    """A Word document without content; `saved` makes its bytes."""
    document = docx.Document()
    document.core_properties.title = title
    return document


def saved(document: WordDocument) -> bytes:
    """The file of a Word document."""
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def archive(members: dict[str, str | bytes]) -> bytes:
    """A zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive_:
        for name, content in members.items():
            archive_.writestr(name, content)
    return file.getvalue()


def _grey_picture() -> io.BytesIO:
    """A picture of 2 × 2 grey pixels (PGM)."""
    return io.BytesIO(b"P5 2 2 255 " + bytes([200, 120, 60, 20]))
