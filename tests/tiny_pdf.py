"""PDFs written object by object, for what no library would write."""

from __future__ import annotations

WORDS = b"BT /F1 12 Tf 72 700 Td (Hello words) Tj ET"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%s>>"


def stream(data: bytes, more: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (more, len(data), data)


def page(more: bytes = b"") -> bytes:
    return b"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>%s>>/Contents 4 0 R>>" % more


def pages(kids: bytes, count: int = 1) -> bytes:
    return b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count)


def pdf(objects: dict[int, bytes], trailer: bytes = b"") -> bytes:
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: pages(b"3 0 R"),
        3: page(),
        4: stream(WORDS),
        5: FONT % b"",
    } | objects
    data, table = b"%PDF-1.7\n", b"0000000000 65535 f \n"
    for number, content in sorted(objects.items()):
        table += b"%010d 00000 n \n" % len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    end = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF"
    size = len(objects) + 1
    return data + b"xref\n0 %d\n%s" % (size, table) + end % (size, trailer, len(data))
