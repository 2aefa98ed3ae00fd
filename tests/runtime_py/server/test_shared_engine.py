"""One engine, taken in turns."""

from __future__ import annotations

import itertools
import threading
import time

from edgeinfinite.runtime_py.server.shared_engine import FairLock


def test_those_who_wait_get_their_turn_in_the_order_in_which_they_asked() -> None:
    lock, order = FairLock(), []

    def take(number: int) -> None:
        with lock:
            order.append(number)

    with lock:
        threads = []
        for number in range(6):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(lock._waiting) <= number:
                time.sleep(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_who_asks_again_at_once_goes_behind_those_who_wait() -> None:
    lock, order = FairLock(), []
    stop = threading.Barrier(2)

    def take(name: str) -> None:
        stop.wait()
        for _ in range(50):
            with lock:
                order.append(name)
                time.sleep(0.0005)

    threads = [threading.Thread(target=take, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    middle = order[5:85]
    assert sum(one != other for one, other in itertools.pairwise(middle)) > 70


def test_one_at_a_time_and_an_error_hands_on() -> None:
    lock, inside, most = FairLock(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            try:
                with lock:
                    inside += 1
                    most = max(most, inside)
                    inside -= 1
                    raise KeyError
            except KeyError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1 and inside == 0
