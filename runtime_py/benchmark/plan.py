"""The cases of a run: which ones, in what order, and what happens when one fails."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from edgeinfinite.artifact.manifest import Manifest, load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.benchmark.case import Case, Row, median_row, row_from
from edgeinfinite.runtime_py.benchmark.systems import PEERS, peer_settings
from edgeinfinite.runtime_py.benchmark.worker_process import WorkerFailed, run_worker

WORKER = "edgeinfinite.runtime_py.benchmark.worker"

PeerModel = Callable[[str, str, str], Path]
"""(kind, settings, checkpoint) -> what the peer loads; see `export.peer_models`."""


def missing_peers(peers: Sequence[str]) -> list[str]:
    """Peers that aren't installed, each as a line with the command that installs it.

    Raises:
        EdgeInfiniteError: a name isn't a peer's, or it has no such setting.
    """
    names = [peer_settings(peer)[0] for peer in peers]
    return [
        f"{name} isn't installed; install it with: {PEERS[name].install}"
        for name in dict.fromkeys(names)
        if importlib.util.find_spec(PEERS[name].package) is None
    ]


def plan_cases(
    artifacts: Sequence[Path],
    lengths: Sequence[int],
    *,
    new_tokens: int,
    threads: int,
    peers: Sequence[str] = (),
    peer_model: PeerModel | None = None,
    model: str | None = None,
) -> list[Case]:
    """Every system at every length, shortest first, so that a run cut short is still useful.

    Args:
        artifacts: folders of EdgeInfinite artifacts.
        lengths: prompt lengths in tokens.
        new_tokens: tokens to decode.
        threads: CPU threads of every system.
        peers: installed peers, as `systems.peer_settings` takes them.
        peer_model: makes what a peer loads.
        model: the peers' checkpoint; None takes the first artifact's.

    Raises:
        EdgeInfiniteError: no artifact, a length below 1, or a checkpoint that a peer can't use.
    """
    if not artifacts:
        raise EdgeInfiniteError("there is nothing to measure; give an artifact's folder")
    if not lengths or min(lengths) < 1:
        raise EdgeInfiniteError("lengths must be whole numbers of at least 1")
    manifests = {folder: load_manifest(folder) for folder in artifacts}
    first: Manifest = next(iter(manifests.values()))

    def case(system: str, loaded: Path, settings: str) -> Case:
        vocabulary = first.backbone.vocabulary
        return Case(system, str(loaded), settings, 0, new_tokens, threads, vocabulary)

    template = [
        case(f"edgeinfinite-{m.backend}", folder, folder.name) for folder, m in manifests.items()
    ]
    for name, settings_of_peer in map(peer_settings, peers):
        assert peer_model is not None
        for settings in settings_of_peer:
            loaded = peer_model(PEERS[name].loads, settings, model or first.backbone.name)
            template.append(case(name, loaded, settings))
    template = list(dict.fromkeys(template))  # `llama.cpp:f16,llama.cpp` asks for one twice
    return [replace(one, prompt_tokens=length) for length in sorted(lengths) for one in template]


def run_cases(
    cases: Sequence[Case],
    *,
    repeats: int,
    time_limit: float,
    progress: Callable[[Case], None] | None = None,
    so_far: Callable[[list[Row]], None] = lambda _: None,
) -> list[Row]:
    """Runs every case `repeats` times, the systems taking turns, and takes the medians.

    A case that fails or exceeds the time limit is reported as such. Its system isn't tried again at
    that length or a greater one. Nothing is extrapolated.

    Args:
        time_limit: seconds that one repeat may take, loading included.
        progress: called before each repeat.
        so_far: called when all cases of a length were repeated, with the medians until then.
    """
    results: dict[Case, list[Row]] = {case: [] for case in cases}
    failed: dict[tuple[str, str, str], str] = {}
    for length in sorted({case.prompt_tokens for case in cases}):
        for _ in range(repeats):
            for case in (case for case in cases if case.prompt_tokens == length):
                if progress:
                    progress(case)
                key = (case.system, case.model, case.settings)
                if key in failed:
                    if not results[case]:
                        results[case].append(_failure(case, f"not tried: {failed[key]}"))
                    continue
                row = run_case(case, time_limit)
                results[case].append(row)
                if row.error:
                    failed[key] = f"at {length:,} tokens {row.error}"
            so_far([median_row(rows) for rows in results.values() if rows])
    return [median_row(rows) for rows in results.values()]


def with_losses(
    rows: Sequence[Row],
    cases: Sequence[Case],
    text: Sequence[int],
    *,
    time_limit: float,
    progress: Callable[[Case], None] | None = None,
) -> list[Row]:
    """Measures every system's loss on a text, once, and adds it to all of the system's rows.

    Args:
        rows: the rows of `run_cases`, one for each case.
        cases: the cases that were run.
        text: token ids, so few that every system attends to all of them.

    Returns:
        The rows. If a system fails, its rows have no loss, and stderr says why.
    """
    asked = [
        replace(case, prompt_tokens=len(text), new_tokens=0, text=tuple(text), words=())
        for case in cases
    ]
    losses: dict[Case, float | None] = {}
    for case in dict.fromkeys(asked):
        if progress:
            progress(case)
        row = run_case(case, time_limit)
        losses[case] = row.nats_per_token
        if row.error:
            print(f"note: loss of {case.system}, {case.settings}: {row.error}", file=sys.stderr)
    return [
        replace(row, nats_per_token=losses[case]) for row, case in zip(rows, asked, strict=True)
    ]


def run_case(case: Case, time_limit: float) -> Row:
    """One repeat in its own process; a failure in that process becomes a row, not an exception."""
    try:
        return row_from(run_worker(WORKER, asdict(case), time_limit))
    except WorkerFailed as failed:
        return _failure(case, str(failed))


def _failure(case: Case, error: str) -> Row:
    return Row(
        system=case.system,
        quantization="",
        policy="",
        settings=case.settings,
        prompt_tokens=case.prompt_tokens,
        new_tokens=case.new_tokens,
        threads=case.threads,
        error=error,
    )
