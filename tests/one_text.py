"""One text in every kind of document: headings, lists, a table, a link and a superscript."""

from __future__ import annotations

from docx.oxml import parse_xml
from tiny_documents import epub, page_of, saved, word

MARKDOWN = """# The sea

First words, see [the atlas](https://example.org/atlas).

## Fish

- herring
  - in brine
  - smoked
- cod

1. catch
2. eat

| Kind | Length |
| --- | --- |
| herring | 40 cm |
| cod | 120 cm |

Last words, 10^6 of them."""

HTML = """<h1>The sea</h1><p>First words, see <a href="https://example.org/atlas">the atlas</a>.</p>
<h2>Fish</h2><ul><li>herring<ul><li>in brine</li>
<li>smoked</li></ul></li><li>cod</li></ul><ol><li>catch</li><li>eat</li></ol>
<table><thead><tr><th>Kind</th><th>Length</th></tr></thead><tbody>
<tr><td>herring</td><td>40 cm</td></tr><tr><td>cod</td><td>120 cm</td></tr></tbody></table>
<p>Last words, 10<sup>6</sup> of them.</p>"""


def files() -> dict[str, bytes]:
    """The text by names of files. Of a PDF only the words are the same."""
    return {
        "a.txt": MARKDOWN.encode(),
        "a.md": MARKDOWN.encode("utf-16"),
        "a.html": page_of(HTML).encode(),
        "a.epub": epub(HTML),
        "a.docx": _as_word(),
    }


def _as_word() -> bytes:
    document = word()
    document.add_heading("The sea", 1)
    paragraph = document.add_paragraph("First words, see ")
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    target = document.part.relate_to("https://example.org/atlas", f"{kind}/hyperlink", True)
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    paragraph._p.append(
        parse_xml(
            f'<w:hyperlink {space} xmlns:r="{kind}" r:id="{target}"><w:r><w:t>the atlas</w:t>'
            "</w:r></w:hyperlink>"
        )
    )
    paragraph.add_run(".")
    document.add_heading("Fish", 2)
    for style, words in (
        ("List Bullet", ("herring",)),
        ("List Bullet 2", ("in brine", "smoked")),
        ("List Bullet", ("cod",)),
        ("List Number", ("catch", "eat")),
    ):
        for item in words:
            document.add_paragraph(item, style=style)
    table = document.add_table(rows=3, cols=2)
    words = ("Kind", "Length", "herring", "40 cm", "cod", "120 cm")
    for cell, text in zip(table._cells, words, strict=True):
        cell.text = text
    last = document.add_paragraph("Last words, 10")
    last.add_run("6").font.superscript = True
    last.add_run(" of them.")
    return saved(document)
