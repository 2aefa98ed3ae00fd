"""Disks that are full, folders that can't be written, too little memory, at random steps.

Whatever fails says so in one line, leaves no half file, and what was there stays; with room again
the same command ends as one that always had it. `make faults` does it 200 times for each command.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from faults.killing import Zygote, names, run
from faults.limits import disk, forbid_writing, resize
from faults.scenarios import TRIED, Given, Scenario
from faults.serving import answer, is_running, questions, served, states_in
from tiny_artifact import tiny_artifact, tiny_checkpoint
from tiny_texts import tiny_texts

from edgeinfinite.artifact.session_file import read_session_file
from edgeinfinite.files import remove

TIMES = int(os.environ.get("EDGEINFINITE_KILLS", "1"))
NAMES = [scenario.name for scenario in TRIED]
ROOM = 4096
"""Kilobytes, more than any of the commands write."""

LEAST_MEMORY, MOST_MEMORY = 1 << 14, 1 << 27
"""Bytes beyond what the process has when the command begins; the second is enough for none."""


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


@dataclass(frozen=True)
class Whole:
    """A run that had room: its folder, what it printed, and what it came to."""

    folder: Path
    printed: Path
    result: Any
    said: str


@pytest.fixture(scope="module", params=TRIED, ids=NAMES)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return request.param


@pytest.fixture(scope="module")
def whole(scenario: Scenario, zygote: Zygote, given: Given, tmp_path_factory) -> Whole:
    folder, printed = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("printed")
    run(zygote, scenario, given, folder, printed=printed)
    return Whole(folder, printed, scenario.finished(folder), (printed / "stdout").read_text())


def in_one_line(errors: str) -> bool:
    """Whether the error is a line of ours, and nothing is a traceback."""
    return "Traceback" not in errors and errors.splitlines()[-1].startswith("edgeinfinite: error: ")


def kilobytes(folder: Path) -> int:
    """What the files of a folder take on a disk."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) // 2


def ends_well(scenario: Scenario, zygote: Zygote, given: Given, folder: Path, whole: Whole) -> None:
    """With room the same command ends as the whole run did, and the folder is empty again."""
    run(zygote, scenario, given, folder, printed=whole.printed)
    assert scenario.finished(folder) == whole.result
    assert names(folder) == names(whole.folder), "something stays for ever"
    for path in folder.iterdir():
        remove(path)


def test_a_full_disk_is_one_line_and_the_next_run_ends_the_work(
    scenario: Scenario, zygote: Zygote, given: Given, tmp_path: Path, whole: Whole
) -> None:
    random, full, most = np.random.default_rng(1), 0, kilobytes(whole.folder) // 4
    with disk(tmp_path / "disk", kilobytes=ROOM) as folder:
        for _ in range(TIMES):
            resize(folder, 4 * int(np.exp(random.uniform(0.0, np.log(most)))))
            argv = scenario.argv(given)
            pid = zygote.start(argv, folder, scenario.stdin, printed=whole.printed)
            code, errors = zygote.wait(pid), (whole.printed / "stderr").read_text()
            left = scenario.sound(folder)
            full += left != whole.result
            if scenario.name == "chat":  # a conversation is worth more than its file
                assert (whole.printed / "stdout").read_text() == whole.said
            if left != whole.result:
                assert code == 2 and in_one_line(errors), errors
            else:
                assert code == 0, errors
            assert "Traceback" not in errors, errors
            resize(folder, ROOM)
            ends_well(scenario, zygote, given, folder, whole)
    print(f"{scenario.name}: {full} of {TIMES} disks were full")


def test_a_folder_that_cannot_be_written_is_one_line_before_the_work(
    scenario: Scenario, zygote: Zygote, given: Given, tmp_path: Path, whole: Whole
) -> None:
    with disk(tmp_path / "disk", kilobytes=ROOM) as folder:
        forbid_writing(folder)
        argv = scenario.argv(given)
        pid = zygote.start(argv, folder, scenario.stdin, printed=whole.printed)
        code, errors = zygote.wait(pid), (whole.printed / "stderr").read_text()
        assert code == 2 and in_one_line(errors), errors
        assert len(errors.splitlines()) == 1, "notes come after the work has begun"
        assert not (whole.printed / "stdout").read_text()


def test_too_little_memory_leaves_no_half_file_and_the_next_run_ends_the_work(
    scenario: Scenario, zygote: Zygote, given: Given, tmp_path: Path, whole: Whole
) -> None:
    random, failed, lines = np.random.default_rng(2), 0, 0
    span = np.log(LEAST_MEMORY), np.log(MOST_MEMORY)
    for _ in range(TIMES):
        memory = int(np.exp(random.uniform(*span)))
        argv = scenario.argv(given)
        pid = zygote.start(argv, tmp_path, scenario.stdin, printed=whole.printed, memory=memory)
        code, errors = zygote.wait(pid), (whole.printed / "stderr").read_text()
        left = scenario.sound(tmp_path)
        assert code or left == whole.result, errors
        failed += code != 0
        lines += code == 2 and in_one_line(errors)
        ends_well(scenario, zygote, given, tmp_path, whole)
    print(f"{scenario.name}: {failed} of {TIMES} ran out of memory, {lines} said so in one line")


def test_a_server_without_room_for_its_states_answers_the_same(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    (command, client), texts = served(given), questions(given, 4)
    random = np.random.default_rng(3)
    answers: set[tuple[str, ...]] = set()
    whole = most = 0  # the kilobytes and the number of all states
    with disk(tmp_path / "disk", kilobytes=ROOM) as folder:
        for run_number in range(TIMES + 1):
            if run_number:
                resize(folder, 4 * int(np.exp(random.uniform(0.0, np.log(whole // 5)))))
            pid = zygote.start(command, folder, printed=tmp_path)
            try:
                answers.add(tuple(answer(client, text) for text in texts))
            finally:
                os.kill(pid, signal.SIGTERM)
                code = zygote.wait(pid)
            errors = (tmp_path / "stderr").read_text()
            assert code == 128 + signal.SIGTERM and "Traceback" not in errors, errors
            states = [read_session_file(path) for path in states_in(folder)]
            if run_number:
                assert 4 * len(states) <= 3 * most
                assert "a state isn't kept on disk" in errors
            else:
                whole, most = kilobytes(folder), len(states)
                assert most >= len(texts) and "isn't kept" not in errors
            resize(folder, ROOM)
            for path in folder.iterdir():
                remove(path)
    assert len(answers) == 1


def test_a_server_that_cannot_write_its_states_says_so_before_it_listens(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    with disk(tmp_path / "disk", kilobytes=ROOM) as folder:
        forbid_writing(folder)
        pid = zygote.start(served(given)[0], folder, printed=tmp_path)
        code, errors = zygote.wait(pid), (tmp_path / "stderr").read_text()
    assert code == 2 and in_one_line(errors), errors


def test_a_server_with_too_little_memory_leaves_whole_states_and_the_next_one_answers(
    zygote: Zygote, given: Given, tmp_path: Path
) -> None:
    (command, client), texts = served(given), questions(given, 3)
    random, answers, asked, refused = np.random.default_rng(4), set(), 0, 0
    little = np.exp(random.uniform(np.log(1 << 26), np.log(1 << 30), TIMES))
    (tmp_path / "printed").mkdir()
    for memory in [None, *map(int, little), None]:
        pid = zygote.start(command, tmp_path, printed=tmp_path / "printed", memory=memory)
        for text in texts:
            asked += 1
            try:
                answers.add((text, answer(client, text, alive=lambda pid=pid: is_running(pid))))
            except (openai.APIError, AssertionError):
                assert memory is not None, "a server with memory enough refused"
                refused += 1
        os.kill(pid, signal.SIGTERM)  # one that has ended waits for its `wait`
        zygote.wait(pid)
        for path in states_in(tmp_path):
            read_session_file(path)
    assert len(answers) == len(texts), "an answer came out otherwise"
    print(f"serve: {refused} of {asked} requests had no answer for lack of memory")
