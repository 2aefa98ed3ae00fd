"""Commands that other commands run one after the other, and a record of those that are done."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeinfinite.cli.notes import note
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import write_atomically
from edgeinfinite.process_memory import peak_rss_bytes

Run = Callable[[Sequence[str]], int]
"""Runs a command of this program and returns its exit code; errors are raised."""


@dataclass(frozen=True)
class Step:
    """One command.

    Args:
        name: what the record calls it.
        argv: its arguments; files and folders as paths.
        depends_on: digest of what it reads that the arguments don't show.
    """

    name: str
    argv: tuple[str | Path, ...]
    depends_on: str = ""

    @property
    def line(self) -> str:
        """As one types it, without the folders of this machine."""
        shown = [word.name if isinstance(word, Path) else _shown(word) for word in self.argv]
        return shlex.join(["edgeinfinite", *shown])

    @property
    def digest(self) -> str:
        """Two steps with the same digest do the same."""
        return hashlib.sha256(
            json.dumps([self.depends_on, *map(str, self.argv)]).encode()
        ).hexdigest()


@dataclass(frozen=True)
class Done:
    """A step that is done.

    Args:
        name, line, digest: see `Step`.
        seconds: of its last run.
        peak_bytes: largest resident memory of this process until then; None where it isn't known.
    """

    name: str
    line: str
    digest: str
    seconds: float
    peak_bytes: int | None = None


def run_steps(steps: Sequence[Step], record: Path, known: Sequence[Done], run: Run) -> list[Done]:
    """Runs the steps that aren't done, and writes down each one when it is.

    Args:
        steps: in their order.
        record: the file that is written.
        known: what is done already, of these steps and of others before them.
        run: see `Run`.

    Returns:
        `known`, and these steps.

    Raises:
        EdgeInfiniteError: a command found a fault.
    """
    done = list(known)
    for index, step in enumerate(steps, 1):
        if any(one.digest == step.digest for one in done):
            continue
        note(f"step {index} of {len(steps)}: {step.line}")
        started = time.perf_counter()
        if run([str(word) for word in step.argv]):
            raise EdgeInfiniteError(f"{step.name} found a fault; see above. Nothing else was run")
        seconds = time.perf_counter() - started
        done = [one for one in done if one.name != step.name]
        done.append(Done(step.name, step.line, step.digest, seconds, peak_rss_bytes()))
        write_record(record, done)
    return done


def write_record(path: Path, done: Sequence[Done]) -> None:
    """Writes what is done."""
    write_atomically(path, json.dumps([asdict(one) for one in done], indent=1) + "\n")


def read_record(path: Path) -> list[Done]:
    """What is done; nothing if there is no record.

    Raises:
        EdgeInfiniteError: it can't be read.
    """
    if not path.is_file():
        return []
    try:
        return [Done(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise EdgeInfiniteError(f"{path} isn't a record of steps; delete it") from error


def _shown(word: str) -> str:
    return Path(word).name if word.startswith(("/", "~", ".")) or Path(word).exists() else word
