"""Shows answers while they are written: as they are, or with their Markdown rendered."""

from __future__ import annotations

import re
import sys
import time
from typing import Any, Protocol

_FENCE = re.compile(r" {0,3}(```|~~~)")
_REFRESH_S = 1 / 15
# A model must not be able to send commands to the terminal; newlines and tabs are text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen(Protocol):
    """Takes the pieces of one answer."""

    def write(self, piece: str) -> None:
        """Shows a piece at once."""
        ...

    def close(self) -> None:
        """Ends the answer."""
        ...


class PlainScreen:
    """Pieces as they are; on a terminal without control characters."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()

    def write(self, piece: str) -> None:
        sys.stdout.write(visible(piece) if self._is_terminal else piece)
        sys.stdout.flush()

    def close(self) -> None:
        print(flush=True)


class MarkdownScreen:
    """Renders the answer block by block, with the block being written renewed in place.

    A finished block is never touched again, so that answers of any length scroll as usual.

    Args:
        console: a `rich.console.Console`.
    """

    def __init__(self, console: Any) -> None:
        self._console = console
        self._block = ""
        self._is_first = True
        self._live: Any = None
        self._shown_at = 0.0

    def write(self, piece: str) -> None:
        finished, self._block = split_blocks(self._block + visible(piece))
        for block in finished:
            self._finish(block)
        if self._block.strip() and time.monotonic() - self._shown_at >= _REFRESH_S:
            self._show()

    def close(self) -> None:
        if self._block.strip():
            self._finish(self._block)
        self._stop()
        self._block = ""

    def _show(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop"
            )
            self._live.start()
        self._live.update(self._rendered(self._block, most=True), refresh=True)
        self._shown_at = time.monotonic()

    def _finish(self, block: str) -> None:
        self._stop()
        self._console.print(self._rendered(block))
        self._is_first = False

    def _rendered(self, block: str, *, most: bool = False) -> Any:
        from rich.markdown import Markdown

        most_lines = max(1, self._console.height - 1) if most else None
        return _Block(Markdown(block.strip("\n")), self._is_first, most_lines)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Block:
    """A block with one blank line before it, whatever its own margins.

    Args:
        shown: what rich renders.
        is_first: whether it is the answer's first.
        most_lines: shows its last lines only; None shows all.
    """

    def __init__(self, shown: Any, is_first: bool, most_lines: int | None) -> None:
        self._shown = shown
        self._is_first = is_first
        self._most_lines = most_lines

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from rich.segment import Segment

        lines = console.render_lines(self._shown, options, pad=False)
        written = [i for i, line in enumerate(lines) if any(part.text.strip() for part in line)]
        lines = lines[written[0] : written[-1] + 1] if written else []
        if not self._is_first:
            lines.insert(0, [])
        for line in lines[-self._most_lines if self._most_lines else 0 :]:
            yield from line
            yield Segment.line()


def screen() -> Screen:
    """For the next answer: Markdown where standard output is a terminal that can, and rich is."""
    if not sys.stdout.isatty():
        return PlainScreen()
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return PlainScreen()
    console = Console()
    return PlainScreen() if console.is_dumb_terminal else MarkdownScreen(console)


def split_blocks(text: str) -> tuple[list[str], str]:
    """Blocks of Markdown that are finished, each up to a blank line outside code, and the rest."""
    blocks = []
    start = position = 0
    fence: str | None = None
    for line in text.splitlines(keepends=True):
        position += len(line)
        if found := _FENCE.match(line):
            fence = None if fence == found[1] else fence or found[1]
        elif fence is None and not line.strip() and line.endswith("\n"):
            if text[start:position].strip():
                blocks.append(text[start:position])
            start = position
    return blocks, text[start:]


def visible(text: str) -> str:
    """Text without characters that command a terminal."""
    return _CONTROL.sub("", text)
