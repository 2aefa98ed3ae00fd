"""What the readers of documents share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra
from edgeinfinite.runtime_py.documents.budget import TooMuch


@dataclass(frozen=True)
class Extracted:
    """What a reader finds: the text, the document's own title or "", sentences for the user."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()


class Skipped:
    """The parts that a reader went on without, for one sentence to the user.

    Args:
        name: the document's.
        kind: of the parts, such as `chapters`.
    """

    _NAMED = 5

    def __init__(self, name: str, kind: str) -> None:
        self._name = name
        self._kind = kind
        self._parts: list[str] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: str, reason: object) -> None:
        """A part that isn't read, and why not."""
        why = one_line(str(reason)) or type(reason).__name__
        self._parts.append(f"{part}: {why}")

    def notes(self, of: int) -> tuple[str, ...]:
        """The sentence, if there is anything to say.

        Args:
            of: parts that the document has.
        """
        if not self._parts:
            return ()
        named = "; ".join(self._parts[: self._NAMED])
        more = "; ..." if len(self._parts) > self._NAMED else ""
        share = f"{len(self._parts):,} of {of:,} {self._kind} of {self._name}"
        return (f"{share} are left out ({named}{more})",)


@contextmanager
def going_on(skipped: Skipped, part: str) -> Iterator[None]:
    """Reads one part; whatever is wrong with it is noted, and the next one is read.

    Raises:
        TooMuch: nothing more is read.
        ModuleNotFoundError: a library isn't there for any part.
    """
    try:
        yield
    except (TooMuch, MemoryError, ModuleNotFoundError):
        raise
    except RecursionError:
        skipped.add(part, "it is nested too deeply")
    except Exception as error:  # a damaged part can bring a library to raise anything
        skipped.add(part, error)


def one_line(text: object) -> str:
    """A title in one line; "" for anything that isn't text."""
    if not isinstance(text, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:1000]).split())[:200]


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
            f"{install_extra('documents')}"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise EdgeInfiniteError(
            f"{name} is nested too deeply or too large to be read; save it as plain text"
        ) from error
    except Exception as error:  # a damaged file can bring a library to raise anything
        reason = one_line(str(error)) or type(error).__name__
        raise EdgeInfiniteError(
            f"{name} is damaged or not {kind} ({reason}); get the file again, or save it anew"
        ) from error
