"""Text made of markup: nothing is glued together, nothing vanishes, nothing takes forever."""

from __future__ import annotations

import io
import time
import zipfile

import pytest
from tiny_documents import archive, epub, page_of

from edgeinfinite.runtime_py.documents.document import document_of


def text_of(html: str) -> str:
    return document_of("a.html", html.encode()).text


BLOCKS = (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure "
    "footer form header hgroup legend main menu p pre section summary h1 h2 h3 h4 h5 h6 li"
)


@pytest.mark.parametrize("tag", BLOCKS.split())
def test_blocks_beside_each_other_are_lines_of_their_own(tag: str) -> None:
    text = text_of(f"<div>zero<{tag}>One</{tag}><{tag}>Two</{tag}>three</div>")
    words = [line.strip(" #->`") for line in text.splitlines()]
    assert [word for word in words if word] == ["zero", "One", "Two", "three"]


@pytest.mark.parametrize("tag", ["span", "b", "i", "u", "small", "font", "a", "mark", "abbr"])
def test_inline_elements_do_not_cut_a_word(tag: str) -> None:
    assert text_of(f"<p>wo<{tag}>r</{tag}>d</p>").replace("*", "") == "word"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("10<sup>6</sup> cells", "10^6 cells"),
        ("10<sup>-3</sup> mol", "10^-3 mol"),
        ("10<sup>−3</sup> mol", "10^−3 mol"),
        ("CO<sub>2</sub>.", "CO_2."),
        ("In 1897<sup>12</sup> he", "In 1897^12 he"),
        ("x<sup>n + 1</sup>", "x^(n + 1)"),
        ("x<sub>i<sup>2</sup></sub>", "x_(i^2)"),
        ("the 21<sup>st</sup> of", "the 21st of"),
        ("In 1897<sup><a href='#n12'>12</a></sup> he", "In 1897[12] he"),
        ("In 1897<sup>[12]</sup> he", "In 1897[12] he"),
        ("In 1897<a epub:type='noteref' href='n.xhtml#n'>12</a> he", "In 1897[12] he"),
        ("In 1897<a role='doc-noteref' href='#n'>*</a> he", "In 1897[*] he"),
        ("10<span style='vertical-align: super'>6</span>", "10^6"),
    ],
)
def test_raised_and_lowered_signs_are_not_glued_on(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>です", "東京です"),
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>です", "漢字です"),
        ("<ruby><rb>漢</rb><rb>字</rb><rtc><rt>かん</rt></rtc></ruby>です", "漢字です"),
    ],
)
def test_of_ruby_the_words_stay_whole(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


@pytest.mark.parametrize(
    ("math", "text"),
    [
        ("<mn>5</mn>", "5"),
        ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E=mc^2"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac>", "(a+1)/b"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", "√(x+1)"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "x^(1/3)"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
        ("<mi>a</mi><mtext>if</mtext><mi>b</mi>", "a if b"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>", "[1, 2]"),
        (
            "<semantics><mi>x</mi><annotation encoding='application/x-tex'>\\bar x</annotation>"
            "</semantics>",
            "\\bar x",
        ),
        ("<mwhatever><mi>x</mi><mo>!</mo></mwhatever>", "x!"),
    ],
)
def test_formulas_are_text(math: str, text: str) -> None:
    assert text_of(f"<p>Is <math>{math}</math> so</p>") == f"Is {text} so"
    prefixed = math.replace("</", "</m:").replace("<m", "<m:m").replace("</m:m:", "</m:")
    assert text_of(f"<p>Is <m:math>{prefixed}</m:math> so</p>").startswith("Is ")


def test_what_nobody_sees_is_left_out_and_joiners_that_spell_stay() -> None:
    assert text_of("<p>Ge&shy;samt&shy;kon&shy;zept, ze&#8203;ro, \ufeffmark, a&#8288;b</p>") == (
        "Gesamtkonzept, zero, mark, ab"
    )
    for spelled in ("می\u200cخواهم", "क्\u200dष", "\U0001f468\u200d\U0001f469\u200d\U0001f467"):
        assert text_of(f"<p>{spelled}</p>") == spelled
    assert text_of("<p>Auf\u200clage, o\ufb03ce, \u202eevil\u202c</p>") == "Auflage, office, evil"


def test_spans_of_tables_keep_cells_below_their_headings() -> None:
    rows = "<tr><th rowspan=2>A<th colspan=2>B</tr><tr><td>b|1<td>b2</tr><tr><td>1<td>2<td>3</tr>"
    assert text_of(f"<table>{rows}</table>").splitlines() == [
        "| A | B |  |",
        "| --- | --- | --- |",
        "|  | b\\|1 | b2 |",
        "| 1 | 2 | 3 |",
    ]


def test_a_table_that_lays_a_page_out_is_its_contents() -> None:
    inner = "<table><tr><td>a<td>b</table>"
    html = f"<table><tr><td><h2>Head</h2><p>First.</p><td>{inner}</table>"
    assert text_of(html) == "## Head\n\nFirst.\n\n| a | b |\n| --- | --- |"


def test_links_to_other_places_stay_and_those_within_are_text() -> None:
    html = "<p>See <a href='https://a.org/b'>this</a>, <a href='#c'>that</a>, <a href='d'>it</a>."
    assert text_of(html) == "See [this](https://a.org/b), that, it."


def test_lists_quotations_and_code_keep_their_layout() -> None:
    html = (
        "<p>Text<ul><li>a<ul><li>b</ul><li><p>c</p><p>d</p></ul><ol start=3><li>e<li>f</ol>"
        "<blockquote><p>g</p><p>h<br>i</p></blockquote><pre>  j\n    k  \n</pre>"
    )
    assert text_of(html) == (
        "Text\n\n- a\n  - b\n- c\n\n  d\n\n3. e\n4. f\n\n> g\n>\n> h\n> i\n\n```\n  j\n    k\n```"
    )


def test_a_page_in_xml_keeps_its_entities_and_sections() -> None:
    page = (
        '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY who "Ada">]><html xmlns='
        '"http://www.w3.org/1999/xhtml"><head><title/></head><body><p>Hi &who; <![CDATA[a < b]]>'
        '</p><a id="x"/>next</body></html>'
    )
    assert text_of(page) == "Hi Ada a < b\n\nnext"


def test_a_page_that_is_no_right_xml_is_read_all_the_same() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
        "<body><p>Tom & Jerry &nbsp;&foo; <b>x</p><p>y</body></html>"
    )
    assert text_of(page).replace("*", "").split() == ["Tom", "&", "Jerry", "&foo;", "x", "y"]


N = 20_000
LONG = {
    "spaces in pre": b"<pre>" + b" " * 500_000 + b"x</pre>",
    "spaces": b"<p>a" + b" " * 500_000 + b"x",
    "line breaks": b"<p>a" + b" \n\t" * 200_000 + b"x",
    "hard spaces": b"<p>a" + b"&nbsp; " * 100_000 + b"x",
    "items": b"<ol>" + b"<li>x" * N,
    "superscripts": b"<p>" + b"<sup>x</sup>" * N,
    "scripts": b"<script></script>x" * N,
    "rows": b"<table><thead>" + b"<tr><td>x" * N,
    "columns": b"<table><tr>" + b'<td colspan="1000">x' * N,
    "spans": b"<table>" + b'<tr><td colspan="1000" rowspan="1000">x' * N,
    "lists": b"<ul><li>x" * 900,
    "quotations": b"<blockquote>" * 1900 + b"x<p>" * N,
    "marked": b"<b><i>" * 900 + b"x " * N,
    "spans inside": b"<span>" * 1900 + b"<p>x" * N,
    "comments": b"x" + b"<!--" * N,
    "brackets": b"x" + b"<" * 500_000,
    "entities": b"x" + b"&" * 500_000,
    "doctype": b"<?xml version='1.0'" + b"<" * 500_000 + b">x",
}


@pytest.mark.parametrize("kind", LONG)
def test_time_and_text_are_linear_in_the_page(kind: str) -> None:
    start = time.process_time()
    text = document_of("a.html", LONG[kind]).text
    assert time.process_time() - start < 5  # squares take minutes
    assert "x" in text and len(text) <= 100 * len(LONG[kind])


def test_a_page_nested_deeper_than_parsers_go_loses_no_word() -> None:
    assert "x" in text_of("<div>" * 1500 + "x")
    assert text_of("first<div>" * 3000 + "x").split() == ["first"] * 3000 + ["x"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('See <img src="a.png" alt="a red\n fox"> here', "See [a red fox] here"),
        ('<a href="https://x.org/"><img alt="Home page"></a>', "[Home page](https://x.org/)"),
        ('a<img alt="photo_1.JPG"><img alt=""><img><img alt="x" role="presentation">b', "ab"),
        ('<math><mi>x</mi></math><img alt="x" aria-hidden="true">', "x"),
    ],
)
def test_in_a_pictures_place_stands_its_alternative_text(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


def test_words_that_are_drawn_are_read_label_by_label() -> None:
    drawing = (
        "<svg><title>T</title><desc>D</desc><style>s{}</style><text x='1'>One <tspan>label</tspan>"
        "</text><g><text><tspan x='0' y='1'>first</tspan><tspan x='0' y='2'>line</tspan></text></g>"
        "<foreignObject><p>Words</p></foreignObject></svg>"
    )
    text = text_of(f"<p>before{drawing}after</p>")
    assert text.split() == ["before", "One", "label", "first", "line", "Words", "after"]


def test_lines_of_preformatted_text_that_are_elements_are_lines() -> None:
    page = "<pre><div>a</div><div> b</div><code><p>c</p>d</code>\n<span>e</span>f</pre>"
    assert text_of(page) == "```\na\n b\nc\nd\nef\n```"


@pytest.mark.parametrize(
    "page",
    [
        "<html><body><p>one</p></body></html><p>two</p>",
        "<p>one</p></html>two",
        "<html><body>one</body></html>\n<html><head><title>t</title></head><body>two</body></html>",
        "<table><tr><td>one</body></html><td>two</table>",
    ],
)
def test_a_page_is_read_on_after_its_stated_end(page: str) -> None:
    assert [word for word in text_of(page).split() if word.isalpha()] == ["one", "two"]


@pytest.mark.parametrize("tag", ["div", "font", "blockquote", "ul><li", "table><tr><td"])
def test_of_what_is_nested_too_deeply_the_text_is_read_and_that_is_said(tag: str) -> None:
    ends = "".join(f"</{name}>" for name in reversed(tag.split("><")))
    page = f"<p>one</p>{f'<{tag}>' * 9000}<!-- <p> -->two<script>no</script>{ends * 9000}<p>three"
    document = document_of("page.html", page.encode())
    assert [word for word in document.text.split() if word.isalpha()] == ["one", "two", "three"]
    assert document.notes == (
        "page.html is nested deeper than layouts go; of what is deeper only the text is read",
    )


@pytest.mark.parametrize(
    "inert",
    [
        "<noscript><iframe src=x></noscript>",
        "<noscript><!--</noscript>",
        "<noscript><div></noscript>",
        "<NOSCRIPT >x</NOSCRIPT\n>",
        "<template><table></template>",
        "<template><td>y</template>",
        "<template><div><template>a</template><p>b</template>",
        "<script>'<noscript>'</script>",
        "<!-- <template> <noscript> -->",
        "<noscript>",
        "<template>",
    ],
)
def test_what_is_held_in_reserve_takes_nothing_of_the_page_with_it(inert: str) -> None:
    assert text_of(f"<p>Before.</p>{inert}<p>The rest.</p>") == "Before.\n\nThe rest."


@pytest.mark.parametrize("tag", ["button", "select", "textarea", "object", "canvas"])
def test_boxes_within_a_line_are_no_part_of_the_words_beside_them(tag: str) -> None:
    assert text_of(f"<p>one<{tag}>two</{tag}>three</p>").split() == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<li><input type=checkbox checked> done<li><input type=checkbox>to do",
            "[x] done [ ] to do",
        ),
        ("Name:<input value=Ada>!", "Name: Ada !"),
        ("Name:<input type=hidden value=no><input type=password value=no>", "Name:"),
    ],
)
def test_fields_say_what_they_show(html: str, text: str) -> None:
    assert " ".join(text_of(html).replace("- ", "").split()) == text


def test_text_in_a_group_of_columns_is_read() -> None:
    assert text_of("<table><colgroup>lost<tr><td>x</table>").startswith("lost")


@pytest.mark.parametrize(
    ("start", "marks"),
    [
        ("<ol>", "1. 2. 3."),
        ("<ol type=a>", "a. b. c."),
        ("<ol type=A start=26>", "Z. AA. AB."),
        ("<ol type=i start=3>", "iii. iv. v."),
        ("<ol style='list-style-type: upper-roman'>", "I. II. III."),
        ("<ol style='list-style: lower-latin inside'>", "a. b. c."),
        ("<ol reversed>", "3. 2. 1."),
        ("<ol start=-1>", "-1. 0. 1."),
        ("<ol type=i start=4000>", "4000. 4001. 4002."),
        ("<ol type=x start=x>", "1. 2. 3."),
        ("<ul>", "- - -"),
    ],
)
def test_items_are_counted_as_browsers_count_them(start: str, marks: str) -> None:
    items = "<li>x</li>" * 3
    text = text_of(f"{start}{items}</{start[1:3]}>")
    assert text == "\n".join(f"{mark} x" for mark in marks.split())


def test_numbers_of_lists_in_cells_stay() -> None:
    text = text_of("<table><tr><td>x<ol type=a><li>y<li>z</ol></td></tr></table>")
    assert text.splitlines()[0] == "| x a. y b. z |"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("10<span style='vertical-align: super'><b>6</b></span>", "10^6"),
        ("word<a href='#fn1'>1</a> on", "word[1] on"),
        ("word<a href='notes.xhtml#n'>*</a>", "word[*]"),
        ("see <a href='#c2'>2</a>", "see 2"),
        ("word<a href='#c2'>more</a>", "wordmore"),
        ("<a href='https://x.org/a_(b)'>l</a>", "[l](https://x.org/a_%28b%29)"),
        ("<a href='https://x.org/a_(b)'>https://x.org/a_(b)</a>", "https://x.org/a_(b)"),
        ("<script type='math/tex'>x^2</script> m", "x^2 m"),
        ("<span class=MathJax>y</span><script type='math/tex'>x</script>", "y"),
        (
            "a <span class=katex><span><math><mi>x</mi></math></span>"
            "<span aria-hidden=true>xx</span></span> b",
            "a x b",
        ),
        ("no <i>formula</i> <span aria-hidden=true>here</span>", "no *formula* here"),
    ],
)
def test_marks_of_notes_addresses_and_formulas_stay_what_they_are(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<sup>1</sup>/<sub>2</sub> cup", "1/2 cup"),
        ("1<sup>1</sup>&frasl;<sub>2</sub> cup", "1 1⁄2 cup"),
        ("x<sup>1</sup>/y", "x^1/y"),
        ("he left.<a href='#n2'><sup>3</sup></a> And", "he left.[3] And"),
        ("10<a href='n.xhtml#f5'><sup>3</sup></a>", "10[3]"),
        ("a <a href='https://x.org'>b<sup>2</sup></a>", "a [b^2](https://x.org)"),
    ],
)
def test_fractions_and_marks_of_notes_are_no_powers(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


@pytest.mark.parametrize(
    ("rule", "raised"),
    [
        (".c { vertical-align: super }", "10^6"),
        ("p, span.c{font-size:60%;vertical-align : SUPER;}", "10^6"),
        ("/* .c */ .c{vertical-align:30%}", "10^6"),
        (".c{vertical-align:0.4em}", "10^6"),
        (".c{vertical-align:text-top} ", "10^6"),
        (".c{vertical-align: -25%}", "10_6"),
        (".c{vertical-align:sub}", "10_6"),
        (".c{vertical-align:1px}", "106"),
        (".c{vertical-align:baseline}", "106"),
        (".c .d{vertical-align:super}", "106"),
        (".c{vertical-align:super} .c{vertical-align:sub}", "10_6"),
        (".c{display:block}", "10\n\n6"),
        (".c{display: table-cell }", "10 6"),
        (".c{display:inline}", "106"),
        ("@media print{.c{vertical-align:super}}", "10^6"),
    ],
)
def test_a_class_raises_breaks_and_lowers_as_its_rule_says(rule: str, raised: str) -> None:
    head = f"<head><style>{rule}</style></head>"
    assert text_of(f"<html>{head}<body><p>10<span class='a c'>6</span></p></body></html>") == raised


def test_a_books_chapters_follow_its_style_sheets() -> None:
    chapter = page_of("<p>10<span class='up'>6</span> of H<span class='low'>2</span>O</p>")
    for href in ("../Styles/a%20b.css", "missing.css"):
        link = f'<link rel="stylesheet" type="text/css" href="{href}"/>'
        book = io.BytesIO(epub("<p/>"))
        members = {}
        with zipfile.ZipFile(book) as old:
            members = {name: old.read(name) for name in old.namelist()}
        members["OEBPS/chapter 0.xhtml"] = chapter.replace("</head>", f"{link}</head>").encode()
        members["Styles/a b.css"] = b".up{vertical-align:super}.low{vertical-align:sub}"
        text = document_of("a.epub", archive(members)).text
        assert text == ("10^6 of H_2O" if "Styles" in href else "106 of H2O")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<td><span style='display:none'>0007 </span>45</td>", "45"),
        ("a<span hidden>b</span>c", "ac"),
        ("a<span hidden='until-found'>b</span>c", "abc"),
        ("a<div style='display:none'>b</div>c", "a\n\nb\n\nc"),
        ("a<span style='display:none'><p>b</p></span>c", "a\n\nb\n\nc"),
        ("a<span style='display:none'><math><mi>x</mi></math></span>b", "axb"),
        (
            "a<span style='display:flex'>b</span><span style='display:list-item'>c</span>",
            "a\n\nb\n\nc",
        ),
    ],
)
def test_what_is_hidden_within_a_line_is_no_text(html: str, text: str) -> None:
    assert text_of(f"<div>{html}</div>") == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("in 19<span epub:type='pagebreak' id='p6'>6</span>45", "in 1945"),
        ("in 19<span role='doc-pagebreak'>6</span>45", "in 1945"),
        ("wo<span class='pagenum'>[Pg 7]</span>rd", "word"),
        (
            "<span class='pagebreak'>A whole sentence of a chapter.</span>",
            "A whole sentence of a chapter.",
        ),
        ("<img alt='T' src='t.png'/>he end", "The end"),
        ("<img alt='T' src='t.png'/> he", "[T] he"),
        (
            "a<epub:switch><epub:case><math><mi>x</mi></math></epub:case>"
            "<epub:default>y</epub:default></epub:switch>b",
            "axb",
        ),
        (
            "a<epub:switch><epub:case>z</epub:case><epub:default>y</epub:default></epub:switch>b",
            "ayb",
        ),
    ],
)
def test_pages_of_print_and_drawn_letters_cut_no_word(html: str, text: str) -> None:
    assert text_of(f"<p>{html}</p>") == text


@pytest.mark.parametrize(
    ("math", "text"),
    [
        ("<mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>", "2 1/2"),
        (
            "<mfrac><mn>1</mn><mn>2</mn></mfrac><mi>m</mi><msup><mi>v</mi><mn>2</mn></msup>",
            "1/2 mv^2",
        ),
        ("<msup><mi>x</mi><mi>n</mi></msup><mi>y</mi>", "x^n y"),
        ("<mn>3</mn><msup><mn>10</mn><mn>6</mn></msup>", "3 10^6"),
        ("<mn>3</mn><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mn>1</mn>", "3x^2+1"),
        ("<mn>1</mn><mn>000</mn>", "1000"),
        (
            "<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn></mmultiscripts>",
            "^14C_6",
        ),
    ],
)
def test_what_stands_beside_a_fraction_or_a_power_is_told_apart(math: str, text: str) -> None:
    assert text_of(f"<p><math>{math}</math></p>") == text


def test_meanings_without_end_tags_stand_beside_each_other() -> None:
    assert text_of("<dl><dt>T<dd>a<dd>b<dt>U<dd>c</dl>") == "T\n:   a\n:   b\nU\n:   c"
