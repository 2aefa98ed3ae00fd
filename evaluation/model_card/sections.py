"""The whole model card of an artifact: what `evaluate`, `verify` and `bench` measured of it.

Rows and pictures lie in the artifact's folder `card/`, where the hub shows the pictures from. This
module only reads rows, and draws; whoever runs the commands says which (`cli/card.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from huggingface_hub import EvalResult

from edgeinfinite.artifact.manifest import Manifest, read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.artifact_reader import ARTIFACT_METHOD
from edgeinfinite.evaluation.report import (
    markdown,
    mean_loss,
    passkey_table,
    perplexity_table,
    plot_passkey,
    plot_perplexity,
)
from edgeinfinite.evaluation.results import Row
from edgeinfinite.export.model_card import Origin, Section, write_model_card
from edgeinfinite.runtime_py.benchmark import report as speed_report
from edgeinfinite.runtime_py.benchmark.case import row_from

FOLDER = "card"
VERIFY, SPEED = "verify.json", "speed.json"
RECALL = ("recall-artifact.json", "recall-checkpoint.json")
LOSS = ("loss-artifact.json", "loss-checkpoint.json")
STEPS = "steps.json"

_METHODS = (
    "`artifact` is this file. `full` is its checkpoint in float32 with full attention, whose cache "
    "grows, up to the positions that it was trained on. `streaming` is the same checkpoint with "
    "StreamingLLM: sinks and a window, as many tokens in the cache as here."
)


@dataclass(frozen=True)
class Command:
    """A command that made something on the card.

    Args:
        line: as one types it, without folders of the machine that it ran on.
        seconds: that it took, of its last run if it was interrupted.
        peak_bytes: largest resident memory until it ended; None where it isn't known.
    """

    line: str
    seconds: float
    peak_bytes: int | None = None


def write_card(folder: Path, commands: Sequence[Command], origin: Origin) -> Path:
    """Writes `README.md` from the rows in the artifact's folder `card/`, and draws its pictures.

    Args:
        folder: the artifact.
        commands: that made it and measured it.
        origin: see there.

    Raises:
        EdgeInfiniteError: there is no artifact, or a file in `card/` doesn't hold rows.
    """
    manifest = read_manifest(folder)
    rows = folder / FOLDER
    recall, loss = (_joined(rows, names) for names in (RECALL, LOSS))
    speed, verified = _read(rows / SPEED), _read(rows / VERIFY)
    sections = []
    if recall:
        plot_passkey(recall, rows / "recall.png")
        sections.append(_recall(recall))
    if loss:
        plot_perplexity(loss, rows / "loss.png")
        sections.append(_loss(loss))
    if speed["rows"]:
        measured = [row_from(row) for row in speed["rows"]]
        speed_report.plot(measured, rows / "speed.png")
        sections.append(_speed(speed))
    if verified["rows"]:
        sections.append(_parity(verified["rows"], manifest))
    if commands:
        sections.append(_commands(commands))
    results = _results([row for row in recall if row["method"] == ARTIFACT_METHOD])
    return write_model_card(folder, manifest, sections, results, origin)


def _joined(folder: Path, names: Sequence[str]) -> list[Row]:
    return [row for name in names for row in _read(folder / name)["rows"]]


def _read(path: Path) -> dict[str, Any]:
    """A file as `--json` writes it; without rows if it isn't there."""
    if not path.is_file():
        return {"rows": []}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found | {"rows": list(found["rows"])}
    except (ValueError, KeyError, TypeError) as error:
        raise EdgeInfiniteError(f"{path} isn't a file of rows; delete it") from error


def _recall(rows: Sequence[Row]) -> Section:
    texts = len({(row["prompt_tokens"], row["seed"]) for row in rows})
    lengths = len({row["prompt_tokens"] for row in rows})
    body = (
        "Facts planted at even depths in texts that the scorer's training didn't read, about "
        "topics that it didn't know, and asked for at the end. `exact`: greedy decoding gives the "
        "answer. `nats`: loss of a token of the answer. Texts of each length: "
        f"{texts // lengths}, so a difference of a few facts is chance. {_METHODS}\n\n"
        f"{passkey_table(rows)}\n\n![Loss of the answers by length and depth]({FOLDER}/recall.png)"
    )
    return Section("What it remembers", body)


def _loss(rows: Sequence[Row]) -> Section:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    means = {m: mean_loss([row for row in rows if row["method"] == m]) for m in methods}
    whole = ", ".join(f"{method} {nats:.3f}" for method, nats in means.items())
    body = (
        "Nats a token of text that the scorer's training didn't read, by position "
        f"(mean of all: {whole}).\n\n"
        f"{perplexity_table(rows)}\n\n![Loss by position]({FOLDER}/loss.png)"
    )
    return Section("Loss by position", body)


def _speed(found: dict[str, Any]) -> Section:
    rows = [row_from(row) for row in found["rows"]]
    header = ["prompt", "first token", "prefill", "decode", "slowest token", "peak memory", "state"]
    lines = [
        [
            f"{row.prompt_tokens:,} tokens",
            _figure(row.ttft_s, "{:.2f} s"),
            _figure(row.prefill_tokens_per_s, "{:,.0f} tokens/s"),
            _figure(row.decode_tokens_per_s, "{:,.1f} tokens/s"),
            _figure(row.slowest_token_s, "{:,.1f} ms", 1e3),
            _figure(row.peak_rss_bytes, "{:,.0f} MB", 1e-6),
            _figure(row.state_bytes, "{:,.1f} MB", 1e-6),
        ]
        for row in rows
    ]
    machine = found.get("machine", {})
    where = f"{machine.get('processor', 'unknown')}, {rows[0].threads} of {machine.get('cores')}"
    failed = [f"{row.prompt_tokens:,} tokens: {row.error}" for row in rows if row.error]
    body = f"One run on a CPU ({where} cores); what else ran there slows it.\n\n"
    body += markdown(header, lines) + "".join(f"\n\n{line}" for line in failed)
    return Section(
        "Speed and memory", f"{body}\n\n![First token and peak memory]({FOLDER}/speed.png)"
    )


def _figure(value: float | None, form: str, factor: float = 1.0) -> str:
    return "–" if value is None else form.format(value * factor)


def _parity(rows: Sequence[Row], manifest: Manifest) -> Section:
    files = [row for row in rows if row["check"].startswith(("checksum:", "io:"))]
    others = [row for row in rows if row not in files]
    lines = [
        [
            row["check"],
            f"{row['value']:.3g}",
            "–" if row["limit"] is None else f"{row['limit']:.3g}",
        ]
        for row in others
    ]
    # Weights that were scaled by a text are in the artifact only.
    weights = (
        "in float32" if manifest.details.get("calibrated") else "with the same rounded weights"
    )
    body = (
        "`edgeinfinite verify` ran this artifact, and its checkpoint in PyTorch "
        f"{weights}, on the same text. All {len(rows)} checks passed, {len(files)} of them "
        f"about files and signatures.\n\n{markdown(['check', 'value', 'limit'], lines)}"
    )
    return Section("Does it compute what the checkpoint computes?", body)


def _commands(commands: Sequence[Command]) -> Section:
    lines = "\n".join(f"{c.line}\n    # {_cost(c)}" for c in commands)
    return Section("Commands", f"They made and measured it:\n\n```\n{lines}\n```")


def _cost(command: Command) -> str:
    """What a command took; the memory is the process's, which ran those before it too."""
    seconds = f"{command.seconds:,.0f} s"
    peak = command.peak_bytes
    return seconds if peak is None else f"{seconds}, until then {peak / 1e6:,.0f} MB at most"


def _results(rows: Sequence[Row]) -> list[EvalResult]:
    """The recall of the artifact as the hub's table of results takes it."""
    return [
        EvalResult(
            task_type="text-generation",
            dataset_type="planted-facts",
            dataset_name=f"Planted facts, {length:,} tokens",
            dataset_config=f"{length} tokens",
            metric_type="exact_match",
            metric_name=f"exact answers in a state of {own[0]['state_bytes'] / 1e6:.1f} MB",
            metric_value=round(100 * fmean(row["correct"] for row in own), 1),
        )
        for length in sorted({row["prompt_tokens"] for row in rows})
        if (own := [row for row in rows if row["prompt_tokens"] == length])
    ]
