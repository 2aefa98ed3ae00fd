"""What the readers of documents share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError

# All control characters but tabs and newlines, and halves of surrogate pairs.
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]|[\ud800-\udfff]")


@dataclass(frozen=True)
class Extracted:
    """What a reader finds: the text, the document's own title or "", sentences for the user."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()


def tidied(text: str) -> str:
    """Text without control characters, trailing white space and rows of blank lines."""
    text = _NO_TEXT.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n"))
    text = re.sub(r"[^\S\n]+\n", "\n", text.replace("\xa0", " "))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def one_line(text: object) -> str:
    """A title in one line; "" for anything that isn't text."""
    return " ".join(tidied(text).split())[:200] if isinstance(text, str) else ""


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turns whatever a library raises over a document into one sentence.

    Args:
        name: the document's.
        kind: such as `PDF`.
    """
    try:
        yield
    except EdgeInfiniteError:
        raise
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            f"{name}: reading {kind} needs the package {error.name}; install it with: "
            "pip install 'edgeinfinite[documents]'"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise EdgeInfiniteError(
            f"{name} is nested too deeply or too large to be read; save it as plain text"
        ) from error
    except Exception as error:  # a damaged file can bring a library to raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise EdgeInfiniteError(
            f"{name} is damaged or not {kind} ({reason}); get the file again, or save it anew"
        ) from error
