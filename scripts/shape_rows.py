"""Gathers what was measured of models in their real shapes as rows of benchmarks/shapes/.

    python scripts/shape_rows.py FOLDER OUTPUT NAME...

FOLDER has for each NAME of `model_shapes.py` the artifact NAME.edge, the file NAME.Q4_0.gguf, and
for what was measured the export's NAME.export.log (by `/usr/bin/time -v`) and NAME-LENGTH.json of
`edgeinfinite bench --json` for any lengths. OUTPUT, which is benchmarks/shapes, gets exports.json,
and NAME.json with the rows of all lengths. Rows of what isn't in FOLDER stay, and say when they
were measured; sources.json is told where the others are from.
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

from model_shapes import SHAPES

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
    logs = [name for name in options.names if (options.folder / f"{name}.export.log").exists()]
    exports = _Rows(options.output / "exports.json", ("model",))
    exports.add({"command": "export", "rows": [exported(options.folder, name) for name in logs]})
    exports.write(export, options.machine)
    for name in options.names:
        rows = _Rows(options.output / f"{name}.json", ("prompt_tokens", "system"))
        for path in options.folder.glob(f"{name}-*.json"):
            if path.stem.removeprefix(f"{name}-").isdigit():
                rows.add(json.loads(path.read_text(encoding="utf-8")))
        counts = {row["prompt_tokens"]: row["repeats"] for row in rows.sorted()}
        lengths = ", ".join(f"{length} with --repeats {n}" for length, n in counts.items())
        bench = f"edgeinfinite bench {name}.edge --peers llama.cpp:f16 --model {name}.Q4_0.gguf"
        rows.write(f"{bench} --lengths {lengths}", options.machine)


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


class _Rows:
    """A file of rows, and what sources.json tells of it.

    Args:
        path: of the file; what it has stays, as far as nothing is added in its place.
        keys: fields that together tell rows apart.
    """

    def __init__(self, path: Path, keys: tuple[str, ...]) -> None:
        self._path, self._keys = path, keys
        self._sources = path.parent.parent / "sources.json"
        self._document: dict[str, Any] = {}
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            source = self._told()[self._name]
            self.add(json.loads(path.read_text(encoding="utf-8")))
            for row in self._rows.values():
                row.setdefault("measured", f"{source['date']}, {source['commit']}")

    def add(self, document: dict[str, Any]) -> None:
        """Takes the rows of a document, and what else it says."""
        self._document |= document
        self._rows |= {tuple(row[key] for key in self._keys): row for row in document["rows"]}

    def sorted(self) -> list[dict[str, Any]]:
        """All rows by their keys; those of the shapes keep the order of `SHAPES`."""
        order = {name: index for index, name in enumerate(SHAPES)}
        return [
            self._rows[key]
            for key in sorted(self._rows, key=lambda key: [order.get(k, k) for k in key])
        ]

    def write(self, command: str, machine: str) -> None:
        """Writes the file and its source, if something was added."""
        rows = self.sorted()
        if not rows:
            raise SystemExit(f"nothing was measured for {self._name}")
        if all("measured" in row for row in rows):
            return
        text = json.dumps(self._document | {"rows": rows}, indent=1) + "\n"
        self._path.write_text(text, encoding="utf-8")
        head = ["git", "rev-parse", "--short=8", "HEAD"]
        commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
        found = self._told()
        found[self._name] = {
            "command": command,
            "date": f"{datetime.date.today()}",
            "commit": commit,
            "machine": machine,
            "sha256": hashlib.sha256(self._path.read_bytes()).hexdigest(),
        }
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        self._sources.write_text(text, encoding="utf-8")

    @property
    def _name(self) -> str:
        return f"{self._path.parent.name}/{self._path.name}"

    def _told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._sources.read_text(encoding="utf-8"))
        return found


if __name__ == "__main__":
    main()
