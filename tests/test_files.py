"""Output files: whole or not at all, and only regular files are replaced."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable, replacing, save_figure, write_atomically

TO_STDOUT = (
    "from pathlib import Path; from edgeinfinite.files import write_atomically; "
    "print('answer', flush=True); write_atomically(Path('/dev/stdout'), 'rows')"
)


def _names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_atomically(path, "old")
    write_atomically(path, "néw")
    assert path.read_text(encoding="utf-8") == "néw"
    assert _names(tmp_path) == ["rows.json"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_atomically(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as unfinished:
        unfinished.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["rows.json"]


def test_standard_output_is_written_into_and_never_replaced(tmp_path: Path) -> None:
    piped = subprocess.run(
        [sys.executable, "-c", TO_STDOUT], capture_output=True, text=True, check=True
    )
    assert piped.stdout == "answer\nrows"
    file = tmp_path / "out.txt"
    with file.open("w") as redirected:
        subprocess.run([sys.executable, "-c", TO_STDOUT], stdout=redirected, check=True)
    assert file.read_text() == "answer\nrows"


def test_a_fifo_stays_one_and_its_reader_gets_the_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.fifo"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_atomically(path, "rows")
    reader.join(timeout=30)
    assert read == ["rows"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_stays_a_device() -> None:
    write_atomically(Path("/dev/null"), "rows")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_full_device_is_an_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_atomically(Path("/dev/full"), "rows")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.json").mkdir()
    with pytest.raises(EdgeInfiniteError, match="is a folder"):
        write_atomically(tmp_path / "rows.json", "rows")
    assert _names(tmp_path) == ["rows.json"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_one_and_its_file_is_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "rows.json", tmp_path / "link.json"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "rows")
    assert link.is_symlink() and target.read_text() == "rows"
    assert _names(target.parent) == ["rows.json"]


def test_leftovers_of_a_killed_writer_go_with_the_next_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    killed = (
        "import os; from pathlib import Path; from edgeinfinite.files import replacing\n"
        f"with replacing(Path({str(path)!r})) as file: file.write_text('half'); "
        "(file.parent / '.tmpQx71').write_text('as safetensors does'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", killed], check=False)
    assert len(_names(tmp_path)) == 1 and not path.exists()
    write_atomically(tmp_path / "other.json", "rows")
    write_atomically(path, "rows")
    assert _names(tmp_path) == ["other.json", "rows.json"]


def test_permissions_follow_the_umask_or_the_old_file_and_private_files_stay_private(
    tmp_path: Path,
) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    path, private = tmp_path / "rows.json", tmp_path / "notes.session"
    old = os.umask(0o027)
    try:
        write_atomically(path, "rows")
        assert mode(path) == 0o640
        path.chmod(0o604)
        write_atomically(path, "rows")
        assert mode(path) == 0o604
        for _ in range(2):
            with replacing(private, private=True) as unfinished:
                unfinished.write_text("session")
            assert mode(private) == 0o600
            private.chmod(0o644)
    finally:
        os.umask(old)


def test_a_file_that_is_read_again_must_be_a_regular_one(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.json", again=True)
    check_writable(Path("/dev/stdout"))
    with pytest.raises(EdgeInfiniteError, match="/dev/stdout is not a regular file"):
        check_writable(Path("/dev/stdout"), again=True)


def test_a_plot_is_written_like_any_file_and_an_unknown_format_is_one_line(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib.figure import Figure

    save_figure(Figure(), tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    save_figure(Figure(), tmp_path / "plot")
    assert (tmp_path / "plot").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(EdgeInfiniteError, match=r"can't be a \.xyz"):
        save_figure(Figure(), tmp_path / "plot.xyz")
    assert _names(tmp_path) == ["plot", "plot.svg"]


def test_a_link_into_no_folder_is_refused_before_long_work(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "file")
    with pytest.raises(EdgeInfiniteError, match="whose folder isn't there"):
        check_writable(tmp_path / "link")
    (tmp_path / "gone").mkdir()
    check_writable(tmp_path / "link", again=True)


def test_what_follows_on_standard_output_stands_behind_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with file.open("w") as redirected:
        subprocess.run([sys.executable, "-c", TO_STDOUT], stdout=redirected, check=True)
        subprocess.run(["echo", "next"], stdout=redirected, check=True)
    assert file.read_text() == "answer\nrowsnext\n"
