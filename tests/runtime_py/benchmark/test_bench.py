"""`bench` measures in fresh processes, takes medians, and reports what fails."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_artifact import tiny_artifact

from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.benchmark import panels, plan
from edgeinfinite.runtime_py.benchmark.case import Case, Row, median_row
from edgeinfinite.runtime_py.benchmark.machine import (
    MachineLimits,
    machine_limits,
    with_shares,
)
from edgeinfinite.runtime_py.benchmark.panels import Line, plot_panels
from edgeinfinite.runtime_py.benchmark.plan import (
    missing_peers,
    plan_cases,
    run_case,
    run_cases,
    with_losses,
)
from edgeinfinite.runtime_py.benchmark.report import details, table
from edgeinfinite.runtime_py.benchmark.systems import PEERS
from edgeinfinite.runtime_py.benchmark.worker import prompt_of
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("bench") / "artifact")


def cases_of(artifact: Path, *lengths: int):
    return plan_cases([artifact], lengths, new_tokens=20, threads=1)


def test_a_case_is_measured_in_its_own_process(artifact):
    row = run_case(cases_of(artifact, 100)[0], time_limit=120)
    assert row.error is None
    assert row.prompt_tokens == 100 and row.new_tokens == 20
    assert row.prefill_tokens_per_s == pytest.approx(100 / row.ttft_s)
    assert row.slowest_token_s >= row.median_token_s > 0
    assert row.file_bytes == sum(
        file.stat().st_size
        for file in artifact.iterdir()
        if file.name not in ("manifest.json", "README.md")
    )


def test_the_state_is_the_same_at_any_length(artifact):
    rows = [run_case(case, time_limit=120) for case in cases_of(artifact, 60, 600)]
    assert rows[0].state_bytes == rows[1].state_bytes


def test_a_broken_artifact_and_a_passed_limit_are_rows_with_an_error(artifact, tmp_path):
    case = cases_of(artifact, 50)[0]
    broken = run_case(replace(case, model=str(tmp_path)), time_limit=120)
    assert "is not an artifact" in broken.error and broken.ttft_s is None
    late = run_case(case, time_limit=0.01)
    assert late.error == "took more than 0 s"


def test_a_system_that_failed_is_not_tried_at_greater_lengths(artifact, tmp_path):
    cases = [replace(case, model=str(tmp_path)) for case in cases_of(artifact, 50, 100)]
    rows = run_cases(cases, repeats=2, time_limit=120)
    assert [row.prompt_tokens for row in rows] == [50, 100]
    assert rows[1].error.startswith("not tried: at 50 tokens failed")


def test_rows_are_medians_and_one_failed_repeat_fails_the_row():
    row = Row("a", "int4", "reencode", "", 10, 5, 1, ttft_s=1.0)
    rows = [row, replace(row, ttft_s=9.0), replace(row, ttft_s=2.0)]
    assert median_row(rows).ttft_s == 2.0 and median_row(rows).repeats == 3
    assert median_row([*rows, replace(row, error="failed")]).error == "failed"


def test_the_table_gives_ratios_to_the_best_peer_of_the_same_length():
    ours = Row("edgeinfinite-onnx", "int4", "carry", "x", 10, 5, 1, ttft_s=1.0)
    peers = [
        Row("llama.cpp", "", "", "f16", 10, 5, 1, ttft_s=4.0),
        Row("transformers", "", "", "", 10, 5, 1, ttft_s=2.0),
        Row("llama.cpp", "", "", "f16", 20, 5, 1, ttft_s=0.1),
    ]
    line = details([ours, *peers]).splitlines()[2]
    assert "| 0.50 |" in line


def test_the_five_figures_that_decide_come_first():
    row = Row(
        "edgeinfinite-onnx",
        "int4",
        "carry",
        "x",
        8000,
        5,
        1,
        ttft_s=1.234,
        decode_tokens_per_s=99.94,
        peak_rss_bytes=3e8,
        state_bytes=2.54e7,
        nats_per_token=3.3984,
        multiply_share=1.28,
    )
    failed = replace(row, error="too slow")
    header, _, first, second = table([row, failed]).splitlines()
    assert header.startswith("| system | settings | prompt | first token, s | decode, tokens/s | ")
    assert first == "| edgeinfinite-onnx int4 | x | 8,000 | 1.23 | 99.9 | 300 | 25.4 | 3.398 |"
    assert second == "| edgeinfinite-onnx int4 | x | 8,000 | too slow |"
    assert details([row]).splitlines()[2].endswith(" | 128% |")


def test_a_picture_has_axes_from_zero_and_its_legend_beside_the_lines(tmp_path, monkeypatch):
    figures = []

    def drawn(figure, path):
        figure.canvas.draw()  # which lays it out
        figures.append(figure)

    monkeypatch.setattr(panels, "save_figure", drawn)
    grows = Line("grows", (512, 8000), ((1.0, 30.0), (276.0, 330.0)), ours=True)
    holes = Line("measured once", (512, 8000), ((2.0, None), (None, 300.0)))
    plot_panels(("Time (s)", "Memory (MB)"), (grows, holes, Line("none", (), ((), ()))), tmp_path)
    (figure,) = figures
    assert [panel.get_title() for panel in figure.axes] == ["Time (s)", "Memory (MB)"]
    for panel in figure.axes:
        assert panel.get_xlim()[0] == panel.get_ylim()[0] == 0
        assert panel.get_xscale() == panel.get_yscale() == "linear"
        assert panel.get_legend() is None
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["grows", "measured once"]
    below = min(panel.get_tightbbox().y0 for panel in figure.axes)
    assert legend.get_window_extent().y1 <= below


def test_missing_peers_are_named_with_the_command_and_unknown_ones_refused(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    lines = missing_peers(list(PEERS))
    assert len(lines) == len(PEERS)
    assert "pip install 'llama-cpp-python" in lines[0]
    with pytest.raises(EdgeInfiniteError, match="unknown peer 'vllm'"):
        missing_peers(["vllm"])


def test_one_setting_of_a_peer_can_be_chosen(artifact):
    def peers(*chosen: str):
        cases = plan_cases(
            [artifact], [10], new_tokens=1, threads=1, peers=chosen, peer_model=lambda *_: artifact
        )
        return [case.settings for case in cases[1:]]

    assert peers("llama.cpp") == list(PEERS["llama.cpp"].settings)
    assert peers("llama.cpp:q8_0", "transformers") == [
        "flash attention, swa_full off, q8_0 cache",
        *PEERS["transformers"].settings,
    ]
    with pytest.raises(EdgeInfiniteError, match=r"llama\.cpp has no setting 'q4'; it has"):
        peers("llama.cpp:q4")


def test_every_system_s_loss_on_a_text_is_measured_once_and_stands_in_all_its_rows(artifact):
    cases = plan_cases([artifact], [30, 60], new_tokens=3, threads=1)
    rows = [Row(case.system, "", "", "", case.prompt_tokens, 3, 1) for case in cases]
    text = np.random.default_rng(0).integers(0, cases[0].vocabulary, 40).tolist()
    asked = []
    with_loss = with_losses(rows, cases, text, time_limit=120, progress=asked.append)
    assert [row.prompt_tokens for row in with_loss] == [30, 60] and len(asked) == 1

    session = Session(load_engine(artifact))
    losses = []
    for token, following in itertools.pairwise(text):
        logits = torch.from_numpy(session.append([token]))
        losses.append(-logits.log_softmax(0)[following].item())
    expected = pytest.approx(np.mean(losses), abs=1e-5)
    assert all(row.nats_per_token == expected for row in with_loss)


def test_with_a_text_prompts_are_its_words_and_go_round_where_it_ends():
    case = Case("edgeinfinite-onnx", "", "", 7, 0, 1, 50, words=(3, 1, 4))
    assert prompt_of(case).tolist() == [3, 1, 4, 3, 1, 4, 3]
    drawn = prompt_of(replace(case, words=(), prompt_tokens=500))
    assert drawn.min() >= 25 and drawn.max() < 50  # none of the special ones at the start


def test_a_text_too_short_for_the_loss_is_refused(artifact, tmp_path, capsys):
    text = tmp_path / "short.txt"
    text.write_text("a few words")
    assert main(["bench", str(artifact), "--lengths", "10", "--text", str(text)]) == 2
    assert "give a text of at least 512" in capsys.readouterr().err


def test_speeds_are_shares_of_the_machine_s_limits():
    speeds = {"file_bytes": 100e6, "median_token_s": 0.01, "prefill_tokens_per_s": 500.0}
    row = Row("a", "int4", "carry", "", 10, 5, 1, **speeds)
    row = with_shares(row, MachineLimits(read_bytes_per_s=20e9, multiply_flops=400e9), 100_000_000)
    assert row.bandwidth_share == pytest.approx(0.5)
    assert row.multiply_share == pytest.approx(0.25)
    unknown = with_shares(row, MachineLimits(1.0, 1.0), None)
    assert unknown.bandwidth_share and unknown.multiply_share is None
    failed = replace(row, error="failed", file_bytes=None, prefill_tokens_per_s=None)
    failed = with_shares(failed, MachineLimits(1.0, 1.0), 1)
    assert failed.bandwidth_share is None and failed.multiply_share is None


def test_the_machine_has_limits():
    limits = machine_limits(1)
    assert limits.read_bytes_per_s > 1e8 and limits.multiply_flops > 1e8


def test_the_command_writes_rows_and_a_plot(artifact, tmp_path, capsys):
    rows, picture = tmp_path / "rows.json", tmp_path / "plot.png"
    command = ["bench", str(artifact), "--lengths", "40,80", "--new-tokens", "5", "--repeats", "1"]
    assert main([*command, "--threads", "1", "--json", str(rows), "--plot", str(picture)]) == 0
    document = json.loads(rows.read_text())
    assert document["command"] == "bench"
    assert [row["prompt_tokens"] for row in document["rows"]] == [40, 80]
    assert all(row["multiply_share"] > 0 and row["bandwidth_share"] for row in document["rows"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    # In both tables.
    assert capsys.readouterr().out.count("edgeinfinite-onnx") == 4


def test_what_was_measured_stays_when_the_rest_is_interrupted(artifact, tmp_path, monkeypatch):
    measured = []

    def run(case, time_limit):
        if case.prompt_tokens == 80:
            raise KeyboardInterrupt
        measured.append(case)
        return Row(case.system, "int4", "carry", case.settings, 40, 5, 1, ttft_s=1.0)

    monkeypatch.setattr(plan, "run_case", run)
    rows = tmp_path / "rows.json"
    command = ["bench", str(artifact), "--lengths", "40,80", "--repeats", "2", "--threads", "1"]
    assert main([*command, "--json", str(rows)]) == 130
    (row,) = json.loads(rows.read_text())["rows"]
    assert (len(measured), row["prompt_tokens"], row["repeats"]) == (2, 40, 2)
