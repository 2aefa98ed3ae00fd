"""The command itself: it starts, is killed, and starts again with what it had saved."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

LONG = "The otter swam down the river and met a heron. " * 40


@contextmanager
def command(
    artifact: Path, *options: str, run: tuple[str, ...] = ("-m", "edgeinfinite.cli")
) -> Iterator[tuple[subprocess.Popen[str], openai.OpenAI]]:
    started = [sys.executable, *run, "serve", str(artifact), "--port", "0"]
    process = subprocess.Popen([*started, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://127.0.0.1:\d+/v1", line)
    assert found, line
    try:
        yield process, openai.OpenAI(base_url=found[0], api_key="none", max_retries=0, timeout=60)
    finally:
        process.kill()
        process.wait()


def ask(client: openai.OpenAI, *texts: str) -> openai.types.chat.ChatCompletion:
    messages: list = [
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)
    ]
    return client.chat.completions.create(
        model="tiny", messages=messages, temperature=0, max_tokens=8
    )


def files(folder: Path) -> list[str]:
    """The names of the saved states; a state that is being written lies in a hidden folder."""
    found = folder.rglob("[0-9]*.session")
    return sorted(path.name for path in found if not path.parent.name.startswith("."))


def test_a_server_that_is_killed_loses_nothing_saved(artifact: Path, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    with command(artifact, "--cache-dir", str(folder)) as (process, client):
        first = ask(client, LONG)
        end = time.monotonic() + 20
        while len(files(folder)) < 3:  # a long prompt before its end, its end, its answer's
            assert time.monotonic() < end, files(folder)
            time.sleep(0.05)
        saved = files(folder)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert files(folder) == saved
    with command(artifact, "--cache-dir", str(folder)) as (_, client):
        answer = first.choices[0].message.content or ""
        second = ask(client, LONG, answer, "And then?")
        assert second.usage is not None and second.usage.prompt_tokens_details is not None
        cached = second.usage.prompt_tokens_details.cached_tokens
        assert cached is not None and cached >= len(LONG)


def test_it_ends_at_once_when_it_is_told_to_also_amid_an_answer(artifact: Path) -> None:
    with command(artifact) as (process, client):
        stream = client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": LONG}],
            max_tokens=1_000_000,
            logit_bias={"1": -100},  # no stop token
            stream=True,
        )
        pieces = iter(stream)  # kept, or the client would leave
        next(pieces)
        process.terminate()
        assert process.wait(20) == 143
        assert process.stderr is not None and "Traceback" not in process.stderr.read()


HANGING = """
import sys, threading
from edgeinfinite.cli import main
from edgeinfinite.runtime_py.server.answers import Answers
from edgeinfinite.runtime_py.server.jobs import Jobs

def hang(*_, **__):
    print("hangs", file=sys.stderr, flush=True)
    threading.Event().wait()

Answers.answer = hang
Jobs.close.__defaults__ = (0.5,)  # seconds
sys.exit(main(sys.argv[1:]))
"""


def test_a_request_that_hangs_does_not_keep_it(artifact: Path) -> None:
    """As the tokenizer does where memory ends while it starts threads."""
    with command(artifact, run=("-c", HANGING)) as (process, client):
        asking = threading.Thread(
            target=pytest.raises, args=(openai.APIError, ask, client, "hello")
        )
        asking.start()
        assert process.stderr is not None and process.stderr.readline() == "hangs\n"
        process.terminate()
        assert process.wait(20) == 1
        assert process.stderr.read() == "note: a request doesn't end; the server ends without it\n"
        asking.join(20)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "give --api-key"),
        (["--port", "99999"], "give 0 to 65535"),
        (["--parallel", "0"], "give at least 1"),
        (["--cache-dir", "/dev/null/states"], "Not a directory"),
    ],
)
def test_wrong_options_are_one_line(artifact: Path, options: list[str], says: str) -> None:
    started = [sys.executable, "-m", "edgeinfinite.cli", "serve", str(artifact), *options]
    done = subprocess.run(started, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1
