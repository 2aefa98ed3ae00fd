"""Work that can't begin, and work that doesn't end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from edgeinfinite.runtime_py.server.jobs import Jobs
from edgeinfinite.runtime_py.server.problems import ApiProblem


def test_a_job_that_hangs_is_not_waited_for_for_ever() -> None:
    async def run() -> None:
        jobs, hangs, begun = Jobs(1, 1), threading.Event(), threading.Event()
        jobs.start(lambda _: bool(begun.set()) or hangs.wait())
        begun.wait()
        jobs.close(0.05)
        assert jobs.hanging
        hangs.set()

    asyncio.run(run())


def test_a_job_that_ends_is_waited_for() -> None:
    async def run() -> None:
        jobs, ended = Jobs(1, 1), threading.Event()

        def work(job: object) -> None:
            ended.wait(0.2)
            ended.set()

        jobs.start(work)
        await asyncio.sleep(0.05)
        jobs.close(10)
        assert ended.is_set() and not jobs.hanging

    asyncio.run(run())


def test_without_a_thread_a_job_is_refused_and_later_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        jobs = Jobs(1, 1)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            for _ in range(5):
                with pytest.raises(ApiProblem, match="can't start new thread") as caught:
                    jobs.start(lambda job: job.emit(None))
                assert caught.value.status == 503
        job = jobs.start(lambda job: job.emit("done"))
        assert [event async for event in job.events()] == ["done"]
        jobs.close(10)
        assert not jobs.hanging

    asyncio.run(run())
