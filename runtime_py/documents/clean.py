"""Characters that nobody sees, in every kind of document; and the layout of text made of markup."""

from __future__ import annotations

import re

# All control characters but tabs and newlines, and halves of surrogate pairs.
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]|[\ud800-\udfff]")

_SOFT_BREAK = re.compile("\u00ad[ \t]*\n[ \t]*")
"""A hyphen at a line's end that a word only has there."""

_INVISIBLE = re.compile(
    "[\u00ad\u200b\u200e\u200f\u061c\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)
"""Soft hyphens, zero-width characters, directions, marks and the like."""

_JOINED = (
    "\u0600-\u06ff\u0700-\u074f\u0750-\u077f\u07c0-\u07ff\u0840-\u085f\u0860-\u08ff"  # Arabic's kin
    "\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\u1a20-\u1aaf\u1b00-\u1c4f"
    "\ua800-\ua82f\ua840-\ua87f\ua880-\ua8ff\ua980-\ua9df\uaa60-\uaa7f\uabc0-\uabff"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010a5f\U00011000-\U000117ff\U0001e900-\U0001e95f"
)
"""Scripts whose letters change their shape, and with it words their meaning, at a joiner."""

_JOINER = re.compile(
    f"(?<![{_JOINED}])\u200c|(?<![{_JOINED}\u203c-\u3299\ufe0f\U0001f000-\U0001faff])\u200d"
)
"""Joiners elsewhere; those of emoji stay, too."""

_TAG = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+")
"""Invisible copies of ASCII, which only the flags of regions need."""

_LIGATURES = {
    **{0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"},
    **{0xFB05: "st", 0xFB06: "st"},
    **{0xFB13: "մն", 0xFB14: "մե", 0xFB15: "մի", 0xFB16: "վն", 0xFB17: "մխ"},
}
_LIGATURE = re.compile("[\ufb00-\ufb06\ufb13-\ufb17]")
_SPACES = str.maketrans({"\xa0": " ", "\u202f": " ", "\u2011": "-", "\u2010": "-"})


def visible(text: str) -> str:
    """Text without characters that nobody sees; letters of ligatures apart, Unix's newlines.

    Joiners of emoji and of the scripts that need them stay.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", _SOFT_BREAK.sub("", text))
    text = _TAG.sub("", _JOINER.sub("", text))
    return _LIGATURE.sub(lambda found: _LIGATURES[ord(found[0])], text)


def tidied(text: str) -> str:
    """Text of markup or pages: visible, without trailing white space and rows of blank lines."""
    text = visible(text).replace("\x0c", "\n\n").replace("\u2029", "\n\n").replace("\u2028", "\n")
    text = _NO_TEXT.sub("", text).translate(_SPACES)
    text = "\n".join(map(str.rstrip, text.split("\n")))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")
