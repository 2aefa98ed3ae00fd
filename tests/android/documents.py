"""Documents and their texts as Python reads them, for the app's readers."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path

from one_text import files
from tiny_documents import archive, epub, page_of
from word_documents import word_files

from edgeinfinite.runtime_py.documents.document import document_of

BODIES = (
    """<table><tr><th rowspan=2>Year</th><th colspan=2>Sales</th></tr><tr><td>North</td>
    <td>South</td></tr><tr><td>1990</td><td>1 | 2</td><td></td></tr></table><p>After it.</p>""",
    "<p>CO<sub>2</sub> at 20 m s<sup>-1</sup>, x<sup>n + 1</sup>, the 21<sup>st</sup></p>",
    "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>です, "
    "o\ufb03ce, co\u00adop, \u200bzero.</p>",
    "<p>Famille 👨\u200d👩\u200d👧, ❤\ufe0f\u200d🔥, "
    "🏴\U000e0067\U000e0062\U000e007f, می\u200cخواهم, क्\u200dष, "
    "a\u200cb\u200dc, \U000e0041x, \ufb14.</p>",
    "<center>One</center><aside>Two</aside><details><summary>Three</summary>four</details>five",
    "<p>A<br>b</p><ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><p>End&nbsp;.</p>",
    "<pre>  x = 1\n    y</pre><blockquote><p>Said.</p><p>More.</p></blockquote><hr><p>B.</p>",
    "<ol start=9><li><p>a</p><p>b</p></li><li>c<ul><li>d</li><li></li></ul></li></ol>",
    "<dl><dt>term</dt><dd>meaning</dd><dt>t</dt><dd><p>m</p><p>n</p></dd></dl><h2> </h2>",
    "<p>a <b>bold </b>word, <i>it</i>, <code>x`y</code>, <q>said</q> <s>gone</s><b></b>.</p>",
    "<p>n<a class=footnote-ref href='#1'><sup>1</sup></a>, 1897<sup><a href='#n'>12</a></sup></p>",
    "<table role=none><tr><td><p>One</p></td><td>Two</td></tr></table><span><div>x</div>y</span>",
    "<p>See <img src='a' alt='a red fox'/>, <a href='https://x.org/'><img alt='Home'/></a>, <img "
    "alt='x.png'/><img alt='y' role='none'/>.</p><svg><title>T</title><desc>D</desc><text x='1'>"
    "One <tspan>label</tspan></text><text><tspan x='0' y='1'>first</tspan><tspan x='0' y='2'>line"
    "</tspan></text></svg><p>after</p>",
    "<pre><div>a</div><div> b</div><code><p>c</p>d</code>\n<span>e</span>f</pre><p>after</p>",
    "<ol type=a start=26><li>a</li><li value=3>b</li></ol><ol type=I><li>c</li><li type=a>d"
    "</li></ol><ol reversed><li>e</li><li>f</li></ol><ol style='list-style-type: lower-roman' "
    "start=-1><li>g</li><li>h</li><li>i</li></ol><ol start=' 7x'><li>j</li></ol>",
    "<table><tr><td>x<ol type=a><li>y</li><li>z<ul><li>w</li></ul></li></ol></td></tr></table>"
    "<h2>H<ol><li>i</li></ol></h2><p>after</p>",
    "<p>one<button>two</button>three <select><option>four</option></select>five<textarea>six"
    "</textarea>seven <input value='7'/>eight <input type=checkbox checked><input type='radio'> "
    "<input type=hidden value=no> <object>nine</object>ten</p>",
    "<p>a</p><noscript><p>b</p></noscript><template><p>c</p></template><p>rest</p>",
    "<p>10<span style='vertical-align:super'><b>6</b></span>, word<a href='#fn1'>1</a>, the <a "
    "href='#c'>2</a> and c<a href='n.xhtml#x'>*</a> <a href='https://x.org/a(b)'>l</a> (<a "
    "href='https://x.org/c_(d)'>https://x.org/c_(d)</a>) word<a href='#s'>see</a></p>",
    "<p>y <span class=k><span><math><mi>x</mi></math></span><span aria-hidden=true>xx</span>"
    "</span> z<span aria-hidden=true>!</span></p><p>s<script type='math/tex'>x^2</script>t<span "
    "class=MathJax>q</span><script type='math/tex; mode=display'>q</script></p>",
    "<p><sup>1</sup>/<sub>2</sub> of 1<sup>3</sup>&#8260;<sub>4</sub>, x<sup>1</sup>/y, he left.<a "
    "href='#n'><sup>3</sup></a> 10<a href='n.xhtml#f'><sup>3</sup></a> a <a href='https://x.org'>b"
    "<sup>2</sup></a></p>",
    "<style>.a, span.b{vertical-align : SUPER} /* .c{} */ .c{vertical-align:-25%} .d{display:block}"
    "i.e{display: table-cell} .f{vertical-align:1px} .g .a2{vertical-align:sub} .h{vertical-align:"
    ".4em} .i{display:none}</style><p>10<span class='z a'>6</span> 10<span class='b'>7</span> H"
    "<span class='c'>2</span>O <span class='d'>x</span><span class='d'>y</span> z<i class='e'>w</i>"
    "v 1<span class='f'>2</span>3<span class='a2'>4</span>5<span class='h'>6</span> see<span "
    "class='i'>n</span> word<a class='a' href='#n1'>1</a></p>",
    "<table><tr><td><span style='display:none'>0007 </span>45</td><td>a<span hidden=''>b</span>c"
    "</td></tr></table><p>d<span hidden='until-found'>e</span>f<span style='display:none'><math>"
    "<mi>x</mi></math></span>g<span style='display:flex'>h</span></p><div hidden='hidden'>i</div>",
    "<p>in 19<span role='doc-pagebreak'>6</span>45 wo<span class='pagenum'>[Pg 7]</span>rd <span "
    "class='pagebreak'>A whole sentence of a chapter.</span> <img alt='T' src='t.png'/>he <img "
    "alt='U' src='u.png'/> end</p><div class='pagebreak'>9</div><p>after</p>",
    "<p><math><mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math>, <math><mfrac><mn>1</mn><mn>2"
    "</mn></mfrac><mi>m</mi><msup><mi>v</mi><mn>2</mn></msup></math>, <math><mn>3</mn><msup><mn>10"
    "</mn><mn>6</mn></msup></math>, <math><mmultiscripts><mi>C</mi><mn>6</mn><none></none>"
    "<mprescripts></mprescripts><none></none><mn>14</mn></mmultiscripts></math></p>",
    "<p>is <math><mn>5</mn></math> kg, <math><mfrac><mi>a</mi><mi>b</mi></mfrac></math></p>",
)
"""Of pages and chapters, in what every reader knows."""

TEXTS = (
    "It’s a “plain” text: Straße, Größe, 日本.\r\nSecond\u2028third\x0cfourth.",
    '(format t "~{~a~}" list) and Fig.~{abc} here~}\n',
    "Café 👩\u200d🚀 and می\u200cخواهم, a\u200bb, of\ufb01ce.\n",
)


def _encodings() -> list[tuple[str, bytes]]:
    """Pages by the names that encodings have there, and texts in seven bits or with halves."""
    pages = (
        *(("iso-8859-8-i", "iso8859-8", "שלום עולם"), ("x-sjis", "cp932", "日本語です")),
        *(("win-1251", "cp1251", "Привет"), ("x-cp1250", "cp1250", "Žluťoučký")),
        *(("windows-874", "cp874", "สวัสดี"), ("x-x-big5", "big5", "今天天氣很好")),
    )
    found = [
        ("a.html", f"<meta charset={label}><p>{text}</p>".encode(codec))
        for label, codec, text in pages
    ]
    for head in (
        "<script>var s = '<meta charset=\"windows-1251\">';</script>",
        '<meta name="description" content="on charset=windows-1251">',
        '<meta name=a content="<meta charset=koi8-r>"><meta charset="utf-8">',
    ):
        found.append(("a.html", f"<html><head>{head}</head><p>Straße</p>".encode()))
    halves = "Hallöchen \ud83d und \ud83d\ude00 so"
    xml = '<?xml version="1.0" encoding="koi8-r"?><p>Привет</p>'
    return [
        *found,
        ("a.txt", "これは日本語のテキストです。".encode("iso2022_jp")),
        ("a.txt", "第一行，己所不欲，勿施于人。中文 and English ~ mixed".encode("hz")),
        ("a.txt", halves.encode("utf-8", "surrogatepass")),
        ("a.txt", "😀 ü".encode("utf-16", "surrogatepass")[2:].decode("utf-16-le").encode()),
        ("a.fb2", xml.encode("koi8-r")),
    ]


def _members(book: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(book)) as old:
        return {name: old.read(name) for name in old.namelist()}


def _with_sheet() -> bytes:
    """A book whose chapter raises by its style sheet."""
    link = '<link rel="stylesheet" href="../Styles/a%20b.css"/></head>'
    chapter = page_of("<p>10<span class='up'>6</span> of H<span class='low'>2</span>O</p>")
    more = {
        "OEBPS/chapter 0.xhtml": chapter.replace("</head>", link),
        "Styles/a b.css": ".up{vertical-align:super}.low{vertical-align:sub}",
    }
    return archive(_members(epub("<p/>")) | more)


def _with_signs() -> bytes:
    """A book whose chapters' names have percent signs in the archive itself."""
    members = _members(epub("<p>One.</p>", "<p>Two.</p>"))
    return archive({name.replace(" ", "%20"): data for name, data in members.items()})


def _with_names() -> bytes:
    """A book whose chapters have one name, and that of a picture."""
    members = _members(epub("<p>One.</p>", "<p>Two.</p>", "<p>Three.</p>"))
    package = members["OEBPS/content.opf"]
    assert isinstance(package, bytes)
    picture = b'<item id="c2" href="c.jpg" media-type="image/jpeg"/></manifest>'
    package = package.replace(b'id="c1"', b'id="c0"').replace(b'idref="c1"', b'idref="c0"')
    return archive(members | {"OEBPS/content.opf": package.replace(b"</manifest>", picture)})


def write_documents(folder: Path) -> None:
    """`cases.json`: name, bytes in base64 and text of each; the first are one text."""
    cases = [*files().items(), *word_files()]
    cases += [("a.html", page_of(body).encode()) for body in BODIES]
    cases += [("a.epub", epub(body)) for body in BODIES]
    for text in TEXTS:
        encodings = ("utf-8", "utf-8-sig", "utf-16", "utf-32")
        cases += [("a.txt", text.encode(encoding)) for encoding in encodings]
    cases += _encodings()
    cases += [("a.epub", book()) for book in (_with_sheet, _with_signs, _with_names)]
    cases += [
        ("a.txt", b"%PDF-1.7 is the header.\n1 0 obj is an object, and so on.\n"),
        ("a.txt", b"<html><body>Hi</body></html>"),
        ("a.php", b"<!DOCTYPE html><html><body><p>Hi</p></body></html>"),
        ("a.txt", b"an old text\r\n\x1a"),
    ]
    cut = TEXTS[0].encode()
    russian = "Все счастливые семьи похожи. " * 9
    cases += [("a.txt", russian.encode(name)) for name in ("utf-16-le", "utf-16-be")]
    cases += [("a.txt", cut + b"\0" * 9)]
    cases += [
        ("a.txt", cut[:9] + b"\xff" + cut[9:] * 40),
        ("a.html", b"<p>" + cut[:30] * 9 + b"\xe2"),
    ]
    rows = [
        {
            "name": name,
            "data": base64.b64encode(data).decode(),
            "text": document_of(name, data).text,
        }
        for name, data in cases
    ]
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")
