"""The numbers that Word shows before paragraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from docx.oxml import parse_xml
from tiny_documents import saved, word

from edgeinfinite.runtime_py.documents.document import document_of

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def level(at: int, form: str, pattern: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
    )


def text_of(
    levels: str,
    *paragraphs: tuple[str, int] | str,
    nums: str = "",
    style: str = "",
    change: Callable[[Any], None] = lambda _: None,
) -> str:
    """A Word file's text: paragraphs of list 70 (or another `nums` has) or outside of lists.

    Args:
        levels: of the list.
        paragraphs: a list's id and the level, or a text.
        nums: further lists.
        style: of the paragraphs in lists.
        change: of the body at last.
    """
    document = word()
    numbering = document.part.numbering_part.element
    numbering.insert(
        0, parse_xml(f'<w:abstractNum {W} w:abstractNumId="70">{levels}</w:abstractNum>')
    )
    for num in ('<w:num w:numId="70"><w:abstractNumId w:val="70"/></w:num>', *nums.split("\n")):
        if num:
            numbering.append(parse_xml(num.replace("<w:num ", f"<w:num {W} ")))
    for one in paragraphs:
        paragraph = document.add_paragraph(one if isinstance(one, str) else "x")
        if isinstance(one, tuple):
            inner = f'<w:pStyle w:val="{style}"/>' if style else ""
            paragraph._p.insert(
                0,
                parse_xml(
                    f'<w:pPr {W}>{inner}<w:numPr><w:ilvl w:val="{one[1]}"/>'
                    f'<w:numId w:val="{one[0]}"/></w:numPr></w:pPr>'
                ),
            )
    change(document.element.body)
    return document_of("a.docx", saved(document)).text


CONTRACT = (
    level(0, "decimal", "%1.") + level(1, "lowerLetter", "(%2)") + level(2, "decimal", "%1.%2.%3")
)


@pytest.mark.parametrize(
    ("levels", "paragraphs", "text"),
    [
        (
            CONTRACT,
            [("70", 0), "between", ("70", 0)],
            "1. x\n\nbetween\n\n2. x",
        ),
        (
            CONTRACT,
            [("70", 0), ("70", 1), ("70", 1), ("70", 0), ("70", 1)],
            "1. x\n   (a) x\n   (b) x\n2. x\n   (a) x",
        ),
        (CONTRACT, [("70", 0), ("70", 1), ("70", 2)], "1. x\n   (a) x\n       1.a.1 x"),
        (
            level(0, "decimal", "%1.") + level(1, "decimal", "%1.%2"),
            [("70", 0), ("70", 1), "between", ("70", 1)],
            "1. x\n   1.1 x\n\nbetween\n\n- 1.2 x",
        ),
        (level(0, "upperRoman", "Article %1"), [("70", 0), ("70", 0)], "Article I x\nArticle II x"),
        (level(0, "decimalZero", "%1"), [("70", 0)], "01 x"),
        (level(0, "bullet", "o"), [("70", 0)], "- x"),
        (level(0, "none", ""), [("70", 0)], "- x"),
        (level(0, "decimal", "%1."), [("70", 7), ("71", 0)], "x\n\nx"),
    ],
)
def test_numbers_go_on_over_what_stands_between(
    levels: str, paragraphs: list[tuple[str, int] | str], text: str
) -> None:
    assert text_of(levels, *paragraphs) == text


def test_a_list_that_starts_again_does_so_once() -> None:
    again = (
        '<w:num w:numId="72"><w:abstractNumId w:val="70"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    )
    places = [("70", 0), ("72", 0), "and", ("72", 0), "and", ("70", 0)]
    text = text_of(level(0, "decimal", "%1."), *places, nums=again)
    assert [line for line in text.splitlines() if line.endswith("x")] == [
        "1. x",
        "5. x",
        "6. x",
        "7. x",
    ]


DELETED_END = (
    '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="70"/></w:numPr><w:rPr>'
    '<w:del w:id="1" w:author="a"/></w:rPr></w:pPr>'
)
LARGE = '<w:pPr><w:framePr w:dropCap="drop" w:lines="3"/></w:pPr>'


@pytest.mark.parametrize("before", [DELETED_END, LARGE])
def test_what_goes_on_in_the_next_paragraph_has_one_number(before: str) -> None:
    def change(body: Any) -> None:
        made = f"<w:p {W}>{before}<w:r><w:t>T</w:t></w:r></w:p>"
        body.insert(1, parse_xml(made))

    levels = level(0, "decimal", "%1.")
    assert text_of(levels, ("70", 0), ("70", 0), ("70", 0), change=change) == "1. x\n2. Tx\n3. x"


def test_a_box_that_is_written_in_two_ways_is_counted_once() -> None:
    item = '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="70"/></w:numPr></w:pPr>'
    box = f"<w:txbxContent>{item}<w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    both = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006'
        f'"><mc:Choice Requires="x"><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>'
        f'<v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>{box}</v:textbox></v:shape>'
        "</w:pict></mc:Fallback></mc:AlternateContent>"
    )

    def change(body: Any) -> None:
        body.insert(0, parse_xml(f"<w:p {W}><w:r><w:t>before</w:t></w:r><w:r>{both}</w:r></w:p>"))

    levels = level(0, "decimal", "%1.")
    assert text_of(levels, ("70", 0), change=change) == "before\n\n1. boxed\n2. x"


def test_headings_have_their_numbers() -> None:
    levels = level(0, "decimal", "%1") + level(1, "decimal", "%1.%2")
    assert text_of(levels, ("70", 0), ("70", 1), style="Heading1") == "# 1 x\n\n# 1.1 x"
