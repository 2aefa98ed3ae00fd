"""Word (.docx): text, headings, lists, tables, formulas and notes, by way of HTML."""

from __future__ import annotations

import io
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents import markup, opc, word_numbers
from edgeinfinite.runtime_py.documents.archive import Archive
from edgeinfinite.runtime_py.documents.budget import Budget, TooMuch
from edgeinfinite.runtime_py.documents.clean import tidied
from edgeinfinite.runtime_py.documents.parts import Extracted, Skipped, one_line, reading
from edgeinfinite.runtime_py.documents.word_parts import main_tree, paragraphs, plain_package

_STYLES = "\n".join(
    (
        "p[style-name='Title'] => h1:fresh",
        "p[style-name='Subtitle'] => h2:fresh",
        *(
            f"p[style-name='List {kind} {level}'] => "
            f"{'ul|ol > li > ' * (level - 1)}{tag} > li:fresh"
            for kind, tag in (("Bullet", "ul"), ("Number", "ol"))
            for level in range(2, 6)
        ),
    )
)
"""Word's own styles whose numbering doesn't tell their level."""

_BACK = "\u2191"
"""mammoth's link from a note to its place."""


def read(name: str, data: bytes, budget: Budget) -> Extracted:
    """See `document.read_document`."""
    archive = Archive(name, data, budget)
    with reading(name, "Word (.docx)"):
        import mammoth

        main = main_tree(archive)
        skipped = Skipped(name, "parts")
        notes: tuple[str, ...] = ()
        plain = paragraphs(main)
        package = plain_package(archive, main, skipped)
        try:
            # Pictures aren't unpacked, and those elsewhere aren't looked for.
            no_pictures = mammoth.images.img_element(lambda _: {})
            page = mammoth.convert_to_html(
                io.BytesIO(package), convert_image=no_pictures, style_map=_STYLES
            ).value
            page = word_numbers.shown(page.replace(f">{_BACK}</a>", "></a>"))
            text = markup.of_text(page, budget).text
        except (TooMuch, MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:  # what mammoth raises over a form that it doesn't know
            budget.spend(len(plain))
            text = tidied(plain)
            reason = one_line(str(error)) or type(error).__name__
            notes = (f"the layout of {name} can't be read ({reason}); its paragraphs are",)
        title = _title(archive)
    return Extracted(text, title, (*notes, *archive.notes(), *skipped.notes(len(archive.paths))))


def _title(archive: Archive) -> str:
    links = opc.relationships(archive, opc.ROOT)
    path = next((one.target for one in links if one.kind == "core-properties"), "")
    try:
        root: Any = archive.xml(path or "docProps/core.xml")
    except TooMuch:
        raise
    except (KeyError, ValueError, EdgeInfiniteError):
        return ""
    found = root.find("{http://purl.org/dc/elements/1.1/}title")
    return "" if found is None else one_line("".join(found.itertext()))
