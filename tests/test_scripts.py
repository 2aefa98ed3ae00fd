"""What the scripts compute, on numbers that can be checked by hand."""

from __future__ import annotations

import importlib.util
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_artifact import VOCABULARY, tiny_artifact

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.engines import load_engine
from tiny import tiny_llama

SCRIPTS = Path(__file__).parents[1] / "scripts"


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def row(method: str, document: str, start: int, nats: float, tokens: int = 512) -> dict:
    place = {"bin_start": start, "bin_end": start + 512, "tokens": tokens}
    return {"method": method, "document": document, "nats_per_token": nats, **place}


def test_differences_are_paired_by_document_and_weighted_by_tokens():
    rows = [row("a", "x", 0, 9.0), row("b", "x", 0, 1.0)]  # before `start`
    rows += [row("a", "x", 512, 3.0), row("b", "x", 512, 3.2)]
    rows += [row("a", "x", 1024, 3.0, 256), row("b", "x", 1024, 3.5, 256)]
    rows += [row("a", "y", 512, 2.0), row("b", "y", 512, 2.1), row("a", "z", 512, 5.0)]
    paired = script("paired")
    values = paired.differences(rows, "a", "b", 512, math.inf)
    assert values == pytest.approx([-(0.2 * 512 + 0.5 * 256) / 768, -0.1])


def test_the_interval_is_students():
    mean, half = script("paired").interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half == pytest.approx(4.30 / math.sqrt(3))
    assert math.isnan(script("paired").interval([1.0])[1])


def test_the_demos_answers_stand_once_in_its_text_and_in_no_question():
    demo = script("demo")
    for question in demo.QUESTIONS:
        assert demo.text().count(question.answer) == 1
        assert not any(question.answer in other.ask for other in demo.QUESTIONS)


def test_an_artifact_agrees_with_itself_and_not_with_one_of_other_weights(tmp_path):
    agreement = script("agreement")
    first = load_engine(tiny_artifact(tmp_path / "first"))
    assert agreement.agreement(first, first, [range(5, 45)]) == [1.0]
    other = load_engine(
        tiny_artifact(tmp_path / "other", model=tiny_llama(vocabulary=VOCABULARY, seed=1))
    )
    (share,) = agreement.agreement(first, other, [range(5, 45)])
    pairs = zip(*(list(agreement.preferred(e, range(5, 45))) for e in (first, other)), strict=True)
    assert share == sum(a == b for a, b in pairs) / 40 < 1.0


def test_flipped_bits_are_counted_and_put_right_again(tmp_path, capsys):
    file = tmp_path / "numbers"
    file.write_bytes(bytes(64))

    def read() -> None:
        if any(file.read_bytes()[:32]):  # the second half isn't looked at
            raise EdgeInfiniteError("changed")

    refused = script("flip_bits").flipped([file], 200, read, random.Random(0))
    assert 70 < refused < 130
    assert file.read_bytes() == bytes(64)
    assert capsys.readouterr().err.count("accepted: bit") == 200 - refused


def test_a_text_that_changes_between_equal_engines_stays_as_it_is(tmp_path):
    exchange = script("cross_engine")
    folder = tiny_artifact(tmp_path / "artifact")
    engines = {name: load_engine(folder, threads=1) for name in ("one", "other")}
    text = [2 + 7 * i % 200 for i in range(200)]
    rows = exchange.Exchange(engines, text, [50, 90], 40, 5, tmp_path).rows()
    assert [(row.reader, row.taker, row.point) for row in rows] == [
        (*pair, point) for point in (50, 90) for pair in (("one", "other"), ("other", "one"))
    ]
    for row in rows:
        assert (row.state, row.logits, row.back, row.tokens_equal) == (0, 0, 0, 1)
        assert row.nats == row.nats_taker == row.nats_reader > 1
    assert exchange.distance(np.array([3.0, -4.0]), np.array([3.0, -3.0])) == 0.25
    assert len(exchange.summary(rows)) == 2
