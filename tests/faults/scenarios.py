"""Commands to be killed: what each may leave behind, and what it must come to in the end."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.runtime_py.engines import load_engine

CARRY = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
CARRY += ["--window-length", "16"]
LENGTHS = ["--segment-length", "24", "--sink-length", "4", "--window-length", "6"]
TURNS = ("hello", "a dog went home, and then it went to town. " * 3, "and?", "why?", "so?")
PRINTED = ("stdin", "stdout", "stderr")


@dataclass(frozen=True)
class Given:
    """What commands read: a checkpoint, its artifact, texts and a document."""

    checkpoint: Path
    artifact: Path
    texts: Path
    document: Path


@dataclass(frozen=True)
class Scenario:
    """A command that is killed in its folder, again and again.

    Args:
        name: of the command.
        argv: its arguments.
        sound: raises if the folder holds half a file under a final name; says what it holds.
        finished: what a run that ended left, to be compared with a run that nobody killed.
        stdin: what is typed.
        goes_on: whether the next run continues; otherwise the folder is emptied before it.
    """

    name: str
    argv: Callable[[Given], list[str]]
    sound: Callable[[Path], Any]
    finished: Callable[[Path], Any]
    stdin: str = ""
    goes_on: bool = True


def digest_of(arrays: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def session(folder: Path) -> str | None:
    """The digest of the session in a folder; None without one."""
    path = folder / "s.session"
    return digest_of(dict(read_session_file(path).tensors)) if path.exists() else None


def tensors(folder: Path) -> str | None:
    path = folder / "trained.safetensors"
    return digest_of(load_file(path)) if path.exists() else None


def artifact(folder: Path) -> list[str] | None:
    """The checksums of an artifact, all of them checked by opening it; None without one."""
    path = folder / "artifact"
    if not path.exists():
        return None
    load_engine(path)
    files = json.loads((path / "manifest.json").read_text())["files"]
    return sorted(f"{name} {entry['sha256']}" for name, entry in files.items())


def rows(folder: Path) -> list[Any] | None:
    """The rows of an evaluation, without times; None without a file."""
    path = folder / "rows.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())["rows"]
    return [{k: v for k, v in row.items() if not k.endswith("_s")} for row in found]


SCENARIOS = (
    Scenario(
        "export",
        lambda given: ["export", "--model", str(given.checkpoint), "--output", "artifact", *CARRY],
        artifact,
        artifact,
        goes_on=False,
    ),
    Scenario(
        "train-scorer",
        lambda given: [
            *("train-scorer", "--model", str(given.checkpoint), "--data", str(given.texts)),
            *("--output", "trained.safetensors", "--passes", "3", "--tokens", "480"),
            *("--repeated-passes", "2"),
            *("--gap", "48", "--facts", "1", "--steps", "8"),
        ],
        tensors,
        tensors,
    ),
    Scenario(
        "train-gate",
        lambda given: [
            *("train-gate", "--model", str(given.checkpoint), "--data", str(given.texts)),
            *(*LENGTHS, "--samples", "8", "--segments", "3", "--held-out-samples", "2"),
            *("--output", "trained.safetensors", "--token-cache", "cache"),
        ],
        tensors,
        tensors,
    ),
    Scenario(
        "evaluate",
        lambda given: [
            *("evaluate", "passkey", "--model", str(given.checkpoint), *CARRY),
            *("--data", str(given.texts), "--lengths", "340,420", "--samples", "2"),
            *("--facts", "2", "--json", "rows.json"),
        ],
        rows,
        rows,
    ),
    Scenario(
        "read",
        lambda given: ["read", str(given.artifact), str(given.document), "--output", "s.session"],
        session,
        session,
    ),
    Scenario(
        "chat",
        lambda given: [
            *("chat", str(given.artifact), "--session", "s.session", "--temperature", "0"),
            *("--repetition-penalty", "1", "--max-new-tokens", "8"),
        ],
        session,
        session,
        stdin="".join(f"{turn}\n" for turn in TURNS),
        goes_on=False,
    ),
)

TRIED = SCENARIOS
"""All with `make faults`; `make test` leaves out train-gate, which writes as train-scorer does."""
if "EDGEINFINITE_KILLS" not in os.environ:
    TRIED = tuple(scenario for scenario in SCENARIOS if scenario.name != "train-gate")
