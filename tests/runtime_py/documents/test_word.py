"""Word files: what the library doesn't know isn't lost."""

from __future__ import annotations

import io
import time
from base64 import b64decode

import pytest
from docx.oxml import parse_xml
from tiny_documents import saved, word

from edgeinfinite.runtime_py.documents.document import document_of

NAMESPACES = " ".join(
    f'xmlns:{prefix}="http://schemas.openxmlformats.org/{rest}"'
    for prefix, rest in (
        ("w", "wordprocessingml/2006/main"),
        ("m", "officeDocument/2006/math"),
        ("r", "officeDocument/2006/relationships"),
        ("mc", "markup-compatibility/2006"),
    )
)


def text_of(inner: str) -> str:
    """The text of a Word file with this in its one paragraph."""
    document = word()
    document.element.body.insert(0, parse_xml(f"<w:p {NAMESPACES}>{inner}</w:p>"))
    return document_of("a.docx", saved(document)).text


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (math("5"), "5"),
        (
            f"{math('E=m')}<m:sSup><m:e>{math('c')}</m:e><m:sup>{math('2')}</m:sup></m:sSup>",
            "E=mc^2",
        ),
        (f"<m:f><m:num>{math('a+1')}</m:num><m:den>{math('b')}</m:den></m:f>", "(a+1)/b"),
        (f"<m:rad><m:deg/><m:e>{math('x')}</m:e></m:rad>", "√x"),
        (
            f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{math('i')}</m:sub>"
            f"<m:sup>{math('n')}</m:sup><m:e>{math('x')}</m:e></m:nary>",
            "∑_i^n x",
        ),
        (f"<m:d><m:e>{math('x')}</m:e></m:d>", "(x)"),
        (f"<m:anything><m:e>{math('x')}</m:e></m:anything>", "x"),
    ],
)
def test_formulas_are_text(formula: str, text: str) -> None:
    inner = f"{run('Is ')}<m:oMath>{formula}</m:oMath>{run(' so')}"
    assert text_of(inner) == f"Is {text} so"
    alone = f"<m:oMathPara><m:oMath>{formula}</m:oMath></m:oMathPara>"
    assert text_of(run("Is ") + alone) == f"Is {text}"


def test_raised_and_lowered_signs_are_not_glued_on() -> None:
    up = run("6", '<w:vertAlign w:val="superscript"/>')
    down = run("2", '<w:vertAlign w:val="subscript"/>')
    assert text_of(run("10") + up + run(" CO") + down) == "10^6 CO_2"


@pytest.mark.parametrize(
    "inner",
    [
        f'<w:fldSimple w:instr="DATE">{run("inside")}</w:fldSimple>',
        f'<w:hyperlink r:id="rId999">{run("inside")}</w:hyperlink>',
        f"<w:smartTag>{run('inside')}</w:smartTag>",
        f'<w:bdo w:val="ltr">{run("inside")}</w:bdo>',
        f"<w:ins>{run('inside')}</w:ins>",
        f"<w:ruby><w:rt>{run('reading')}</w:rt><w:rubyBase>{run('inside')}</w:rubyBase></w:ruby>",
        "<w:r><mc:AlternateContent><mc:Choice Requires='x'><w:t>inside</w:t></mc:Choice>"
        "</mc:AlternateContent></w:r>",
        f'{run("inside")}<w:r><w:footnoteReference w:id="77"/></w:r>',
        f'{run("inside")}<w:r><w:sym w:font="X" w:char="zz"/></w:r>',
        f"{run('in')}<w:r><w:softHyphen/></w:r>{run('si')}{run('de')}",
    ],
)
def test_what_stands_in_an_element_that_is_seldom_is_read(inner: str) -> None:
    assert text_of(run("a ") + inner) == "a inside"


def test_links_notes_and_titles_are_markdown() -> None:
    document = word()
    document.add_heading("The title", 0)
    paragraph = document.add_paragraph("See ")
    target = document.part.relate_to(
        "https://a.org/b",
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink",
        is_external=True,
    )
    link = f'<w:hyperlink r:id="{target}" {NAMESPACES}>{run("this")}</w:hyperlink>'
    paragraph._p.append(parse_xml(link))
    assert document_of("a.docx", saved(document)).text == (
        "# The title\n\nSee [this](https://a.org/b)"
    )


def test_a_table_with_a_strange_span_is_read() -> None:
    document = word()
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, "abcd", strict=True):
        cell.text = text
    properties = table._cells[0]._tc.get_or_add_tcPr()
    for span in ("x", "-1", "999999999"):
        wide = parse_xml(f'<w:gridSpan {NAMESPACES} w:val="{span}"/>')
        properties.append(wide)
        text = document_of("a.docx", saved(document)).text
        assert [word for word in text.split() if word.isalpha()] == ["a", "b", "c", "d"]
        assert len(text) < 200
        properties.remove(wide)


def test_a_box_of_text_that_is_drawn_is_read() -> None:
    box = f"<w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent>"
    drawn = f"<w:r><w:drawing>{box}</w:drawing></w:r>"
    assert text_of(run("before ") + drawn + run("after")) == "before after\n\nin a box"


DOT = "R0lGODdhAQABAIAAAP///////ywAAAAAAQABAAACAkQBADs="


def test_in_a_pictures_place_stands_what_its_author_says_of_it() -> None:
    document = word()
    run = document.add_paragraph("See ").add_run()
    run.add_picture(io.BytesIO(b64decode(DOT)))
    properties = run._r.find(".//{*}docPr")
    assert properties is not None
    properties.set("descr", "a red\nfox")
    document.add_paragraph("Nothing: ").add_run().add_picture(io.BytesIO(b64decode(DOT)))
    assert document_of("a.docx", saved(document)).text == "See [a red fox]\n\nNothing:"


def test_a_large_first_letter_is_joined_to_its_word() -> None:
    document = word()
    first = document.add_paragraph("T")
    first._p.get_or_add_pPr().append(
        parse_xml(
            '<w:framePr xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
            'w:dropCap="drop" w:lines="3"/>'
        )
    )
    document.add_paragraph("he sea was calm.")
    assert document_of("a.docx", saved(document)).text == "The sea was calm."


def legacy(data: str, name: str) -> str:
    """A field of an old form."""
    return (
        f"<w:r><w:fldChar w:fldCharType='begin'><w:ffData>{data}</w:ffData></w:fldChar></w:r>"
        f"<w:r><w:instrText>{name}</w:instrText></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r>"
    )


W14 = "xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml'"


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<w:r><w:t>one</w:t><w:br w:type='page'/><w:t>two</w:t></w:r>", "one\ntwo"),
        ("<w:r><w:t>one</w:t><w:br w:type='column'/><w:t>two</w:t></w:r>", "one\ntwo"),
        (
            f"<w:sdt><w:sdtPr><w14:checkbox {W14}><w14:checked w14:val='1'/></w14:checkbox>"
            f"</w:sdtPr><w:sdtContent>{run('☒')}</w:sdtContent></w:sdt>{run(' yes')}",
            "☒ yes",
        ),
        (legacy("<w:checkBox><w:checked/></w:checkBox>", "FORMCHECKBOX") + run("yes"), "[x] yes"),
        (legacy("<w:checkBox/>", "FORMCHECKBOX") + run("yes"), "[ ] yes"),
        (
            legacy(
                "<w:ddList><w:result w:val='1'/><w:listEntry w:val='A'/><w:listEntry w:val='B'/>"
                "</w:ddList>",
                "FORMDROPDOWN",
            )
            + run(" town"),
            "B town",
        ),
        (legacy("<w:ddList><w:result w:val='9'/></w:ddList>", "X") + run("town"), "town"),
        (run("seen") + run(" hidden", "<w:vanish/>"), "seen"),
        (run("seen") + run(" too", "<w:vanish w:val='0'/>"), "seen too"),
    ],
)
def test_what_a_form_shows_is_read_and_what_nobody_sees_is_not(inner: str, text: str) -> None:
    assert text_of(inner) == text


def test_a_mark_that_hides_no_text_hides_none() -> None:
    hidden = "<w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>"
    box = f"<w:txbxContent><w:p>{hidden}{run('boxed')}</w:p></w:txbxContent>"
    of_box = f'<v:textbox xmlns:v="urn:schemas-microsoft-com:vml">{box}</v:textbox>'
    drawn = f"<w:r><w:pict>{of_box}</w:pict></w:r>"
    was = "<w:rPrChange w:id='1' w:author='a'><w:rPr><w:vanish/></w:rPr></w:rPrChange>"
    assert text_of(run("seen ", was) + drawn).split() == ["seen", "boxed"]


def test_a_document_within_a_document_is_told() -> None:
    document = word()
    document.add_paragraph("Words.")
    document.element.body.append(parse_xml(f"<w:altChunk {NAMESPACES} r:id='rId99'/>"))
    found = document_of("a.docx", saved(document))
    assert found.text == "Words."
    assert "a part: it is another document within" in found.notes[0]


def with_styles(inner: str, styles: str) -> str:
    """The text of a Word file with one more part of its styles."""
    document = word()
    for style in styles.split("|"):
        document.styles.element.append(
            parse_xml(style.replace("<w:style", f"<w:style {NAMESPACES}", 1))
        )
    document.element.body.insert(0, parse_xml(f"<w:p {NAMESPACES}>{inner}</w:p>"))
    return document_of("a.docx", saved(document)).text


RAISED = (
    '<w:style w:type="character" w:styleId="Up"><w:name w:val="Up"/>'
    '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>|'
    '<w:style w:type="character" w:styleId="Up2"><w:name w:val="Up2"/>'
    '<w:basedOn w:val="Up"/></w:style>|'
    '<w:style w:type="character" w:styleId="No"><w:name w:val="No"/>'
    "<w:rPr><w:vanish/></w:rPr></w:style>"
)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ('<w:rStyle w:val="Up"/>', "10^6 cells"),
        ('<w:rStyle w:val="Up2"/>', "10^6 cells"),
        ('<w:rStyle w:val="Up"/><w:vertAlign w:val="baseline"/>', "106 cells"),
        ('<w:position w:val="8"/>', "10^6 cells"),
        ('<w:position w:val="-8"/>', "10_6 cells"),
        ('<w:position w:val="2"/>', "106 cells"),
        ('<w:rStyle w:val="No"/>', "10 cells"),
        ('<w:rStyle w:val="No"/><w:vanish w:val="0"/>', "106 cells"),
        ('<w:rStyle w:val="Loop"/>', "106 cells"),
    ],
)
def test_what_a_runs_style_says_holds_as_if_it_stood_there(properties: str, text: str) -> None:
    assert with_styles(run("10") + run("6", properties) + run(" cells"), RAISED) == text


def test_a_style_that_is_based_on_a_headings_makes_a_heading() -> None:
    own = (
        '<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/>'
        '<w:basedOn w:val="Heading2"/></w:style>'
    )
    assert with_styles(f'<w:pPr><w:pStyle w:val="Mine"/></w:pPr>{run("Own")}', own) == "## Own"


def test_signs_of_a_font_of_symbols_are_unicodes() -> None:
    symbol = '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>'
    assert text_of(run("\uf061\uf062 \uf0a3", symbol) + run(" x")) == "αβ ≤ x"
    assert text_of(run("ab", symbol) + run(" ab")) == "αβ ab"
    assert text_of(run("\uf0fc", '<w:rFonts w:ascii="Wingdings" w:hAnsi="Wingdings"/>')) == "✓"


def test_a_row_that_begins_later_keeps_its_columns() -> None:
    document = word()
    table = document.add_table(2, 2)
    for cell, said in zip((c for row in table.rows for c in row.cells), "abcd", strict=True):
        cell.text = said
    row = table.rows[1]._tr
    row.remove(row.tc_lst[0])
    row.insert(0, parse_xml(f'<w:trPr {NAMESPACES}><w:gridBefore w:val="1"/></w:trPr>'))
    assert document_of("a.docx", saved(document)).text == "| a | b |\n| --- | --- |\n|  | d |"


def test_formulas_do_not_join_numbers_that_stand_beside_each_other() -> None:
    half = f"<m:f><m:num>{math('1')}</m:num><m:den>{math('2')}</m:den></m:f>"
    assert text_of(f"<m:oMath>{math('2')}{half}{math('x')}</m:oMath>") == "2 1/2 x"
    bar = f"<m:bar><m:barPr><m:pos m:val='top'/></m:barPr><m:e>{math('x')}</m:e></m:bar>"
    assert text_of(f"<m:oMath>{bar}</m:oMath>") == "x\u0305"


def test_headers_and_footers_are_no_text_as_other_tools_have_it() -> None:
    document = word()
    document.add_paragraph("Body.")
    document.sections[0].header.paragraphs[0].text = "ACME Inc., page 3"
    document.sections[0].footer.paragraphs[0].text = "Confidential"
    assert document_of("a.docx", saved(document)).text == "Body."


def test_a_style_with_much_in_it_is_looked_through_once() -> None:
    much = "<w:rsid/>" * 20_000
    style = (
        f'<w:style w:type="character" w:styleId="Up">{much}<w:name w:val="Up"/>'
        f'<w:rPr>{much}<w:vertAlign w:val="superscript"/></w:rPr></w:style>'
    )
    start = time.perf_counter()
    text = with_styles(run("6", '<w:rStyle w:val="Up"/>') * 3_000, style)
    assert text == f"^{'6' * 3_000}" and time.perf_counter() - start < 10
