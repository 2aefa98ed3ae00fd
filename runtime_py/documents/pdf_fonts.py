"""A PDF's fonts, read once and not for every page again.

pypdf reads the fonts that a page names anew for each page. A font of a whole script has a map of
65,536 codes, which takes a third of a second.
"""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from typing import Any, ClassVar

_MOST = 32
"""Fonts that are kept; a map of 65,536 codes takes 13 MB."""

_KEPT = "edgeinfinite_font"


def install() -> None:
    """Lets pypdf's reader of pages keep fonts; without effect where it is built in another way."""
    from pypdf import _page

    found: Any = getattr(_page, "Font", None)
    if not hasattr(found, "from_font_resource") or hasattr(found, "newest"):
        return

    class Kept(found):
        newest: ClassVar[deque[weakref.ref[Any]]] = deque()

        @classmethod
        def from_font_resource(cls, resource: Any) -> Any:
            font = getattr(resource, _KEPT, None)
            if font is None:
                font = found.from_font_resource(resource)
                with suppress(AttributeError, TypeError):  # an object that takes no attributes
                    cls.newest.append(weakref.ref(resource))
                    setattr(resource, _KEPT, font)
                while len(cls.newest) > _MOST:
                    oldest = cls.newest.popleft()()
                    if oldest is not None:
                        delattr(oldest, _KEPT)
            return font

    _page.Font = Kept
