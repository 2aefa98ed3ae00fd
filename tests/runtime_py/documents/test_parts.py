"""Part by part: one bad chapter, page, entity or checksum loses only itself, and is told."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from tiny_documents import archive, epub, pdf, saved, word

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

Members = dict[str, str | bytes]
CHAPTERS = ("<p>first</p>", "<p>second</p>", "<p>third</p>")
OPF = "OEBPS/content.opf"
FIRST = "OEBPS/chapter 0.xhtml"


def book(change: Callable[[Members], Members | None]) -> bytes:
    """An EPUB of three chapters after a change to its members."""
    with zipfile.ZipFile(io.BytesIO(epub(*CHAPTERS))) as whole:
        members: Members = {name: whole.read(name) for name in whole.namelist()}
    return archive(change(members) or members)


def replaced(path: str, *pairs: tuple[str, str]) -> bytes:
    def change(members: Members) -> None:
        text = members[path]
        assert isinstance(text, bytes)
        for old, new in pairs:
            assert old.encode() in text
            text = text.replace(old.encode(), new.encode())
        members[path] = text

    return book(change)


def test_a_chapter_with_a_bad_checksum_is_left_out_and_told() -> None:
    whole = bytearray(_stored())
    whole[whole.find(b"<p>first")] ^= 1
    document = document_of("b.epub", bytes(whole))
    assert document.text == "second\n\nthird"
    assert document.notes[0].startswith(
        f"1 of 3 chapters of b.epub are left out ({FIRST}: it is da"
    )


def test_a_chapter_that_is_not_to_be_unpacked_is_left_out_and_told() -> None:
    whole = bytearray(epub(*CHAPTERS))
    at = whole.find(FIRST.encode()) + len(FIRST)
    whole[at : at + 4] = b"\xff\xff\xff\xff"
    document = document_of("b.epub", bytes(whole))
    assert document.text == "second\n\nthird"
    assert "1 of 3 chapters" in document.notes[0]


@pytest.mark.parametrize(
    "media",
    ["text/html", "Application/XHTML+XML", "application/xml", "text/x-oeb1-document", "", "x/y"],
)
def test_a_chapter_of_an_unexpected_media_type_is_read(media: str) -> None:
    item = f'media-type="{media}"'
    data = replaced(OPF, ('.xhtml" media-type="application/xhtml+xml"', f'.xhtml" {item}'))
    assert document_of("b.epub", data).text == "first\n\nsecond\n\nthird"


def test_what_a_spine_names_that_is_no_text_is_told() -> None:
    def change(members: Members) -> None:
        opf = members[OPF]
        assert isinstance(opf, bytes)
        members[OPF] = opf.replace(
            b'"chapter%200.xhtml" media-type="application/xhtml+xml"',
            b'"x.bin" media-type="application/pdf"',
        ).replace(b"<spine>", b'<spine><itemref idref="gone"/>')
        members["OEBPS/x.bin"] = b"%PDF-1.4"

    document = document_of("b.epub", book(change))
    assert document.text == "second\n\nthird"
    assert document.notes == (
        "2 of 4 chapters of b.epub are left out (gone: the book names it, but doesn't say where it "
        "is; OEBPS/x.bin: it is application/pdf, no text)",
    )


def test_a_chapter_that_a_spine_names_again_is_read_once() -> None:
    data = replaced(OPF, ('<itemref idref="c0"/>', '<itemref idref="c0"/>' * 200))
    document = document_of("b.epub", data)
    assert document.text == "first\n\nsecond\n\nthird"
    assert "read once" in document.notes[0]


def test_paths_are_compared_as_readers_do() -> None:
    data = replaced(OPF, ("chapter%200.xhtml", "../oebps/./Chapter%200.XHTML#start"))
    assert document_of("b.epub", data).text == "first\n\nsecond\n\nthird"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (OPF, b"<package><manifest>"),
        (OPF, b"nothing"),
        ("META-INF/container.xml", b"<no"),
        ("META-INF/container.xml", b""),
    ],
)
def test_a_damaged_package_loses_no_chapter(name: str, content: bytes) -> None:
    document = document_of("b.epub", book(lambda members: members | {name: content}))
    assert document.text.split() == ["first", "second", "third"] or "contents" in document.text


def test_an_entity_that_nobody_knows_loses_no_book() -> None:
    document = document_of("b.epub", replaced(OPF, ("A Book", "Tom & Jerry &foo; 2")))
    assert document.text == "first\n\nsecond\n\nthird"
    assert document.title.startswith("Tom")
    assert "damaged in OEBPS/content.opf" in document.notes[0]


def test_a_chapter_that_is_encrypted_is_left_out_and_told() -> None:
    form = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData '
        'xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="aes"/><CipherData>'
        '<CipherReference URI="OEBPS/chapter%200.xhtml"/></CipherData></EncryptedData></encryption>'
    )
    document = document_of("b.epub", epub(*CHAPTERS, encryption=form.encode()))
    assert document.text == "second\n\nthird"
    assert "it is encrypted (DRM)" in document.notes[0]


def test_a_book_without_a_readable_chapter_is_one_sentence() -> None:
    data = book(lambda m: {name: m[name] for name in m if "chapter" not in name})
    with pytest.raises(
        EdgeInfiniteError, match=r"b\.epub holds no chapter that can be read: 3 of 3"
    ):
        document_of("b.epub", data)


def test_a_page_of_a_pdf_that_is_damaged_is_left_out_and_told() -> None:
    whole = pdf("First.", "Second.", "Third.")
    at = whole.find(b"stream\n") + 7
    document = document_of("a.pdf", whole[:at] + b"x!" * 9 + whole[at + 18 :])
    assert document.text == "Second.\n\nThird."
    assert "1 of 3 pages of a.pdf" in document.notes[0]


def test_a_pdf_without_its_end_is_read() -> None:
    whole = pdf("First.", "Second.")
    assert document_of("a.pdf", whole[: whole.rfind(b"xref\n0")]).text == "First.\n\nSecond."


def test_a_word_file_with_a_damaged_part_is_read_and_told() -> None:
    file = word()
    file.add_heading("Head", 1)
    file.add_paragraph("Text.")
    with zipfile.ZipFile(io.BytesIO(saved(file))) as whole:
        members: Members = {name: whole.read(name) for name in whole.namelist()}
    main = members["word/document.xml"]
    assert isinstance(main, bytes)
    bad_styles = document_of("a.docx", archive(members | {"word/styles.xml": b"junk"}))
    assert "Text." in bad_styles.text
    assert "(word/styles.xml: it isn't XML)" in bad_styles.notes[0]
    bad = main.replace(b"Text.", b"Tom &amp; &foo; & Text.")
    document = document_of("a.docx", archive(members | {"word/document.xml": bad}))
    assert document.text.startswith("# Head\n\nTom & &foo;") and "Text." in document.text
    assert "damaged in word/document.xml" in document.notes[0]


def _stored() -> bytes:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(epub(*CHAPTERS))) as whole,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as copy,
    ):
        for name in whole.namelist():
            copy.writestr(name, whole.read(name))
    return file.getvalue()


@pytest.mark.parametrize(("words", "is_read"), [("<text>drawn</text>", True), ("<path/>", False)])
def test_a_drawing_in_the_spine_is_read_if_it_has_words(words: str, is_read: bool) -> None:
    def change(members: Members) -> None:
        opf = members[OPF]
        assert isinstance(opf, bytes)
        drawn = b'"a.svg" media-type="image/svg+xml"'
        members[OPF] = opf.replace(b'"chapter%200.xhtml" media-type="application/xhtml+xml"', drawn)
        members["OEBPS/a.svg"] = f'<svg xmlns="http://www.w3.org/2000/svg">{words}</svg>'

    document = document_of("b.epub", book(change))
    assert document.text == "drawn\n\n" * is_read + "second\n\nthird"
    assert bool(document.notes) != is_read


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("descriptors", [False, True])
def test_of_a_book_that_was_cut_the_whole_parts_are_read_and_that_is_said(
    method: int, descriptors: bool
) -> None:
    chapters = [f"<p>Chapter {i}. {'word ' * 500}</p>" for i in range(9)]
    members = {n: b for n, b in _members(epub(*chapters)).items() if "nav" not in n}
    file = _Unseekable() if descriptors and method == zipfile.ZIP_DEFLATED else io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as book:
        for name, content in members.items():
            book.writestr(name, content)
    data = file.getvalue()
    directory = data.find(b"PK\x01\x02")
    whole = document_of("a.epub", data[: directory + 20])
    assert [line[:10] for line in whole.text.split("\n\n")] == [f"Chapter {i}." for i in range(9)]
    assert "the end of a.epub is missing or damaged" in whole.notes[0]
    half = document_of("a.epub", data[: data.find(b"OEBPS/chapter 5")])
    assert half.text.count("Chapter") == 5
    assert "4 of 9 chapters of a.epub are left out" in half.notes[0]


def test_a_part_of_a_cut_archive_that_isnt_as_it_was_written_is_left_out_and_told() -> None:
    members = {
        n: b for n, b in _members(epub("<p>one</p>", "<p>two</p>")).items() if "nav" not in n
    }
    whole, streamed = io.BytesIO(), _Unseekable()
    for file in (whole, streamed):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as book:
            for name, content in members.items():
                book.writestr(name, content)
    cut = whole.getvalue()[: whole.getvalue().find(b"PK\x01\x02")]
    changed = document_of("a.epub", cut.replace(b"<p>two</p>", b"<p>2wo</p>"))
    assert changed.text == "one" and "1 of 2 chapters of a.epub are left out" in changed.notes[0]
    without_sizes = streamed.getvalue()
    with pytest.raises(EdgeInfiniteError):  # nothing says where a part ends; none is read as empty
        document_of("a.epub", without_sizes[: without_sizes.find(b"PK\x01\x02")])


def test_an_archive_that_was_cut_unpacks_no_more_than_any() -> None:
    book = archive(_members(epub("<p>x</p>")) | {"OEBPS/chapter 0.xhtml": b" " * 200_000_000})
    with pytest.raises(EdgeInfiniteError, match="unpacks to more than"):
        document_of("a.epub", book[:-60])


def test_entities_of_a_chapters_own_are_what_they_mean() -> None:
    head = b"<!DOCTYPE html [<!ENTITY me 'Myself'><!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
    body = b"<html><body><p>&me;&nbsp;&amp; &x; I</p></body></html>"
    members = _members(epub("<p>x</p>"))
    for page in (head + body, head + body.replace(b"&nbsp;", b" ")):
        document = document_of("a.epub", archive(members | {"OEBPS/chapter 0.xhtml": page}))
        assert document.text.startswith("Myself & ") and document.text.endswith(" I")
        assert "root" not in document.text


def _members(book: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(book)) as members:
        return {name: members.read(name) for name in members.namelist()}


class _Unseekable(io.BytesIO):
    """As a pipe: sizes stand behind the parts."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError


def test_parts_of_one_name_are_all_read_and_told() -> None:
    data = replaced(
        OPF,
        ('<item id="c1"', '<item id="c0"'),
        ('idref="c1"', 'idref="c0"'),
        ("</manifest>", '<item id="c2" href="c.jpg" media-type="image/jpeg"/></manifest>'),
    )
    document = document_of("b.epub", data)
    assert document.text == "first\n\nsecond\n\nthird"
    assert document.notes == ("the book has several parts of the name c0, c2",)
