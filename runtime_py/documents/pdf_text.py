"""The text of a PDF's pages, as far as its fonts say which letters they draw."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from edgeinfinite.runtime_py.documents.budget import Budget, TooMuch
from edgeinfinite.runtime_py.documents.clean import tidied

_SHAPES = re.compile("[\ufb50-\ufdff\ufe70-\ufefc]")
"""Arabic letters in one shape each, as fonts have them."""

_SPACES = re.compile(r"[ \t]{16,}")
_LETTERS = re.compile(
    r"/(?:GB|GBpc|GBK|GBKp|GBK2K|HKscs|ETen|ETenms|B5pc|CNS|Uni|83pv|90ms|90msp|90pv|Add|EUC|Ext|KSC"
    r"|KSCms|KSCpc|V|H)[\w-]*"
)
"""Encodings of whole scripts, whose codes are letters; those of `Identity` are places in a font."""

_PLACE = re.compile(r"/[A-Za-z.]{0,9}\d{1,6}")
"""A letter's name that only tells its place in the font; pypdf writes it in the letter's stead."""

_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BEFORE = re.compile(r"[^\W\d_]{1,60}\Z")
_AFTER = re.compile(r"([^\W\d_]{1,60})([^\s\w]{0,9})( ?)")
_LONGEST = 60


class PageTexts:
    """Reads pages, and counts what their fonts keep to themselves.

    Args:
        budget: of the document.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._fonts: dict[int, tuple[Any, bool, frozenset[str]]] = {}
        self.unknown = 0
        """Signs that were left out: nothing says which letters they are."""

    def of(self, page: Any) -> str:
        """A page's text. pypdf tells of each operator, so that time and text are counted inside.

        Forms within forms can draw one text more often than there are atoms. What ends such a page
        is raised again behind pypdf, which takes any failure within a form for the form's own.
        """
        pieces: list[str] = []
        failures: list[TooMuch] = []

        def operator(*_: object) -> None:
            with _kept(failures):
                self._budget.check_time()

        def piece(text: str, _cm: object, _tm: object, font: Any, _size: object) -> None:
            with _kept(failures):
                self._budget.spend(len(text))
            pieces.append(self._readable(text, font))

        page.extract_text(visitor_operand_before=operator, visitor_text=piece)
        if failures:
            raise failures[0]
        found = _SHAPES.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), "".join(pieces))
        return tidied(_SPACES.sub(" ", found))

    def _readable(self, text: str, font: Any) -> str:
        if font is None or not text or text.isspace():
            return text
        if id(font) not in self._fonts:  # the font is kept, so that no other one gets its id
            self._fonts[id(font)] = (font, _is_mute(font), _places(font))
        _, is_mute, places = self._fonts[id(font)]
        if is_mute:
            self.unknown += sum(not sign.isspace() for sign in text)
            return re.sub(r"\S+", "", text)
        if places and "/" in text:
            return _PLACE.sub(lambda name: self._without(name[0], places), text)
        return text

    def _without(self, name: str, places: frozenset[str]) -> str:
        if name not in places:
            return name
        self.unknown += 1
        return ""


@contextmanager
def _kept(failures: list[TooMuch]) -> Iterator[None]:
    """Keeps what is raised inside, and raises what was kept: then every call fails."""
    if failures:
        raise failures[0]
    try:
        yield
    except TooMuch as error:
        failures.append(error)
        raise


def _places(font: Any) -> frozenset[str]:
    """The names of a font's letters that only tell where they are in it."""
    encoding = font.get("/Encoding")
    encoding = encoding.get_object() if encoding is not None else None
    names = encoding.get("/Differences") if isinstance(encoding, dict) else None
    names = names.get_object() if names is not None else None
    if "/ToUnicode" in font or not isinstance(names, list):
        return frozenset()
    return frozenset(one for one in names if isinstance(one, str) and _PLACE.fullmatch(one))


def _is_mute(font: Any) -> bool:
    """Whether a font has neither letters nor a map to them: its codes are places of drawings."""
    if font.get("/Subtype") != "/Type0" or "/ToUnicode" in font:
        return False
    encoding = font.get("/Encoding")
    encoding = encoding.get_object() if encoding is not None else None
    return not isinstance(encoding, str) or _LETTERS.fullmatch(encoding) is None


def rejoined(pages: Iterable[str]) -> str:
    """The pages' text, with words that lines divide in one piece again.

    A hyphen stays where the document has the word with it elsewhere, or both its halves as words of
    their own, and nowhere the whole.
    """
    text = "\n\n".join(page for page in pages if page.strip())
    places = [found.start() for found in _HYPHEN.finditer(text)]
    if not places:
        return text
    divided = [(at, *_halves(text, at)) for at in places]
    known = _known(text, divided)
    out: list[str] = []
    end = 0
    for at, before, after in divided:
        if at < end or not after[1][:1].islower():
            continue
        whole = f"{before}{after[1]}".casefold()
        halves = (f"{before}-{after[1]}".casefold(), before.casefold(), after[1].casefold())
        is_compound = halves[0] in known or (halves[1] in known and halves[2] in known)
        out += [text[end:at], "-" if is_compound and whole not in known else "", after[1], after[2]]
        out += ["\n"] if after[3] else []
        end = at + 2 + after.end()
    out.append(text[end:])
    return "".join(out)


def _known(text: str, divided: list[tuple[int, str, re.Match[str]]]) -> set[str]:
    """The words that stand whole somewhere; no half counts as one."""
    known: set[str] = set()
    end = 0
    for at, before, after in divided:
        known.update(map(str.casefold, _WORD.findall(text, end, max(end, at - len(before)))))
        end = at + 2 + after.end(1)
    known.update(map(str.casefold, _WORD.findall(text, end)))
    return known


def _halves(text: str, at: int) -> tuple[str, re.Match[str]]:
    before = _BEFORE.search(text[max(0, at - _LONGEST) : at])
    after = _AFTER.match(text[at + 2 : at + 2 + 2 * _LONGEST])
    assert before is not None and after is not None  # `_HYPHEN` has seen a letter on each side
    return before[0], after
