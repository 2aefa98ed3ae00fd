"""`scripts/measure_default.py`: the headline first, and commands that the command line takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tree import ROOT

from edgeinfinite.cli.main import command_line

sys.path.insert(0, str(ROOT / "scripts"))
import measure_default

STEPS = measure_default.steps(Path("data"), seed=3, threads=1)


def test_the_headline_is_measured_first() -> None:
    assert list(STEPS)[:2] == ["facts", "longbench"]


@pytest.mark.parametrize("step", STEPS)
def test_the_command_line_takes_each_step(step: str) -> None:
    options = STEPS[step]
    given = "--model" if options[0] == "lm-eval" else "--artifact"
    command_line().parse_args([*options, given, "artifact", "--json", "rows.json"])


def test_the_command_line_takes_the_step_of_speed() -> None:
    options = measure_default.speed(["a", "b"], ROOT / "README.md", Path("out"))
    command_line().parse_args(options)


def test_texts_are_those_that_the_scorer_never_saw() -> None:
    names = [Path(name).name for name in measure_default.held_out(Path("data"))]
    card = measure_default.CARD.read_text(encoding="utf-8")
    held_out = card.partition("Sixteen\ndocuments were held out:")[2].partition("**Training.**")[0]
    assert len(names) == 16 and all(name in held_out for name in names)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("default.json", "7,500: 81% 0.320 nats of 48"),
        ("default-longbench.json", "artifact: 2.486 nats of 42"),
    ],
)
def test_a_step_is_summed_up_by_length_or_by_method(file: str, says: str) -> None:
    assert says in measure_default._summary(ROOT / "benchmarks" / "recall" / file)
