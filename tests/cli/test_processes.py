"""Rows of LongBench and BABILong shared out over the processes of `accelerate launch`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from tiny_longbench import ROWS, tiny_longbench

from edgeinfinite.cli import main

CARRY = ["--policy", "carry", "--segment-length", "16", "--sink-length", "4"]
CARRY += ["--window-length", "44"]
KILLED = 3


def test_two_processes_go_on_with_what_a_killed_run_left_to_the_table_of_one(
    checkpoint, tmp_path, capsys
):
    folder, whole, out = tiny_longbench(tmp_path / "data"), tmp_path / "1.json", tmp_path / "2.json"
    command = ["evaluate", "longbench", "--model", str(checkpoint), "--data", str(folder), *CARRY]
    command += ["--methods", "empty,full,streaming", "--measures", "loss"]
    assert main([*command, "--json", str(whole)]) == 0
    expected = capsys.readouterr().out
    document = json.loads(whole.read_text())
    count = len(document["rows"])
    assert count == 3 * sum(map(len, ROWS.values()))
    left = [row | {"first_token_s": 99.0} for row in document["rows"][1 : 2 * KILLED : 2]]
    part = tmp_path / "2.json.part1"
    part.write_text(json.dumps(document | {"rows": left}))

    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        launch += ["--main_process_port", str(free.getsockname()[1])]
    done = subprocess.run(
        [*launch, "-m", "edgeinfinite.cli", *command, "--json", str(out)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # The tables, once, the same as those of one process; times apart.
    assert done.stdout.count("## nats") == 1
    assert done.stdout.partition("## ")[2] == expected.partition("## ")[2] != ""
    rows = json.loads(out.read_text())["rows"]
    places = [(row["method"], row["task"], row["row"]) for row in document["rows"]]
    assert [(row["method"], row["task"], row["row"]) for row in rows] == places
    assert [row for row in rows if row["first_token_s"] == 99.0] == left
    assert not part.exists() and not (tmp_path / "2.json.part0").exists()
