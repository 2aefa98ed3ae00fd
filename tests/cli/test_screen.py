"""Answers on the screen: as they are, or as Markdown, while they stream."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgeinfinite.cli.screen import MarkdownScreen, PlainScreen, split_blocks, visible

ANSWER = """# Title

One *long* paragraph
of two lines.

1. first

2. second

```python
x = 1

y = 2
```

- a
- b
"""


def _shown(answer: str, pieces: int, height: int = 20) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=60, height=height)
    screen = MarkdownScreen(console)
    for start in range(0, len(answer), pieces):
        screen.write(answer[start : start + pieces])
    screen.close()
    return out.getvalue()


def test_markdown_is_rendered_the_same_however_it_streams() -> None:
    at_once = _shown(ANSWER, len(ANSWER))
    assert all(_shown(ANSWER, pieces) == at_once for pieces in (1, 2, 7, 50))
    lines = [line.strip() for line in at_once.splitlines() if line.strip()]
    assert "One long paragraph of two lines." in lines
    assert [line for line in lines if line.startswith(("1 ", "2 ", "• "))] == [
        *("1 first", "2 second", "• a", "• b")
    ]
    assert "x = 1" in lines and "y = 2" in lines and "```" not in at_once


def test_a_block_shows_while_it_is_written() -> None:
    out = io.StringIO()
    screen = MarkdownScreen(Console(file=out, force_terminal=True, width=60, height=20))
    screen.write("An unfinished")
    assert "An unfinished" in out.getvalue()
    screen.close()


def test_a_block_higher_than_the_screen_shows_its_end() -> None:
    out = io.StringIO()
    screen = MarkdownScreen(Console(file=out, force_terminal=True, width=60, height=6))
    screen.write("".join(f"- item {i}\n" for i in range(40)))
    assert "item 39" in out.getvalue() and "item 3\n" not in out.getvalue()
    screen.close()
    assert all(f"item {i}" in out.getvalue() for i in range(40)), "all of it stays in the end"


@given(st.text("ab \n`~-#", max_size=60))
def test_blocks_are_cut_without_losing_anything_but_blank_lines(text: str) -> None:
    blocks, rest = split_blocks(text)
    lines = [line for line in text.splitlines() if line.strip()]
    assert [line for line in "".join([*blocks, rest]).splitlines() if line.strip()] == lines
    assert all(block.strip() and block.endswith("\n") for block in blocks)


def test_blank_lines_in_code_end_no_block() -> None:
    assert split_blocks("a\n\n```\nb\n\nc") == (["a\n\n"], "```\nb\n\nc")
    assert split_blocks("```\nb\n\nc\n```\n\n") == (["```\nb\n\nc\n```\n\n"], "")


def test_a_model_sends_no_commands_to_the_terminal() -> None:
    assert visible("a\x1b[2J\x07b\tc\nd\x9b1m") == "a[2Jb\tc\nd1m"


def test_what_is_piped_stays_as_it_is(capsys) -> None:
    screen = PlainScreen()
    screen.write("# a\x1b[2J")
    screen.close()
    assert capsys.readouterr().out == "# a\x1b[2J\n"
