"""A soak passes a sound artifact, finds what is broken, and goes on where it was killed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from manifest_edit import edit_manifest
from tiny_artifact import tiny_artifact

from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.soak.drift import SummingEngine
from edgeinfinite.evaluation.soak.options import SoakOptions
from edgeinfinite.evaluation.soak.probes import restored, split_divergence
from edgeinfinite.evaluation.soak.report import failures
from edgeinfinite.evaluation.soak.run import Soak, SoakRow
from edgeinfinite.evaluation.soak.stream import TextStream, pieces
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

TEXT = "\n\n".join(f"Paragraph {n} of a text about {n * n} things." for n in range(40))
OPTIONS = SoakOptions(tokens=2000, stretches=4)
ROW = SoakRow(10, 0, 1.0, 50_000_000, {}, {}, fork_ok=True, split_kl=0.0, drift=None)


@pytest.fixture(scope="module")
def carry(tmp_path_factory) -> Path:
    options = ("--policy", "carry", "--recall-slots", "32", "--scorer", "untrained")
    return tiny_artifact(tmp_path_factory.mktemp("carry") / "a", *options)


@pytest.fixture(scope="module")
def reencode(tmp_path_factory) -> Path:
    options = ("--policy", "reencode", "--gate", "untrained")
    return tiny_artifact(tmp_path_factory.mktemp("reencode") / "a", *options)


def stream_of(folder: Path) -> TextStream:
    return TextStream(load_tokenizer(folder), TEXT, 0)


@pytest.mark.parametrize("policy", ["carry", "reencode"])
def test_a_sound_artifact_passes_and_its_rows_are_written(policy, request, tmp_path, capsys):
    folder = request.getfixturevalue(policy)
    text, rows, plot = tmp_path / "t.txt", tmp_path / "rows.json", tmp_path / "p.png"
    text.write_text(TEXT)
    command = ["soak", str(folder), "--tokens", "2000", "--stretches", "4", "--text", str(text)]
    assert main([*command, "--json", str(rows), "--plot", str(plot)]) == 0
    found = json.loads(rows.read_text())["rows"]
    assert [row["tokens_read"] for row in found] == [500, 1000, 1500, 2000]
    assert all(row["fork_ok"] and row["split_kl"] < 1e-6 for row in found)
    assert (found[-1]["drift"] is None) == (policy == "carry")
    assert "4 times saved and restored bit for bit" in capsys.readouterr().out
    assert plot.stat().st_size > 10_000


def test_a_killed_run_goes_on_to_the_same_rows(reencode, tmp_path):
    engine, stream = load_engine(reencode), stream_of(reencode)
    whole = Soak(engine, stream, OPTIONS, tmp_path / "whole")
    killed = Soak(engine, stream, OPTIONS, tmp_path / "killed")
    for _ in range(4):
        whole.read_stretch(lambda new: None)
    for _ in range(2):
        killed.read_stretch(lambda new: None)
    again = Soak(engine, stream, OPTIONS, tmp_path / "killed")
    assert again.tokens_read == 1000
    while not again.done:
        again.read_stretch(lambda new: None)
    assert [timeless(row) for row in again.rows] == [timeless(row) for row in whole.rows]


def timeless(row: SoakRow) -> SoakRow:
    return replace(row, tokens_per_s=0.0, rss_bytes=None)


def test_without_its_sums_a_run_goes_on_without_a_drift(reencode, tmp_path):
    engine, stream, path = load_engine(reencode), stream_of(reencode), tmp_path / "s"
    first = Soak(engine, stream, OPTIONS, path)
    assert first.read_stretch(lambda new: None).drift is not None
    (tmp_path / "s.sums.npz").unlink()
    assert Soak(engine, stream, OPTIONS, path).read_stretch(lambda new: None).drift is None


def test_a_file_of_other_options_or_of_a_chat_is_refused(carry, tmp_path):
    engine, stream, path = load_engine(carry), stream_of(carry), tmp_path / "s"
    Soak(engine, stream, OPTIONS, path).read_stretch(lambda new: None)
    with pytest.raises(EdgeInfiniteError, match="other options"):
        Soak(engine, stream, replace(OPTIONS, seed=1), path)
    restored(Session(engine), path, {})
    with pytest.raises(EdgeInfiniteError, match="no soak's file"):
        Soak(engine, stream, OPTIONS, path)


def test_a_file_of_another_artifact_of_the_same_model_is_refused(carry, tmp_path):
    stream, path = stream_of(carry), tmp_path / "s"
    Soak(load_engine(carry), stream, OPTIONS, path).read_stretch(lambda new: None)
    other = Path(shutil.copytree(carry, tmp_path / "other"))
    edit_manifest(other, lambda manifest: manifest["quantization"].update(recipe="another"))
    load_session(load_engine(other), path)  # a session goes on there, a measurement doesn't
    with pytest.raises(EdgeInfiniteError, match="another artifact"):
        Soak(load_engine(other), stream, OPTIONS, path)
    assert Soak(load_engine(carry), stream, OPTIONS, path).rows


def test_sums_that_lose_digits_are_seen(reencode):
    class Losing:
        """Loses what is below a thousandth of the sums, as short floats would."""

        def __init__(self, engine):
            self._engine = engine

        def __getattr__(self, name):
            return getattr(self._engine, name)

        def compress_memory(self, state):
            self._engine.compress_memory(state)
            memory = state.arrays["memory"]
            step = np.abs(memory).max() / 1000
            memory[...] = np.round(memory / step) * step

    exact, losing = (SummingEngine(e) for e in (load_engine(reencode), load_engine(reencode)))
    losing._engine = Losing(losing._engine)
    tokens = stream_of(reencode).tokens(0, 1000)
    drifts = []
    for engine in (exact, losing):
        session = Session(engine)
        session.append(tokens)
        drifts.append(engine.drift(session.state))
    assert drifts[0] < 1e-6 < 1e-4 < drifts[1]


def test_other_tokens_move_the_prediction(carry):
    session, stream = Session(load_engine(carry)), stream_of(carry)
    session.append(stream.tokens(0, 100))
    tokens = stream.tokens(1, 50)
    assert split_divergence(session, tokens, [tokens[:7], tokens[7:]]) < 1e-6
    assert split_divergence(session, tokens, [tokens[:7], tokens[8:]]) > 1e-3


def test_the_text_is_the_same_wherever_a_run_goes_on(carry):
    one, other = stream_of(carry), stream_of(carry)
    one.tokens(0, 300)
    assert one.tokens(3, 200) == other.tokens(3, 200) != one.tokens(2, 200)


def test_pieces_are_the_whole_text_of_many_sizes():
    tokens = list(range(20_000))
    found = pieces(tokens, np.random.default_rng(0))
    assert [token for piece in found for token in piece] == tokens
    assert {1, 2} <= {len(piece) for piece in found} and max(map(len, found)) > 500


def test_everything_that_must_not_happen_fails():
    bad = replace(ROW, fork_ok=False, split_kl=1.0, drift=0.1, rss_bytes=100_000_000)
    assert failures([ROW]) == []
    assert [line.split(" ")[-1] for line in failures([ROW, bad])] == ["from", "nats", "off", "MB"]


def test_a_text_without_words_and_too_many_stretches_are_refused(carry, tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n\n \n")
    assert main(["soak", str(carry), "--text", str(empty)]) == 2
    assert "has no word" in capsys.readouterr().err
    assert main(["soak", str(carry), "--tokens", "5", "--stretches", "6"]) == 2
    assert "at least one token each" in capsys.readouterr().err
