"""The power fails while a session is saved over an older one: the file is the old one or the new.

A save runs under strace. Its system calls are played on a model of a disk that loses everything
which nobody asked it to keep: a file's bytes until fsync of the file, a name until fsync of its
folder. After every call the power fails, in every way that this disk allows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.errors import EdgeInfiniteError

SAVES = """
import os, sys
from pathlib import Path
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import save_session
from edgeinfinite.runtime_py.session.session import Session
session, path = Session(load_engine(sys.argv[1])), Path(sys.argv[2])
session.append([5, 6, 7])
save_session(session, path)
session.append([8] * 90)
os.mkdir(sys.argv[2] + ".begins")
save_session(session, path)
"""
CALLS = "openat,renameat,renameat2,rename,fsync,fdatasync,mkdir"
RENAMED = re.compile(
    r'rename(?:at2?)?\((?:AT_FDCWD[^,]*, )?"([^"]+)", (?:AT_FDCWD[^,]*, )?"([^"]+)"'
)
OPENED = re.compile(r'openat\([^"]*"([^"]+)", O_(?:RDWR|WRONLY)')
SYNCED = re.compile(r"f(?:data)?sync\(\d+<([^>]+)>\)")


@dataclass
class Disk:
    """What is on a disk for certain, and what may be.

    Attributes:
        kept: by name, whether the file that this name certainly stands for has its bytes on disk.
        maybe: names that may stand for another file already, and whether that one has its bytes.
    """

    kept: dict[str, bool] = field(default_factory=dict)
    maybe: dict[str, bool] = field(default_factory=dict)
    synced: set[str] = field(default_factory=set)

    def play(self, call: str) -> None:
        if (found := RENAMED.search(call)) and call.rstrip().endswith("= 0"):
            old, new = found.groups()
            self.maybe[new] = old in self.synced
            self.synced.discard(new)
            if self.maybe[new]:
                self.synced.add(new)
        elif found := OPENED.search(call):  # to be written
            self.synced.discard(found[1])
        elif found := SYNCED.search(call):
            name = found[1]
            self.synced.add(name)
            for path in [path for path in self.maybe if str(Path(path).parent) == name]:
                self.kept[path] = self.maybe.pop(path)

    def after_power_loss(self, path: str) -> Iterator[bool]:
        """Whether the file of this name has its bytes, in every possible outcome."""
        yield self.kept[path]
        if path in self.maybe:
            yield self.maybe[path]


def calls_of_a_save(folder: Path, program: str) -> tuple[list[str], str]:
    artifact, path = tiny_artifact(folder / "artifact"), folder / "s.session"
    trace = folder / "trace"
    command = ["strace", "-f", "-y", "-e", f"trace={CALLS}", "-o", str(trace), sys.executable, "-c"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, program, str(artifact), str(path)], check=True, env=environment)
    lines = trace.read_text(errors="replace").splitlines()
    begins = next(i for i, line in enumerate(lines) if "s.session.begins" in line)
    return [line for line in lines[begins:] if str(folder) in line], str(path)


def outcomes(calls: list[str], path: str) -> list[bool]:
    disk = Disk(kept={path: True})
    found = []
    for call in calls:
        disk.play(call)
        found += disk.after_power_loss(path)
    assert disk.kept[path] and path not in disk.maybe, (
        "the new file isn't there for certain at the end"
    )
    return found


needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace isn't installed")


@needs_strace
def test_whenever_the_power_fails_the_session_is_the_old_one_or_the_new(tmp_path):
    calls, path = calls_of_a_save(tmp_path, SAVES)
    found = outcomes(calls, path)
    assert len(found) > 5 and all(found)
    assert read_session_file(Path(path)).header.tokens_read == 93
    print(f"power loss: {len(found)} outcomes after {len(calls)} calls, every file whole")


@needs_strace
def test_a_save_that_asks_the_disk_for_nothing_would_be_found(tmp_path):
    careless = "import os; os.fsync = lambda descriptor: None\n" + SAVES
    calls, path = calls_of_a_save(tmp_path, careless)
    with pytest.raises(AssertionError, match="isn't there for certain"):
        outcomes(calls, path)


def test_half_a_session_is_refused(tmp_path):
    """What a disk that lost bytes would leave."""
    (tmp_path / "s.session").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    with pytest.raises(EdgeInfiniteError, match=r"s\.session"):
        read_session_file(tmp_path / "s.session")
