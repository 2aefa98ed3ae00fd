"""Grammars that ask for gigabytes: refused in one line, ended when their client leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil
import pytest
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.grammars import worker as grammar_worker
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.session.session import Cancelled
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

pytest.importorskip("llguidance")


def hostile(count: int) -> dict:
    """The intersection of patterns whose product automaton has 2**count states."""
    parts = [{"type": "string", "pattern": f".*a.{{{i}}}b.*"} for i in range(1, count + 1)]
    return {"type": "object", "properties": {"a": {"allOf": parts}}, "required": ["a"]}


@pytest.fixture(scope="module")
def guidance(tmp_path_factory: pytest.TempPathFactory) -> Guidance:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("hostile") / "tiny")
    return Guidance(load_tokenizer(folder), VOCABULARY)


def parent_of(process: psutil.Process) -> psutil.Process | None:
    """None of one that ended meanwhile."""
    try:
        return process.parent()
    except psutil.NoSuchProcess:
        return None


def busy_children() -> list[psutil.Process]:
    ours = psutil.Process(os.getpid()).children(recursive=True)
    parents = [parent_of(one) for one in ours]
    return [one for one, its in zip(ours, parents, strict=True) if its and its.pid != os.getpid()]


def seconds_of(process: psutil.Process) -> float:
    """What it has computed; 0 for one that ended meanwhile."""
    try:
        return process.cpu_times().user
    except psutil.NoSuchProcess:
        return 0.0


def until_left(count: int) -> None:
    end = time.monotonic() + 10
    while len(busy_children()) != count:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent waits shorter than the kernel would let the process run."""
    monkeypatch.setattr(grammar_worker, "COMPILE_SECONDS", 1.0)
    monkeypatch.setattr("edgeinfinite.runtime_py.answer.grammars.process._SPARE_SECONDS", 0.5)


def test_an_intersection_that_explodes_is_refused_in_one_line(guidance, short) -> None:
    start = time.monotonic()
    with pytest.raises(EdgeInfiniteError, match="too much time or memory; simplify it") as refused:
        guidance.json_schema(hostile(30))
    assert time.monotonic() - start < 10
    assert "\n" not in str(refused.value)
    assert guidance.regex("[a-c]").allowed().any(), "the next one is answered"


def test_it_ends_when_its_client_leaves(guidance) -> None:
    start = time.monotonic()
    with pytest.raises(Cancelled):
        guidance.json_schema(hostile(30), cancelled=lambda: time.monotonic() - start > 0.5)
    assert time.monotonic() - start < 3
    end = time.monotonic() + 10
    while [one for one in busy_children() if seconds_of(one) > 0.3]:
        assert time.monotonic() < end, "its process goes on"
        time.sleep(0.05)


def test_a_grammar_that_nobody_holds_has_no_process(guidance) -> None:
    until_left(0)
    grammar = guidance.regex("[ab]{3}")
    until_left(1)
    del grammar
    until_left(0)


def test_a_host_that_the_system_ended_is_started_again(guidance) -> None:
    until_left(0)
    grammar = guidance.regex("[ab]{3}")  # its process is the host's child
    until_left(1)
    host = busy_children()[0].parent()
    del grammar
    host.kill()
    host.wait(5)
    assert guidance.regex("[a-c]").allowed().any()


def test_the_search_for_the_fault_ends_when_its_client_leaves(guidance, monkeypatch) -> None:
    asked: list[dict] = []
    refusal = Guidance._refusal

    def counted(self: Guidance, source: dict, cancelled: Callable[[], bool] | None) -> str | None:
        asked.append(source)
        return refusal(self, source, cancelled)

    monkeypatch.setattr(Guidance, "_refusal", counted)
    patterns = {f"p{i}": {"type": "string", "pattern": f"^a{{{i}}}$"} for i in range(1, 40)}
    schema = {"type": "object", "properties": patterns | {"z": {"pattern": "^(?!b)c$"}}}
    with pytest.raises(Cancelled):
        guidance.json_schema(schema, cancelled=lambda: len(asked) > 1)
    assert len(asked) == 2
    with pytest.raises(EdgeInfiniteError, match=r"properties\.z\.pattern .* look-around"):
        guidance.json_schema(schema)
