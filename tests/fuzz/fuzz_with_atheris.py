"""Fuzzing guided by coverage, with libFuzzer by way of atheris: `make fuzz` runs it for hours.

    python tests/fuzz/fuzz_with_atheris.py READER [--seconds N] [--work FOLDER]

Starts with the corpus and what earlier runs left in `FOLDER/READER`. A file that brings a reader to
raise anything but a refusal is written to `FOLDER/defects`, and the run ends with an error; put the
file into the corpus as `found-*` once it is mended.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import atheris

INSTRUMENTED = ["edgeinfinite", "jinja2", "gguf", "msgspec", "pypdf", "mammoth"]
"""Packages whose branches count; of native code nothing is seen."""

SLOWEST_SECONDS = 30
MOST_MEGABYTES = 4096
LONGEST = {"document": 8000, "gguf": 8000, "manifest": 8000}


def main() -> None:
    """Fuzzes one reader until the time is over or a defect is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--work", type=Path, default=Path("build/fuzz"))
    args = parser.parse_args()
    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz.changes import changed
        from fuzz.readers import CORPUS, READERS, refusal
    reader = READERS[args.reader]

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        dice = random.Random(seed)
        made = changed(args.reader, data, dice) if dice.random() < 0.5 else b""
        return made if 0 < len(made) <= most else bytes(atheris.Mutate(data, most))

    def target(data: bytes) -> None:
        refusal(reader, data)

    found = args.work / args.reader
    defects = args.work / "defects"
    for folder in (found, defects):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={args.seconds}",
        f"-timeout={SLOWEST_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-max_len={LONGEST.get(args.reader, 4000)}",
        f"-artifact_prefix={defects}/{args.reader}-",
        "-print_final_stats=1",
    ]
    folders = [found, *(CORPUS / args.reader / kind for kind in ("read", "refused"))]
    warnings.simplefilter("ignore")
    atheris.Setup([sys.argv[0], *options, *map(str, folders)], target, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
