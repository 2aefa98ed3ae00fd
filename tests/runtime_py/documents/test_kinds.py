"""What a document is, by its format's own rules; the suffix where both fit."""

from __future__ import annotations

import io
import zipfile

import pytest
from tiny_documents import archive, epub, pdf, saved, word

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

TRANSITIONAL = "http://schemas.openxmlformats.org"
STRICT = "http://purl.oclc.org/ooxml"


def members_of(data: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def word_file() -> bytes:
    document = word("T")
    document.add_heading("Head", 1)
    document.add_paragraph("Hello from the cloud.")
    return saved(document)


@pytest.mark.parametrize("main", ["word/document2.xml", "word/Document.xml", "doc/main.xml"])
def test_a_word_file_is_known_by_its_relationships(main: str) -> None:
    folder, _, base = main.rpartition("/")
    moved: dict[str, str | bytes] = {}
    for name, data in members_of(word_file()).items():
        assert isinstance(data, bytes)
        if name in ("[Content_Types].xml", "_rels/.rels"):
            data = data.replace(b"word/", f"{folder}/".encode())
            data = data.replace(b"/document.xml", f"/{base}".encode())
        name = name.replace("word/", f"{folder}/").replace("/document.xml", f"/{base}")
        moved[name] = data
    document = document_of("cloud.zip", archive(moved))
    assert (document.kind, document.title) == ("docx", "T")
    assert document.text == "# Head\n\nHello from the cloud."


def test_a_word_file_of_the_strict_format_is_read() -> None:
    strict: dict[str, str | bytes] = {}
    for name, data in members_of(word_file()).items():
        assert isinstance(data, bytes)
        for old, new in (
            ("/wordprocessingml/2006/main", "/wordprocessingml/main"),
            ("/officeDocument/2006/relationships", "/officeDocument/relationships"),
        ):
            data = data.replace(f"{TRANSITIONAL}{old}".encode(), f"{STRICT}{new}".encode())
        strict[name] = data
    assert document_of("a.docx", archive(strict)).text == "# Head\n\nHello from the cloud."


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("spreadsheetml.sheet", "an Excel workbook"),
        ("presentationml.presentation", "a PowerPoint presentation"),
    ],
)
def test_another_office_file_is_refused_by_its_name(kind: str, said: str) -> None:
    whole = members_of(word_file())
    types = whole["[Content_Types].xml"]
    assert isinstance(types, bytes)
    types = types.replace(b"wordprocessingml.document", kind.encode())
    with pytest.raises(EdgeInfiniteError, match=f"is {said}, which isn't read"):
        document_of("a.docx", archive(whole | {"[Content_Types].xml": types}))


def test_files_that_are_no_documents_are_refused_by_their_names() -> None:
    odt = archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<x/>"})
    for name, data, said in (
        ("a.odt", odt, "an OpenDocument file"),
        ("a.rtf", b"{\\rtf1 x}", "is RTF"),
    ):
        with pytest.raises(EdgeInfiniteError, match=said):
            document_of(name, data)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "A PDF begins with %PDF-1.7, it says."),
        ("a.md", "%PDF-1.7 is how a PDF begins; 1 0 obj is an object."[:34]),
        ("a.txt", "%PDF-1.7 is how a PDF begins."),
        ("a", "Notes:\n%PDF-1.7\n1 0 obj comes next.\n"),
        ("PK.txt", "PK is a name."),
        ("a.txt", "<html> is how a page begins."),
    ],
)
def test_a_text_that_speaks_of_another_kind_is_a_text(name: str, text: str) -> None:
    document = document_of(name, text.encode())
    assert (document.kind in ("txt", "md"), document.text) == (True, text)


def test_a_pdf_is_known_by_its_contents_also_after_what_a_program_put_before() -> None:
    whole = pdf("Text.")
    assert document_of("renamed.txt", whole).kind == "pdf"
    assert document_of("a.pdf", b"HTTP/1.1 200 OK\r\n\r\n" + whole).text == "Text."
    assert document_of("download", b"junk\n" + whole).text == "Text."


def test_a_page_under_a_documents_name_is_a_page() -> None:
    page = b"<!DOCTYPE html><html><body><p>Please log in.</p></body></html>"
    for name in ("a.pdf", "a.docx", "a.epub", "a"):
        assert document_of(name, page).text == "Please log in."


def test_the_suffix_decides_where_an_archive_is_two_documents() -> None:
    both = archive(members_of(word_file()) | members_of(epub("<p>chapter</p>")))
    assert document_of("a.epub", both).text == "chapter"
    assert document_of("a.docx", both).text == "# Head\n\nHello from the cloud."


def test_a_text_that_begins_as_a_pdf_does_and_goes_on_in_words_is_a_text() -> None:
    text = "%PDF-1.7 is the header.\n1 0 obj is an object, and startxref stands at the end.\n"
    assert document_of("notes.txt", text.encode()).text == text


@pytest.mark.parametrize("name", ["a.doc", "a.php", "a.aspx", "page"])
def test_a_page_under_another_name_is_a_page(name: str) -> None:
    assert document_of(name, b"<!DOCTYPE html><html><body><p>Hi</p></body></html>").text == "Hi"
    page = b"<html><body>Hi</body></html>"
    assert document_of("a.txt", page).text == page.decode()


def test_a_chapter_whose_name_has_a_percent_sign_is_found() -> None:
    members = {}
    with zipfile.ZipFile(io.BytesIO(epub("<p>One.</p>", "<p>Two.</p>"))) as old:
        members = {name.replace(" ", "%20"): old.read(name) for name in old.namelist()}
    document = document_of("a.epub", archive(members))
    assert (document.text, document.notes) == ("One.\n\nTwo.", ())
