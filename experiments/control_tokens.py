"""What it costs to keep a text's control tokens apart from the template's (control_tokens.md).

    python experiments/control_tokens.py ARTIFACT...

First how long a megabyte of text is searched for control tokens, one after the other and by their
beginnings; then what a second tokenizer takes, as a copy by JSON and with the model shared. Each
tokenizer is made in a process of its own. Linux only.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from edgeinfinite.runtime_py.text.renamed_tokens import RenamedTokens, _copied
from edgeinfinite.runtime_py.text.replaced import Names
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

TEXT = "word " * 200_000
SHARED, COPIED = "shared", "copied"


def anonymous_mb() -> float:
    """Memory of this process that no file backs."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1e3


def seconds(work: Callable[[], object]) -> float:
    """What a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def second_tokenizer(folder: Path, way: str) -> None:
    """Prints time and memory of making it."""
    tokenizer = load_tokenizer(folder)
    names = {name: f"\ufdd2{i}\ufdd3" for i, name in enumerate(tokenizer._control._all)}
    make = _copied if way == COPIED else RenamedTokens
    before = anonymous_mb()
    kept = []
    took = seconds(lambda: kept.append(make(tokenizer._tokenizer, names)))
    print(f"  second tokenizer, {way}: {took:.3f} s, {anonymous_mb() - before:.1f} MB")


def searching(folder: Path) -> None:
    """Prints how long a text without control tokens is searched for them."""
    names = load_tokenizer(folder)._control._all
    found = Names(names)
    print(f"{folder.name}: {len(names):,} control tokens")
    print(f"  one by one: {seconds(lambda: any(name in TEXT for name in names)):.3f} s a MB")
    print(f"  by beginnings: {seconds(lambda: found.are_in(TEXT)):.3f} s a MB", flush=True)


def main() -> None:
    """Prints the figures of every artifact."""
    if sys.argv[1] in (SHARED, COPIED):
        second_tokenizer(Path(sys.argv[2]), sys.argv[1])
        return
    for folder in sys.argv[1:]:
        searching(Path(folder))
        for way in (COPIED, SHARED):
            subprocess.run([sys.executable, __file__, way, folder], check=True)


if __name__ == "__main__":
    main()
