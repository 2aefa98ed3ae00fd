"""Starts a scenario's command, kills it at random points, and looks at what it left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from faults.scenarios import PRINTED, Given, Scenario


class Zygote:
    """See `zygote.py`."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("zygote.py"))]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, **asked: Any) -> dict[str, int]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, int] = json.loads(self._process.stdout.readline())
        return answer

    def start(
        self,
        argv: list[str],
        folder: Path,
        stdin: str = "",
        *,
        printed: Path | None = None,
        memory: int | None = None,
    ) -> int:
        places = {"folder": str(folder), "printed": str(printed or folder)}
        return self.ask(argv=argv, stdin=stdin, memory=memory, **places)["pid"]

    def wait(self, pid: int) -> int:
        """The exit code, or the signal's number below zero."""
        return self.ask(wait=pid)["code"]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


@dataclass
class Kills:
    """What happened.

    Attributes:
        killed: runs that were killed.
        ended: runs that had ended before their signal came.
        left: what killed runs left, one entry for each kind of thing.
    """

    killed: int = 0
    ended: int = 0
    left: list[Any] = field(default_factory=list)


def run(
    zygote: Zygote,
    scenario: Scenario,
    given: Given,
    folder: Path,
    *,
    printed: Path | None = None,
) -> float:
    """A run that nobody kills; what it prints goes to `printed`, or to its folder.

    Returns:
        Its seconds.
    """
    folder.mkdir(exist_ok=True)
    start = time.monotonic()
    pid = zygote.start(scenario.argv(given), folder, scenario.stdin, printed=printed)
    code = zygote.wait(pid)
    assert code == 0, ((printed or folder) / "stderr").read_text()
    return time.monotonic() - start


def kill_often(
    zygote: Zygote, scenario: Scenario, given: Given, folder: Path, kills: int, seed: int = 0
) -> Kills:
    """Kills a scenario's command so many times, then lets it end.

    Args:
        zygote: runs it.
        scenario: see there.
        given: what it reads.
        folder: holds `whole` and `killed` afterwards.
        kills: at random points between a run's start and its usual end.
        seed: of the points.
    """
    whole, work = folder / "whole", folder / "killed"
    seconds = run(zygote, scenario, given, whole)
    expected, random, found = scenario.finished(whole), np.random.default_rng(seed), Kills()
    work.mkdir()
    while found.killed < kills:
        pid = zygote.start(scenario.argv(given), work, scenario.stdin)
        time.sleep(random.uniform(0.0, seconds))
        os.kill(pid, signal.SIGKILL)
        code = zygote.wait(pid)
        left = scenario.sound(work)
        if code == -signal.SIGKILL:
            found.killed += 1
            if left not in found.left:
                found.left.append(left)
        else:
            assert code == 0, (work / "stderr").read_text()
            assert left == expected
            found.ended += 1
        if left == expected or not scenario.goes_on:
            empty(work)
    run(zygote, scenario, given, work)
    assert scenario.finished(work) == expected
    assert names(work) == names(whole), "something stays for ever"
    return found


def empty(folder: Path) -> None:
    """Removes the results that the next run would take for its own, and nothing hidden."""
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name not in PRINTED)
