"""kill -9 at random points: nothing is lost but the unfinished step, no half file has a final name.

`make faults` kills every command 200 times; the tests do it a few times.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import openai
import pytest
from faults.killing import Kills, Zygote, kill_often, run
from faults.scenarios import CARRY, SCENARIOS, TRIED, TURNS, Given, Scenario, session
from faults.serving import answer, questions, served, states_in
from tiny_artifact import tiny_artifact, tiny_checkpoint
from tiny_qwen3_5 import tiny_qwen3_5
from tiny_texts import tiny_texts

from edgeinfinite.artifact.session_file import read_session_file

KILLS = int(os.environ.get("EDGEINFINITE_KILLS", "2"))
NAMES = [scenario.name for scenario in TRIED]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Given:
    folder = tmp_path_factory.mktemp("given")
    document = folder / "long.txt"
    document.write_text("The otter swam down the river and met a heron. " * 300)
    checkpoint = tiny_checkpoint(folder / "checkpoint")
    (folder / "texts").mkdir()
    texts = tiny_texts(folder / "texts", 4)
    return Given(checkpoint, tiny_artifact(folder / "artifact"), texts, document)


@pytest.mark.parametrize("scenario", TRIED, ids=NAMES)
def test_a_killed_command_leaves_whole_files_and_its_next_run_ends_the_same(
    scenario: Scenario, zygote: Zygote, given: Given, tmp_path: Path, record_property
) -> None:
    found = kill_often(zygote, scenario, given, tmp_path, KILLS)
    record_property("kills", f"{scenario.name}: {told(found)}")
    print(f"{scenario.name}: {told(found)}")


def test_a_killed_reading_goes_on_from_a_recurrent_state(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    """Delta rules can't be computed again from what a cache holds: the file has to have them."""
    model = tiny_qwen3_5(("linear_attention", "full_attention"))
    given = replace(given, artifact=tiny_artifact(tmp_path / "artifact", *CARRY, model=model))
    read = next(scenario for scenario in SCENARIOS if scenario.name == "read")
    run(zygote, read, given, tmp_path / "whole")
    (tmp_path / "killed").mkdir()
    pid, saved = zygote.start(read.argv(given), tmp_path / "killed"), tmp_path / "killed/s.session"
    end = time.monotonic() + 60
    while not saved.exists():
        assert time.monotonic() < end, (tmp_path / "killed/stderr").read_text()
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    assert zygote.wait(pid) == -signal.SIGKILL
    left = read_session_file(saved).tensors
    assert len(left["unread"]) > 0
    assert np.any(left["recurrent_state_0"])
    run(zygote, read, given, tmp_path / "killed")
    assert session(tmp_path / "killed") == session(tmp_path / "whole")


def test_a_killed_server_keeps_whole_states_and_answers_the_same_again(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    command, client = served(given)
    text, random, answers, kept = given.document.read_text(), np.random.default_rng(0), set(), 0
    for kill in range(KILLS + 1):
        pid = zygote.start(command, tmp_path)
        try:
            answers.add(answer(client, text))
            if kill < KILLS:
                time.sleep(random.uniform(0.0, 0.3))
                ask_without_waiting(client, questions(given, 3))
                time.sleep(random.uniform(0.0, 1.0))
        finally:
            os.kill(pid, signal.SIGKILL)
            zygote.wait(pid)
        kept += sum(bool(read_session_file(path)) for path in states_in(tmp_path))
    assert len(answers) == 1
    assert kept > 0
    print(f"serve: {KILLS} kills survived, {kept} states read again")


def ask_without_waiting(client: openai.OpenAI, texts: list[str]) -> None:
    """Requests that the kill will leave unanswered, or not."""
    for text in texts:
        thread = threading.Thread(target=ask, args=(client, text), daemon=True)
        thread.start()


def ask(client: openai.OpenAI, text: str) -> None:
    with suppress(openai.APIError, AssertionError):
        answer(client, text)


def told(found: Kills) -> str:
    return f"{found.killed} kills survived, {len(found.left)} different states left behind"


def test_a_killed_chat_keeps_every_answer_but_the_last(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    """Its states are those of a chat that ended after so many turns."""
    chat = next(scenario for scenario in SCENARIOS if scenario.name == "chat")
    states: list[str | None] = [None]
    for turns in range(1, len(TURNS) + 1):
        typed = "".join(f"{turn}\n" for turn in TURNS[:turns])
        part = Scenario(chat.name, chat.argv, chat.sound, chat.finished, stdin=typed)
        run(zygote, part, given, tmp_path / str(turns))
        states.append(session(tmp_path / str(turns)))
    assert len(set(states)) == len(states)
    (tmp_path / "kills").mkdir()
    found = kill_often(zygote, chat, given, tmp_path / "kills", KILLS)
    assert all(left in states for left in found.left)
