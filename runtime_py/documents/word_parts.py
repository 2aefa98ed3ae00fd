"""A Word file's parts, mended and made plain before the library reads them.

mammoth knows one name for each part, one failure loses all, and what it doesn't know vanishes. So
it gets a small package anew: parts found by their relationships, XML mended, formulas as text.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import Any
from xml.sax.saxutils import quoteattr

from edgeinfinite.runtime_py.documents import eq_fields, opc, word_numbers
from edgeinfinite.runtime_py.documents.archive import Archive
from edgeinfinite.runtime_py.documents.formulas import local_name, of_word
from edgeinfinite.runtime_py.documents.parts import Skipped, going_on
from edgeinfinite.runtime_py.documents.tables import span
from edgeinfinite.runtime_py.documents.word_styles import Styles

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_PARTS = ("footnotes", "endnotes", "numbering", "styles")
_MAIN = "word/document.xml"
_TRANSPARENT = "smartTag"
"""An element that mammoth reads through."""

_READ_THROUGH = ("fldSimple", "bdo", "dir", "ruby", "rubyBase", "customXmlInsRangeStart")
_DROPPED = (
    "checkbox",  # a control's; the sign that shows its state is text
    *("rt", "rubyPr", "commentReference", "pic", "blip", "imagedata", "rPrChange", "pPrChange"),
    *("sectPrChange", "tblPrChange", "tcPrChange", "trPrChange", "tblGridChange"),
)
_MOST_SKIPPED = 20
_OFF = ("0", "false", "off")
_RENAMED = {"cr": "br", "ptab": "tab", "t": "t"}


def main_tree(archive: Archive) -> Any:
    """The root of the document's main part.

    Raises:
        KeyError: there is none.
        ValueError: it is damaged.
    """
    path = opc.main_part(archive)
    if path is None:
        raise KeyError("it has no main part")
    return archive.xml(path)


def plain_package(archive: Archive, main: Any, skipped: Skipped) -> bytes:
    """A Word file that mammoth reads.

    Args:
        archive: the file's parts.
        main: `main_tree`, which is changed.
        skipped: gets the parts that can't be read.
    """
    source = opc.main_part(archive) or _MAIN
    links = opc.relationships(archive, source)
    trees: dict[str, Any] = {"document": main}
    sources = {"document": source}
    for kind in _PARTS:
        path = next((one.target for one in links if one.kind == kind and not one.is_external), "")
        path = path or posixpath.join(posixpath.dirname(source), f"{kind}.xml")
        if path in archive:
            with going_on(skipped, path):
                trees[kind] = archive.xml(path)
                sources[kind] = path
    for chunk in main.iter("{*}altChunk"):
        target = {one.id: one.target for one in links}.get(_value(chunk, "id") or "", "a part")
        skipped.add(target, "it is another document within")
    styles = Styles(trees.get("styles"))
    notes = {kind: _note_ids(trees.get(kind)) for kind in ("footnotes", "endnotes")}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("_rels/.rels", _relationships({"rId1": (_MAIN, "officeDocument", False)}))
        for kind, tree in trees.items():
            own = opc.relationships(archive, sources[kind])
            known = {one.id: one.target for one in own if one.kind == "hyperlink"}
            if kind in ("document", "footnotes", "endnotes"):
                styles.write_into(tree)
                make_plain(tree, set(known), notes)
                if kind == "document":  # before styles lose what numbers need
                    word_numbers.number(tree, trees.get("numbering"), trees.get("styles"))
            elif kind == "styles":
                _leave_names(tree, styles)
            package.writestr(f"word/{kind}.xml", _written(tree))
            targets = {key: (target, "hyperlink", True) for key, target in known.items()}
            if kind == "document":
                targets |= {
                    f"part-{other}": (f"{other}.xml", other, False)
                    for other in trees
                    if other != "document"
                }
            package.writestr(f"word/_rels/{kind}.xml.rels", _relationships(targets))
    return file.getvalue()


def make_plain(root: Any, links: set[str], notes: dict[str, set[str]]) -> None:
    """Changes a part's tree to what mammoth reads whole.

    Args:
        root: of the part.
        links: ids of the relationships that lead to addresses.
        notes: ids of the footnotes and endnotes that there are.
    """
    eq_fields.write_out(root)
    for element in list(root.iter()):
        tag = local_name(element)
        if tag in ("oMath", "oMathPara"):
            if element.getparent() is not None and not _is_in_formula(element):
                _replace_formula(element)
        elif tag == "framePr" and _value(element, "dropCap") in ("drop", "margin"):
            _join_initial(element)
        elif tag == "drawing":
            _describe(element)
            _put_beside(element)
        elif tag == "ddList":
            _choose_entry(element)
        elif tag == "vanish" and _value(element) not in _OFF:
            _hide(element)
        elif tag == "br" and _value(element, "type") in ("page", "column"):
            element.attrib.clear()  # mammoth makes nothing of it, which joins words
        elif tag in _DROPPED and element.getparent() is not None:
            _remove(element)
        elif tag in _READ_THROUGH:
            element.tag = _named(element, _TRANSPARENT)
        elif tag in _RENAMED:
            element.tag = _named(element, _RENAMED[tag])
        elif tag == "AlternateContent":
            _choose(element)
        elif tag == "hyperlink":
            for key in [key for key in element.attrib if key.endswith("}id")]:
                if element.get(key) not in links:
                    del element.attrib[key]
        elif tag in ("gridBefore", "gridAfter"):
            _add_cells(element, before=tag == "gridBefore")
        elif tag == "gridSpan":
            _set_value(element, str(min(span(_value(element)), 100)))
        elif tag == "sym":
            _check_symbol(element)
        elif tag in ("footnoteReference", "endnoteReference"):
            if _value(element, "id") not in notes[tag.replace("Reference", "s")]:
                _remove(element)
        elif tag == "bookmarkStart" and _value(element, "name") is None:
            _remove(element)


def paragraphs(root: Any) -> str:
    """A part's text without layout, where the library fails."""
    lines = []
    for paragraph in root.iter("{*}p"):
        pieces = []
        for element in paragraph.iter():
            tag = local_name(element)
            if tag == "t":
                pieces.append(element.text or "")
            elif tag in ("tab", "br", "cr"):
                pieces.append("\t" if tag == "tab" else "\n")
        lines.append("".join(pieces).strip("\t"))
    return "\n\n".join(line for line in lines if line.strip())


def _leave_names(root: Any, styles: Styles) -> None:
    """Leaves of styles what tells headings and lists: the rest is most of a short document."""
    levels = {style: styles.heading(style) for style in root if local_name(style) == "style"}
    for style in list(root):
        if style not in levels:
            root.remove(style)
            continue
        level = levels[style]
        name = next((one for one in style if local_name(one) == "name"), None)
        if level is not None and name is not None:  # also one that is based on a heading's
            _set_value(name, f"heading {level}")
        for one in list(style):
            if local_name(one) == "pPr":
                for property_ in list(one):
                    if local_name(property_) != "numPr":
                        one.remove(property_)
            elif local_name(one) != "name":
                style.remove(one)


def _is_in_formula(element: Any) -> bool:
    return any(local_name(outer) in ("oMath", "oMathPara") for outer in element.iterancestors())


def _add_cells(skipped: Any, *, before: bool) -> None:
    """Puts empty cells where a row begins later or ends earlier than its table."""
    from lxml import etree

    row, columns = skipped.getparent().getparent(), span(_value(skipped))
    if row is None or local_name(row) != "tr" or _value(skipped) in (None, "0"):
        return
    for _ in range(min(columns, _MOST_SKIPPED)):
        cell = etree.Element(_named(row, "tc"))
        etree.SubElement(cell, _named(row, "p"))
        first = next((one for one in row if local_name(one) in ("tc", "sdt")), None)
        if before and first is not None:
            first.addprevious(cell)
        else:
            row.append(cell)


def _replace_formula(element: Any) -> None:
    from lxml import etree

    space = next((n for n in element.nsmap.values() if n in (_W, _STRICT)), _W)
    run = etree.Element(f"{{{space}}}r")
    text = etree.SubElement(run, f"{{{space}}}t")
    text.text = of_word(element)
    parent = element.getparent()
    if local_name(parent) in ("body", "tc", "txbxContent"):
        paragraph = etree.Element(f"{{{space}}}p")
        paragraph.append(run)
        run = paragraph
    parent.replace(element, run)


def _join_initial(frame: Any) -> None:
    """Puts a large first letter, which is a paragraph of its own, before the rest of its word."""
    own = next(frame.iterancestors("{*}p"), None)
    following = None if own is None else own.getnext()
    if own is None or following is None or local_name(following) != "p":
        return
    start = 1 if len(following) and local_name(following[0]) == "pPr" else 0
    following[start:start] = [one for one in own if local_name(one) != "pPr"]
    _remove(own)


def _choose_entry(entries: Any) -> None:
    """Writes what was chosen in a list of an old form before it."""
    from lxml import etree

    run = next(entries.iterancestors("{*}r"), None)
    named = [_value(one) or "" for one in entries if local_name(one) == "listEntry"]
    chosen = next((_value(one) for one in entries if local_name(one) == "result"), None) or "0"
    if run is None or not chosen.isdecimal() or int(chosen[:6]) >= len(named):
        return
    new = etree.Element(_named(run, "r"))
    etree.SubElement(new, _named(run, "t")).text = named[int(chosen[:6])]
    run.addprevious(new)


def _hide(vanish: Any) -> None:
    """Removes a run that Word shows nobody.

    The mark also stands at ends of paragraphs, in styles, and where a change of a run's look is
    kept; there it hides no text.
    """
    run = vanish.getparent().getparent()
    if run is not None and local_name(run) == "r" and run.getparent() is not None:
        _remove(run)


def _describe(drawing: Any) -> None:
    """Puts what a picture shows, in its author's words, before it."""
    from lxml import etree

    run = drawing.getparent()
    if run is None or local_name(run) != "r" or drawing.find(".//{*}pic") is None:
        return
    said = " ".join(one.get("descr") or "" for one in drawing.iter("{*}docPr")).split()
    if said:
        text = etree.Element(_named(run, "t"))
        text.text = f"[{' '.join(said)}]"
        drawing.addprevious(text)


def _put_beside(drawing: Any) -> None:
    """Puts the text of drawn boxes before their drawing, as of boxes of the older markup."""
    from lxml import etree

    boxes = [
        box
        for box in drawing.iter("{*}txbxContent")
        if next(box.iterancestors("{*}txbxContent", "{*}drawing"), None) is drawing
    ]
    if boxes and drawing.getparent() is not None:
        beside = etree.Element(_named(boxes[0], "pict"))
        beside.extend(boxes)
        drawing.addprevious(beside)


def _remove(element: Any) -> None:
    element.getparent().remove(element)


def _choose(element: Any) -> None:
    """mammoth takes the fallback; where there is none, or nothing in it, the first choice."""
    children = {local_name(child): child for child in reversed(element)}
    fallback, choice = children.get("Fallback"), children.get("Choice")
    if choice is not None and (fallback is None or (_has_text(choice) and not _has_text(fallback))):
        if fallback is not None:
            element.remove(fallback)
        choice.tag = f"{choice.tag.rpartition('}')[0]}}}Fallback"


def _has_text(element: Any) -> bool:
    return any(one.text for one in element.iter("{*}t"))


def _check_symbol(element: Any) -> None:
    code = _value(element, "char") or ""
    try:
        int(code, 16)
    except ValueError:
        _remove(element)


def _note_ids(root: Any) -> set[str]:
    if root is None:
        return set()
    return {_value(one, "id") or "" for one in root if local_name(one) in ("footnote", "endnote")}


def _value(element: Any, name: str = "val") -> str | None:
    """An attribute in whichever of Word's namespaces."""
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), None)


def _set_value(element: Any, value: str) -> None:
    for key in element.attrib:
        if key.rpartition("}")[2] == "val":
            element.set(key, value)


def _named(element: Any, tag: str) -> str:
    return f"{{{element.tag.rpartition('}')[0].lstrip('{') or _W}}}{tag}"


def _written(tree: Any) -> bytes:
    from lxml import etree

    return bytes(etree.tostring(tree, encoding="utf-8", xml_declaration=True))


def _relationships(targets: dict[str, tuple[str, str, bool]]) -> str:
    rows = [
        f"<Relationship Id={quoteattr(key)} Type={quoteattr(_TYPE + kind)} "
        f"Target={quoteattr(target)}{' TargetMode=' + quoteattr('External') if is_far else ''}/>"
        for key, (target, kind, is_far) in targets.items()
    ]
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(rows)}</Relationships>'
