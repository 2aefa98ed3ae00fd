"""A tiny random Llama that reads and writes bytes, and its artifacts, really exported."""

from __future__ import annotations

import codecs
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_artifact import GEOMETRY, tiny_checkpoint

from edgeinfinite.cli import main
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="session")
def artifact(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifact") / "tiny"
    command = ["export", "--model", str(checkpoint), "--output", str(folder)]
    assert main([*command, "--policy", "reencode", *GEOMETRY]) == 0
    return folder


@pytest.fixture(scope="session")
def base_artifact(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a model without a chat template."""
    folder = tmp_path_factory.mktemp("base")
    shutil.copytree(checkpoint, folder / "checkpoint")
    (folder / "checkpoint" / "chat_template.jinja").unlink()
    output = folder / "artifact"
    command = ["export", "--model", str(folder / "checkpoint"), "--output", str(output)]
    assert main([*command, "--policy", "reencode", *GEOMETRY]) == 0
    return output


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the program in a process of its own, with pipes."""

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "edgeinfinite.cli", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # `communicate` would lose what a buffer holds
            # A shell's background jobs, and so their tests, are started with Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return started


@pytest.fixture
def greedy_answer() -> Callable[[Session, list[int], Path, int], str]:
    """The greedy answer to `tokens`, at most `count` long, written as plainly as it can be."""

    def answered(session: Session, tokens: list[int], artifact: Path, count: int) -> str:
        tokenizer = load_tokenizer(artifact)
        answer: list[int] = []
        logits = session.append(tokens)
        while len(answer) < count and int(logits.argmax()) not in tokenizer.stop_ids:
            answer.append(int(logits.argmax()))
            logits = session.append(answer[-1:])
        # Half a character at the end of a random model's answer isn't shown.
        content = b"".join(tokenizer.token_bytes(token) for token in answer)
        ends = codecs.getincrementaldecoder("utf-8")("replace")
        ends.decode(content)
        return tokenizer.decode(answer).removesuffix("\ufffd" if ends.getstate()[0] else "")

    return answered
