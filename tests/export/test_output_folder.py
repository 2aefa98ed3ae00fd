"""An artifact appears whole, and the leftovers of a killed export are removed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgeinfinite.artifact.manifest import MANIFEST_FILE
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.output_folder import check_output, unfinished

KILLED = """
import os, sys
rename, die = os.rename, lambda *_: os.kill(os.getpid(), 9)
from pathlib import Path
from edgeinfinite.export import output_folder
output = Path(sys.argv[1])
with output_folder.unfinished(output) as folder:
    (folder / "manifest.json").write_text("new")
    if sys.argv[2] == "replacing":
        Path.rename = lambda old, new: die(rename(old, new))
    else:
        die()
"""


def artifact(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / MANIFEST_FILE).write_text(text)
    return folder


def kill(output: Path, when: str) -> None:
    command = [sys.executable, "-c", KILLED, str(output), when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_an_export_removes_the_leftovers_of_a_killed_one(tmp_path):
    kill(tmp_path / "a", "writing")
    assert len(list(tmp_path.iterdir())) == 2  # a folder and its lock
    with unfinished(tmp_path / "a") as folder:
        (folder / MANIFEST_FILE).write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a" / MANIFEST_FILE).read_text() == "whole"


def test_the_artifact_that_a_killed_export_was_replacing_comes_back(tmp_path):
    artifact(tmp_path / "a", "old")
    kill(tmp_path / "a", "replacing")
    assert not (tmp_path / "a").exists()
    with pytest.raises(KeyboardInterrupt), unfinished(tmp_path / "a"):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a" / MANIFEST_FILE).read_text() == "old"


UNDER_WAY = """
import os, sys
from pathlib import Path
from edgeinfinite.export import output_folder
os.getpid = lambda: 4_000_000  # as if in another container: no such process here
with output_folder.unfinished(Path(sys.argv[1])) as folder:
    (folder / "manifest.json").write_text("theirs")
    print(flush=True)
    sys.stdin.read()
"""


def test_an_export_under_way_in_another_container_is_left_alone(tmp_path):
    output = tmp_path / "a"
    command = [sys.executable, "-c", UNDER_WAY, str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        theirs = list(tmp_path.iterdir())
        with unfinished(output) as folder:
            (folder / MANIFEST_FILE).write_text("ours")
        assert sorted(tmp_path.iterdir()) == sorted([*theirs, output])
        other.communicate(timeout=60)
    assert other.returncode == 0
    assert (output / MANIFEST_FILE).read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [output]


def test_other_peoples_folders_are_left_alone(tmp_path):
    names = (".a.x.old", ".a.0123456789abcdeg.partial", ".b.0123456789abcdef.old")
    theirs = [tmp_path / name for name in names]
    for folder in theirs:
        artifact(folder, "theirs")
    with unfinished(tmp_path / "a") as folder:
        (folder / MANIFEST_FILE).write_text("ours")
    assert sorted(tmp_path.iterdir()) == sorted([*theirs, tmp_path / "a"])


def test_a_folder_without_an_artifact_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(EdgeInfiniteError, match="not an artifact"), unfinished(tmp_path / "a"):
        (tmp_path / "a" / "thesis.txt").write_text("years of work")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a" / "thesis.txt").exists()


def test_a_link_to_nothing_is_refused_before_the_work(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(EdgeInfiniteError, match=r"is a link to .*nowhere, which isn't there"):
        check_output(tmp_path / "link")
