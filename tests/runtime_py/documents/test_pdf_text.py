"""What stands on a PDF's pages: words whole, fields filled in, nothing that isn't letters."""

from __future__ import annotations

import zlib

import pytest
from tiny_pdf import FONT, page, pdf, stream

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import Document, document_of

COMPOSITE = (
    b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/%s/DescendantFonts[<</Type/Font"
    b"/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(%s)"
    b"/Supplement 0>>>>]%s>>"
)


def drawn(operators: bytes, objects: dict[int, bytes] | None = None) -> Document:
    """A page on which font 1 at 12 points draws this."""
    content = stream(b"BT /F1 12 Tf 72 700 Td %s ET" % operators)
    return document_of("a.pdf", pdf({4: content} | (objects or {})))


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("guaran-|tees hold", "guarantees\nhold"),
        ("it was dis-|placed.", "it was displaced."),
        ("a well|known man|a well-known one", "a well\nknown man\na well-known one"),
        ("a well-|known man|a well-known one", "a well-known\nman\na well-known one"),
        ("the co-|operation|cooperation", "the cooperation\ncooperation"),
        ("sea-|side air|sea and side", "sea-side\nair\nsea and side"),
        ("Anne-|Marie", "Anne-\nMarie"),
        ("1990-|1995", "1990-\n1995"),
        ("a -|b", "a -\nb"),
        ("one-|two-|three", "onetwo-\nthree"),
    ],
)
def test_words_that_lines_divide_are_whole(lines: str, text: str) -> None:
    shown = b" 0 -14 Td ".join(b"(%s) Tj" % line.encode() for line in lines.split("|"))
    assert drawn(shown).text == text


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        (b"200 0 Td (right) Tj -200 0 Td (left) Tj", ["right", "left"]),
        (b"1 0 0 1 300 500 Tm (right) Tj 1 0 0 1 72 500 Tm (left) Tj", ["right", "left"]),
        (b"(ker) Tj 17 0 Td (ning) Tj", ["kerning"]),
        (b"20 Tw (one two three) Tj 118 0 Td (four) Tj", ["one", "two", "three", "four"]),
        (b"2 Tw (a a a a a a a a t) Tj 100 0 Td (h) Tj", [*"aaaaaaaa", "th"]),
    ],
)
def test_pieces_are_words_by_their_places(operators: bytes, words: list[str]) -> None:
    assert drawn(operators).text.split() == words


def test_signs_without_letters_are_left_out_and_told() -> None:
    mute = {
        3: page(b"").replace(b"/F1 5 0 R", b"/F1 5 0 R/F2 6 0 R"),
        6: COMPOSITE % (b"Identity-H", b"Japan1", b""),
    }
    document = drawn(b"(Words) Tj /F2 12 Tf <034105120378> Tj", mute)
    assert document.text == "Words"
    assert "3 signs of a.pdf are left out" in document.notes[0]
    with pytest.raises(EdgeInfiniteError, match=r"don't say which letters .* --force-ocr"):
        drawn(b"/F2 12 Tf <034105120378> Tj", mute)


@pytest.mark.parametrize(
    ("encoding", "more"),
    [(b"UniJIS-UTF16-H", b""), (b"Identity-H", b"/ToUnicode 7 0 R")],
)
def test_composite_fonts_with_letters_are_read(encoding: bytes, more: bytes) -> None:
    mapped = stream(
        b"1 begincodespacerange <0000> <FFFF> endcodespacerange "
        b"1 beginbfrange <0000> <FFFE> <0000> endbfrange"
    )
    document = drawn(b"<00480069> Tj", {5: COMPOSITE % (encoding, b"Japan1", more), 7: mapped})
    assert (document.text, document.notes) == ("Hi", ())


def test_names_that_only_say_where_a_letter_is_are_left_out() -> None:
    named = FONT % b"/Encoding<</Type/Encoding/Differences[1/g12/g13/A]>>"
    document = drawn(b"(\\001\\002\\003 see /g99) Tj", {5: named})
    assert document.text == "A see /g99"
    assert "2 signs of a.pdf" in document.notes[0]


def test_letters_that_are_drawn_as_one_sign_are_letters() -> None:
    named = FONT % b"/Encoding<</Type/Encoding/Differences[1/fi/fl]>>"
    document = drawn(b"(The of\\001ce is \\001nal, the \\002oor not.) Tj", {5: named})
    assert (document.text, document.notes) == ("The office is final, the floor not.", ())


def widget(more: bytes) -> bytes:
    return b"<</Type/Annot/Subtype/Widget/Rect[0 0 9 9]%s>>" % more


@pytest.mark.parametrize(
    ("note", "line"),
    [
        (widget(b"/FT/Tx/T(name)/V(Alice)"), "name: Alice"),
        (widget(b"/FT/Tx/T(name)/TU(Your name:)/V(Alice)"), "Your name: Alice"),
        (widget(b"/FT/Tx/V(\\376\\377\\0A\\0\\344)"), "Aä"),
        (widget(b"/Parent<</FT/Ch/T(town)/V[(Rome)(Oslo)]>>"), "town: Rome, Oslo"),
        (widget(b"/FT/Btn/T(agree)/AS/Yes/V/Yes"), "agree: Yes"),
        (b"<</Type/Annot/Subtype/FreeText/Rect[0 0 9 9]/Contents(typed on it)>>", "typed on it"),
        (widget(b"/FT/Btn/T(agree)/AS/Off"), ""),
        (widget(b"/FT/Tx/T(name)/V()"), ""),
        (widget(b"/FT/Tx/T(name)"), ""),
        (widget(b"/FT/Tx/T(pin)/Ff 8192/V(1234)"), ""),
        (widget(b"/FT/Tx/T(name)/F 2/V(hidden)"), ""),
        (widget(b"/FT/Tx/T(name)/Parent 6 0 R"), ""),
        (b"<</Subtype/Text/Contents(a comment)>>", ""),
        (b"[6 0 R]", ""),
        (widget(b"/F 99 0 R/FT/Tx/T(name)/V(Alice)"), "name: Alice"),
        (widget(b"/FT[/Tx]/T 7/V<</A/B>>"), ""),
        (b"7", ""),
    ],
)
def test_fields_that_were_filled_in_are_read(note: bytes, line: str) -> None:
    text = drawn(
        b"(Words) Tj", {3: page(b"").replace(b"/Cont", b"/Annots[6 0 R]/Cont"), 6: note}
    ).text
    assert text == ("Words\n\n" + line).strip()


@pytest.mark.parametrize(
    ("root", "said"),
    [
        (b"/Names<</EmbeddedFiles<</Names[(a) 6 0 R]>>>>", "other files attached"),
        (b"/AcroForm<</Fields[]/XFA 6 0 R>>", "a form in XFA"),
    ],
)
def test_what_else_is_in_the_file_is_told(root: bytes, said: str) -> None:
    objects = {1: b"<</Type/Catalog/Pages 2 0 R%s>>" % root, 6: stream(b"<x/>")}
    document = drawn(b"(Words) Tj", objects)
    assert document.text == "Words"
    assert len(document.notes) == 1 and said in document.notes[0]


def test_pages_in_a_stream_of_objects_are_read() -> None:
    """As most programs write them since PDF 1.5, with a table in a stream, too."""
    inner = [
        (1, b"<</Type/Catalog/Pages 2 0 R>>"),
        (2, b"<</Type/Pages/Kids[3 0 R]/Count 1>>"),
        (3, page()),
        (5, FONT % b""),
    ]
    places, content = [], b""
    for number, data in inner:
        places.append(b"%d %d" % (number, len(content)))
        content += data + b" "
    head = b" ".join(places) + b" "
    packed = zlib.compress(head + content)
    data = b"%PDF-1.5\n"
    offsets = {}
    for number, body in (
        (4, stream(b"BT /F1 12 Tf 72 700 Td (Words) Tj ET")),
        (6, stream(packed, b"/Type/ObjStm/N 4/First %d/Filter/FlateDecode" % len(head))),
    ):
        offsets[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows = {0: (0, 0, 255), 7: (1, len(data), 0)}
    rows |= {number: (1, at, 0) for number, at in offsets.items()}
    rows |= {number: (2, 6, at) for at, (number, _) in enumerate(inner)}
    table = b"".join(
        kind.to_bytes(1, "big") + at.to_bytes(4, "big") + last.to_bytes(1, "big")
        for _, (kind, at, last) in sorted(rows.items())
    )
    start = len(data)
    data += b"7 0 obj\n%s\nendobj\n" % stream(table, b"/Type/XRef/Size 8/W[1 4 1]/Root 1 0 R")
    assert document_of("a.pdf", data + b"startxref\n%d\n%%%%EOF" % start).text == "Words"
