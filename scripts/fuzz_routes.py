"""Runs Schemathesis, guided by `/openapi.json`, against `edgeinfinite serve` with a key.

    python -m venv V; V/bin/pip install schemathesis==4.32.5
    python scripts/fuzz_routes.py ARTIFACT V/bin/schemathesis --seconds 120 --json row.json

All of its checks hold but one: a request that its schema takes may be refused where its fields
contradict each other, or where the model can't do what they ask for (`positive_data_acceptance`).
The exit code is 1 if it finds something.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

from record_clients import served

KEY = "a-key-of-the-fuzzer"


def main() -> int:
    """Writes one row: what was tried, and what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("schemathesis", type=Path)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    environment = os.environ | {"EDGEINFINITE_API_KEY": KEY}
    with served(arguments.artifact, environment) as port, tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            *(str(arguments.schemathesis), "run", f"http://127.0.0.1:{port}/openapi.json"),
            *("--header", f"Authorization: Bearer {KEY}", "--continue-on-failure"),
            *("--exclude-checks", "positive_data_acceptance", "--no-color"),
            *("--phases", "coverage,fuzzing", "--max-time", str(arguments.seconds)),
            *("--seed", str(arguments.seed), "--report-json-path", str(report)),
        ]
        code = subprocess.run(command, cwd=folder, check=False).returncode
        said = json.loads(report.read_text(encoding="utf-8"))
    if arguments.json is not None:
        row = {
            "schemathesis": said["schemathesis_version"],
            "seed": said["seed"],
            "seconds": round(said["running_time"]),
            "operations": said["operations"]["tested"],
            "cases": said["test_cases"]["generated"],
            "failures": said["test_cases"]["unique_failures"],
            "answered": {path: _answered(one) for path, one in said["valid_rates"].items()},
        }
        arguments.json.write_text(f"{json.dumps([row], indent=1)}\n", encoding="utf-8")
    return code


def _answered(rates: dict[str, dict[str, int]]) -> list[int]:
    """Of the requests that the schema takes, how many were answered, and of how many."""
    counts = [sum(phase.values()) for phase in rates.values()]
    return [sum(phase["accepted"] for phase in rates.values()), sum(counts)]


if __name__ == "__main__":
    raise SystemExit(main())
