"""An error is one line, whatever it quotes."""

from __future__ import annotations

from edgeinfinite.errors import EdgeInfiniteError


def test_a_name_from_a_file_can_neither_end_the_line_nor_steer_the_terminal() -> None:
    message = str(EdgeInfiniteError("é \x1b[2J\n\u2028\ud800 is wrong"))
    assert message == r"é \x1b[2J\n\u2028\ud800 is wrong"
