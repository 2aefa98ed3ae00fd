"""Runs commands in forks of a process that has imported everything, so that a run takes no second.

Reads one JSON object a line: `{"argv", "folder", "stdin", "printed", "memory"}` starts a command
there and answers with `{"pid"}`; `{"wait": pid}` answers with `{"code"}` when it has ended. What a
command prints goes to `stdout` and `stderr` in the folder `printed`. `memory`, if not null, is the
number of bytes that it may take beyond what it has at its start.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

# The commands' own imports, so that forks begin with their work.
import edgeinfinite.evaluation.harness
import edgeinfinite.export.exporter
import edgeinfinite.runtime_py.server.app
import edgeinfinite.training.gate.train
import edgeinfinite.training.scorer.train  # noqa: F401
from edgeinfinite.cli import main

LONGEST = 300
"""Seconds that a command may take."""


def start(argv: list[str], folder: Path, stdin: str, printed: Path, memory: int | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.chdir(folder)
        (printed / "stdin").write_text(stdin)
        for number, name, flags in (
            (0, "stdin", os.O_RDONLY),
            (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(printed / name, flags, 0o644), number)
        if memory is not None:
            most = virtual_memory() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        code = main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def virtual_memory() -> int:
    """Bytes of this process's mappings."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def ended(pid: int) -> int:
    """The status of a command that has ended; one that hangs, as for lack of memory, is killed."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer = {"code": os.waitstatus_to_exitcode(ended(asked["wait"]))}
        else:
            folder, printed = Path(asked["folder"]), Path(asked["printed"])
            pid = start(asked["argv"], folder, asked["stdin"], printed, asked["memory"])
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
