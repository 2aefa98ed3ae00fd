"""Measures a default whole, the headline first, and goes on where a killed run ended.

    python scripts/measure_default.py new=DIR old=DIR --data DATA --output FOLDER

Each NAME=DIR is an exported artifact. DATA has the folders `longtext` (documents), `longbench`,
and `tasks` (`squad2_dev.json`, `babi_*`); a step whose data are missing is said and passed over.
FOLDER gets NAME/STEP.json, the rows of each command as they are, and with `--text BOOK` bench.json.
Speed comes last: the machine must be idle for it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
CARD = ROOT / "models/scorers/smollm2-135m-instruct.md"
RULER = "niah_single_1,niah_multikey_2,niah_multikey_3,ruler_vt,ruler_cwe,ruler_fwe"


def held_out(data: Path) -> list[str]:
    """The documents that the shipped scorer's training never saw: its card lists them."""
    names = [line[3:-1] for line in CARD.read_text("utf-8").splitlines() if line.startswith("- `")]
    return [str(data / "longtext" / name) for name in names]


def steps(data: Path, seed: int, threads: int) -> dict[str, list[str]]:
    """The options of `edgeinfinite` for each step, in the order in which they are measured."""
    few = ["--threads", str(threads)]
    texts = ["--data", *held_out(data), *few]
    planted = ["evaluate", "passkey", "--samples", "6", "--seed", str(seed), *texts]
    squad = ["--questions", str(data / "tasks/squad2_dev.json"), "--in-turn"]
    longbench = ["evaluate", "longbench", "--data", str(data / "longbench"), *few]
    ruler = ["lm-eval", "--tasks", RULER, "--gold-loss", *few]
    babi = ["evaluate", "babilong", "--data", str(data / "tasks"), "--tasks", "qa1,qa2", *few]
    babi += ["--books", *(name for name in held_out(data) if "book_" in name)]
    return {
        "facts": [*planted, "--lengths", "4000,7500"],
        "longbench": [
            *longbench,
            "--tasks",
            "en,code",
            "--max-tokens",
            "7900",
            "--measures",
            "loss",
        ],
        "chat": [*planted, "--turns", "30", "--lengths", "7500"],
        "squad": [*planted, *squad, "--lengths", "7500"],
        "text": ["evaluate", "perplexity", "--tokens", "6144", "--documents", "4", *texts],
        "facts-16000": [*planted, "--lengths", "16000"],
        "ruler-4096": [*ruler, "--lengths", "4096", "--limit", "4"],
        "ruler-7680": [*ruler, "--lengths", "7680", "--limit", "2"],
        "babilong": [*babi, "--lengths", "4096,16384", "--samples", "4"],
        "longbench-zh": [*longbench, "--tasks", "zh", "--max-tokens", "7900", "--measures", "loss"],
    }


def speed(folders: list[str], text: Path, output: Path) -> list[str]:
    """The options of `edgeinfinite bench`: all artifacts and installed peers in one run."""
    found = ["bench", *folders, "--lengths", "512,2048,8000", "--threads", "2", "--repeats", "3"]
    found += ["--peers", "llama.cpp,onnxruntime-genai", "--peer-cache", str(output / "peers")]
    return [*found, "--text", str(text), "--json", str(output / "bench.json")]


def main() -> int:
    """Runs what is missing, a step for all artifacts before the next step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("artifacts", nargs="+", metavar="NAME=DIR")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=3, help="of planted facts and chats")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", help="only these, with commas between them")
    parser.add_argument("--text", type=Path, help="a book: measures speed, too")
    asked = parser.parse_args()
    artifacts = dict(pair.split("=", 1) for pair in asked.artifacts)
    every = steps(asked.data, asked.seed, asked.threads)
    for step in asked.steps.split(",") if asked.steps else every:
        for name, folder in artifacts.items():
            rows = asked.output / name / f"{step}.json"
            whole = rows.with_suffix(".whole")  # an interrupted command leaves rows, too
            if not whole.exists():
                options = every[step]
                given = "--model" if options[0] == "lm-eval" else "--artifact"
                if _run(step, name, [*options, given, folder, "--json", str(rows)]):
                    whole.touch()
            if whole.exists():
                print(f"{step:14} {name:10} {_summary(rows)}", flush=True)
    if asked.text:
        _run("speed", "all", speed(list(artifacts.values()), asked.text, asked.output))
    return 0


def _run(step: str, name: str, options: list[str]) -> bool:
    Path(options[-1]).parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "edgeinfinite", *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{step} of {name} isn't measured: {done.stderr.strip()[-300:]}", file=sys.stderr)
    else:
        print(f"{step} of {name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return done.returncode == 0


def _summary(file: Path) -> str:
    """What a reader wants of a step's rows; the tables of `make results` say the rest."""
    held = json.loads(file.read_text("utf-8"))
    rows = held["rows"] if isinstance(held, dict) else held
    lengths = {row.get("prompt_tokens", 0) for row in rows}
    # A benchmark's prompts have each a length of their own; methods tell its rows apart.
    by = "prompt_tokens" if len(lengths) < 6 and 2 * len(lengths) <= len(rows) else "method"
    found = []
    for group in sorted({row.get(by, 0) for row in rows}):
        of_it = [row for row in rows if row.get(by, 0) == group]
        parts = [f"{group:,}:" if isinstance(group, int) else f"{group}:"] if group else []
        for field, form in (("correct", "{:.0%}"), ("score", "{:.2f}")):
            values = [row[field] for row in of_it if row.get(field) is not None]
            parts += [form.format(fmean(values))] if values else []
        for field in ("nats_per_digit_token", "answer_nats", "nats_per_token", "loss"):
            values = [row[field] for row in of_it if row.get(field) is not None]
            if values:
                parts.append(f"{fmean(values):.3f} nats of {len(values)}")
                break
        found.append(" ".join(parts))
    return "; ".join(found)


if __name__ == "__main__":
    sys.exit(main())
