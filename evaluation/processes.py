"""Splits work among the processes that `accelerate launch` starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

_Item = TypeVar("_Item")
_LONGEST = timedelta(days=30)
"""How long a finished process waits for the others; torch's default is half an hour."""


@dataclass(frozen=True)
class Share:
    """This process's share of the work.

    Args:
        index: this process, from 0.
        count: number of processes.
        wait: returns when every process has called it.
    """

    index: int = 0
    count: int = 1
    wait: Callable[[], None] = lambda: None

    def of(self, items: Sequence[_Item]) -> list[_Item]:
        """The items of this process: every `count`-th, so that shares take about as long."""
        return list(items[self.index :: self.count])


ALONE = Share()


def this_share() -> Share:
    """The share of this process; everything if it wasn't launched with others."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    from accelerate import PartialState

    # Methods compute on the CPU, so processes communicate through gloo on any machine.
    state = PartialState(cpu=True, timeout=_LONGEST)
    return Share(state.process_index, state.num_processes, state.wait_for_everyone)
