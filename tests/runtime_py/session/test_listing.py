"""Lists of session files, whatever a folder and a clock say."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from edgeinfinite.runtime_py.session.listing import moment, sessions_in


@pytest.mark.parametrize(
    ("seconds", "year"), [(0, 1970), (1e13, 9999), (-1e13, 1), (float(2**62), 9999)]
)
def test_a_time_of_any_year_is_a_moment(seconds: float, year: int) -> None:
    assert abs(moment(seconds).year - year) <= 1


def test_a_file_of_an_impossible_year_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    path.write_text("x")
    os.utime(path, (10**11, 10**11))  # a file system may keep its own last year
    (found,) = sessions_in(tmp_path)
    assert found.saved > datetime(2100, 1, 1)
