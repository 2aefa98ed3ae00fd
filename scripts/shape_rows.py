"""Gathers what was measured of models in their real shapes as rows of benchmarks/shapes/.

    python scripts/shape_rows.py FOLDER OUTPUT NAME...

FOLDER has for each NAME of `model_shapes.py` the artifact NAME.edge, its export's NAME.export.log
(by `/usr/bin/time -v`), the file NAME.Q4_0.gguf, and NAME-LENGTH.json of `edgeinfinite bench
--json` for any lengths. OUTPUT, which is benchmarks/shapes, gets exports.json, and NAME.json with
the rows of all lengths; sources.json above it is told where they are from.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from edgeinfinite.artifact.manifest import load_manifest

_PEAK = re.compile(r"Maximum resident set size \(kbytes\): (\d+)")
_TIMES = re.compile(r"(?:User|System) time \(seconds\): ([\d.]+)")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--machine", default="2 x86_64 cores", help="where it was measured")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    export = "edgeinfinite export --model NAME --quantize int4 --output NAME.edge"
    rows = [exported(options.folder, name) for name in options.names]
    document = {"command": "export", "rows": rows}
    _write(options.output / "exports.json", document, export, options.machine)
    for name in options.names:
        document = measured(options.folder, name)
        counts = {row["prompt_tokens"]: row["repeats"] for row in document["rows"]}
        lengths = ", ".join(f"{length} with --repeats {n}" for length, n in counts.items())
        bench = f"edgeinfinite bench {name}.edge --peers llama.cpp:f16 --model {name}.Q4_0.gguf"
        command = f"{bench} --lengths {lengths}"
        _write(options.output / f"{name}.json", document, command, options.machine)


def exported(folder: Path, name: str) -> dict[str, Any]:
    """What exporting took, and what came of it; seconds are those of all its threads."""
    log = (folder / f"{name}.export.log").read_text(encoding="utf-8")
    peak, times = _PEAK.search(log), _TIMES.findall(log)
    if peak is None or len(times) != 2:
        raise SystemExit(f"{name}.export.log isn't by /usr/bin/time -v")
    manifest = load_manifest(folder / f"{name}.edge", check_files=False)
    return {
        "model": name,
        "parameters": manifest.backbone.parameters,
        "cpu_seconds": sum(map(float, times)),
        "peak_rss_bytes": 1024 * int(peak[1]),
        "weights_bytes": manifest.files["weights.data"].size,
        "gguf_bytes": (folder / f"{name}.Q4_0.gguf").stat().st_size,
    }


def measured(folder: Path, name: str) -> dict[str, Any]:
    """The documents of all lengths as one, the shortest first."""
    documents = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in folder.glob(f"{name}-*.json")
        if path.stem.removeprefix(f"{name}-").isdigit()
    ]
    if not documents:
        raise SystemExit(f"{folder} has no {name}-LENGTH.json")
    rows = [row for found in documents for row in found["rows"]]
    rows.sort(key=lambda row: (row["prompt_tokens"], row["system"]))
    return documents[0] | {"rows": rows}


def _write(path: Path, document: dict[str, Any], command: str, machine: str) -> None:
    """Writes rows, and in sources.json what they are of; rows that stay keep what is told there."""
    text = json.dumps(document, indent=1) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.write_text(text, encoding="utf-8")
    head = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    sources = path.parent.parent / "sources.json"
    found = json.loads(sources.read_text(encoding="utf-8"))
    found[f"{path.parent.name}/{path.name}"] = {
        "command": command,
        "date": f"{datetime.date.today()}",
        "commit": commit,
        "machine": machine,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    sources.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
