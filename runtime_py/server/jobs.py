"""Work in threads, a bounded number of pieces at once and waiting; it reports to the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.server.problems import ApiProblem

_RETRY_AFTER_S = 5
_SECONDS_TO_END = 5.0
"""More than a cancelled job takes, which ends after a chunk or a token."""


@dataclass(frozen=True)
class Failed:
    """The work ended with a problem: the last event of a job then."""

    problem: ApiProblem


class Job:
    """One piece of work: a thread puts events in, the event loop takes them out.

    Attributes:
        created: `time.perf_counter()` when it was asked for.
    """

    def __init__(self) -> None:
        self.created = time.perf_counter()
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[object] = asyncio.Queue()
        self._cancelled = threading.Event()
        self._future: Future[None] | None = None

    def emit(self, event: object) -> None:
        """Hands an event to the loop; from the job's thread."""
        with suppress(RuntimeError):  # the loop has ended, and nobody is listening
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ends the job between two chunks or tokens, or before it begins."""
        self._cancelled.set()
        if self._future is not None:
            self._future.cancel()

    async def next(self) -> object:
        """The next event; a failure is raised.

        Raises:
            ApiProblem: the work failed.
        """
        event = await self._events.get()
        if isinstance(event, Failed):
            raise event.problem
        return event

    async def events(self) -> AsyncIterator[object]:
        """All further events; None, the last, isn't yielded."""
        while (event := await self.next()) is not None:
            yield event


class Jobs:
    """Runs jobs in the order in which they come.

    Args:
        parallel: jobs at once.
        waiting: jobs that may wait for one of these to end.
    """

    def __init__(self, parallel: int, waiting: int) -> None:
        self._parallel = parallel
        self._most = parallel + waiting
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="answer")
        self._lock = threading.Lock()
        self._open: set[Job] = set()
        self._closed = False

    @property
    def running(self) -> int:
        """Jobs at work."""
        return min(len(self._open), self._parallel)

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        return len(self._open) - self.running

    def start(self, work: Callable[[Job], None]) -> Job:
        """Starts work, or queues it; from the event loop.

        Raises:
            ApiProblem: 503, too many wait already.
        """
        job = Job()
        with self._lock:
            if self._closed or len(self._open) >= self._most:
                raise ApiProblem(
                    503,
                    f"{len(self._open)} requests are at work or waiting; ask again later",
                    code="overloaded",
                    retry_after=_RETRY_AFTER_S,
                )
            try:
                future = self._threads.submit(_run, work, job)
            except RuntimeError as error:  # "can't start new thread"
                job.cancel()  # it may have been queued
                raise ApiProblem(
                    503,
                    f"the server can't start the answer: {error}; ask again later",
                    code="overloaded",
                    retry_after=_RETRY_AFTER_S,
                ) from error
            job._future = future
            self._open.add(job)
        future.add_done_callback(lambda _: self._end(job))
        return job

    def stop(self) -> None:
        """Cancels all jobs, whose clients are told so, and takes no more."""
        with self._lock:
            self._closed = True
            jobs = list(self._open)
        for job in jobs:
            job.cancel()
            job.emit(Failed(ApiProblem(503, "the server is shutting down", code="overloaded")))

    def close(self, seconds: float = _SECONDS_TO_END) -> None:
        """Cancels all jobs and waits until they have ended, for `seconds` at most (`hanging`)."""
        self.stop()
        self._threads.shutdown(wait=False)
        wait(self._unfinished(), seconds)

    @property
    def hanging(self) -> bool:
        """After `close`, whether a job hasn't ended: a thread can't be ended, only left."""
        return bool(self._unfinished())

    def _unfinished(self) -> list[Future[None]]:
        with self._lock:
            futures = [job._future for job in self._open]
        return [future for future in futures if future is not None and not future.done()]

    def _end(self, job: Job) -> None:
        with self._lock:
            self._open.discard(job)


def _run(work: Callable[[Job], None], job: Job) -> None:
    if job.cancelled():
        return
    try:
        work(job)
    except ApiProblem as problem:
        job.emit(Failed(problem))
    except EdgeInfiniteError as error:  # what a client's text brought about
        job.emit(Failed(ApiProblem(400, str(error))))
    except Exception as error:  # the server lives, the client gets one line
        job.emit(Failed(ApiProblem(500, f"the server failed: {type(error).__name__}: {error}")))
        raise
    else:
        job.emit(None)
