"""PDFs made to break readers: each is read, or ends in one line, at once."""

from __future__ import annotations

import time
import zlib

import pytest
from tiny_pdf import FONT, WORDS, page, pages, pdf, stream

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import budget
from edgeinfinite.runtime_py.documents.document import document_of

FORM = (
    b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>/Font<</F1 5 0 R>>>>"
)

READ = {
    "a page count of 2,000,000,000": {2: pages(b"3 0 R", 2_000_000_000)},
    "a negative page count": {2: pages(b"3 0 R", -5)},
    "a form that draws itself": {
        3: page(b"/XObject<</X 6 0 R>>"),
        4: stream(WORDS + b" /X Do"),
        6: stream(b"/X Do", FORM),
    },
    "a picture in JBIG2 that is junk": {
        3: page(b"/XObject<</X 6 0 R>>"),
        4: stream(WORDS + b" /X Do"),
        6: stream(b"junk", b"/Type/XObject/Subtype/Image/Width 9/Height 9/Filter/JBIG2Decode"),
    },
    "an attachment among names that loop": {
        1: b"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles 8 0 R>>>>",
        8: b"<</Names[(a) 6 0 R]/Kids[8 0 R]>>",
        6: b"<</Type/Filespec/EF<</F 7 0 R>>>>",
        7: stream(b"SECRET"),
    },
    "arrays in an object that nobody uses": {6: b"[" * 50_000 + b"]" * 50_000},
}

REFUSED = {
    "a page that refers to itself": {3: b"3 0 R"},
    "contents in themselves": {4: b"[4 0 R 4 0 R]"},
    "a length that refers to itself": {4: b"<</Length 4 0 R>>stream\nx\nendstream"},
    "a stream that unpacks to 200 MB": {
        4: stream(zlib.compress(b" " * 200_000_000), b"/Filter/FlateDecode")
    },
    "10,000 filters": {4: stream(WORDS, b"/Filter[%s]" % (b"/ASCIIHexDecode" * 10_000))},
    "contents in JBIG2": {4: stream(b"junk", b"/Filter/JBIG2Decode")},
    "arrays in arrays": {4: stream(b"[" * 100_000 + WORDS)},
    "a character map of 4,000,000,000 characters": {
        5: FONT % b"/ToUnicode 6 0 R",
        6: stream(b"1 beginbfrange <0000> <FFFFFFFF> <0041> endbfrange"),
    },
    "a character that is 10,000 characters": {
        4: stream(b"BT /F1 12 Tf (%s) Tj ET" % (b"H" * 500_000)),
        5: FONT % b"/ToUnicode 6 0 R",
        6: stream(b"1 beginbfchar <48> <%s> endbfchar" % (b"0041" * 10_000)),
    },
}


@pytest.mark.parametrize("name", READ)
def test_what_an_odd_pdf_says_is_read(name: str) -> None:
    text = document_of("a.pdf", pdf(READ[name])).text
    assert text.split("\n")[0] == "Hello words"
    assert "SECRET" not in text


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_pdf_ends_in_one_line(name: str) -> None:
    start = time.process_time()
    with pytest.raises(EdgeInfiniteError) as refused:
        document_of("a.pdf", pdf(REFUSED[name]))
    assert "a.pdf" in str(refused.value) and "\n" not in str(refused.value)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("cipher", [b"Standard/V 5/R 6/Length 2000000000/O(a)/U(b)/P -1", b"Foo"])
def test_an_encryption_that_nobody_can_open_is_one_line(cipher: bytes) -> None:
    data = pdf({}, b"/Encrypt<</Filter/%s>>/ID[(a)(b)]" % cipher)
    with pytest.raises(EdgeInfiniteError, match="encrypt"):
        document_of("a.pdf", data)


@pytest.mark.parametrize(
    "tree",
    [
        {2: pages(b"3 0 R 2 0 R", 2)},
        {2: pages(b"6 0 R"), **{at: pages(b"%d 0 R" % (at + 1)) for at in range(6, 1000)}},
    ],
)
def test_pages_in_a_tree_without_an_end_are_read_and_that_is_said(tree: dict[int, bytes]) -> None:
    document = document_of("a.pdf", pdf(tree))
    assert document.text == "Hello words"
    assert len(document.notes) == 1 and "order of the pages is damaged" in document.notes[0]


def _doubling() -> dict[int, bytes]:
    """Forms of which each draws the next one twice, down to the words."""
    forms = {
        number: stream(b"/X Do /X Do", FORM.replace(b"6 0 R", b"%d 0 R" % (number + 1)))
        for number in range(6, 26)
    }
    drawn = {3: page(b"/XObject<</X 6 0 R>>"), 4: stream(WORDS + b" /X Do")}
    return drawn | forms | {26: stream(WORDS, FORM)}


def test_what_the_library_leaves_out_of_a_page_is_told() -> None:
    read = document_of("a.pdf", pdf(_doubling()))
    assert read.text.startswith("Hello words")
    assert "thousands of times; not all of them are read" in " ".join(read.notes)


def test_a_budget_that_ends_within_a_form_ends_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "MOST_CHARACTERS", 1_000)
    with pytest.raises(EdgeInfiniteError, match="becomes a text of more than"):
        document_of("a.pdf", pdf(_doubling()))
