"""Progress of long work: a bar on a terminal, or what the caller gave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from edgeinfinite.export.backend import Progress


@contextmanager
def shown(progress: Progress | None) -> Iterator[Progress]:
    """What to report to.

    Args:
        progress: see `Progress`; None shows a bar if stderr is a terminal.
    """
    if progress is not None:
        yield progress
        return
    form = "{desc}: {bar} {elapsed}"
    with tqdm(total=100, file=sys.stderr, disable=None, bar_format=form) as bar:

        def show(what: str, done: float) -> None:
            bar.set_description_str(what)
            bar.n = round(100 * done)
            bar.refresh()

        yield show
