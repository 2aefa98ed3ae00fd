"""One run of `bench`, from options to rows, with progress."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from tqdm import tqdm

from edgeinfinite.artifact.manifest import Manifest, load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.benchmark.case import Case, Row
from edgeinfinite.runtime_py.benchmark.machine import MachineLimits, machine_limits, with_shares
from edgeinfinite.runtime_py.benchmark.options import BenchOptions
from edgeinfinite.runtime_py.benchmark.plan import (
    PeerModel,
    missing_peers,
    plan_cases,
    run_cases,
    with_losses,
)
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

LOSS_TOKENS = 512
"""Short enough to fit any useful cache, so that attention is exact."""


def run_bench(
    options: BenchOptions,
    peer_model: PeerModel,
    so_far: Callable[[list[Row]], None] = lambda _: None,
) -> tuple[list[Row], MachineLimits]:
    """Measures everything.

    Args:
        options: see `BenchOptions`.
        peer_model: makes what a peer loads; only called for installed peers.
        so_far: called now and then with the rows until then, which have no loss yet.

    Returns:
        One row of medians for each system and length, and the machine's limits.

    Raises:
        EdgeInfiniteError: an artifact is damaged, a peer unknown, a length out of range.
    """
    missing = missing_peers(options.peers)
    for line in missing:
        print(f"note: {line}", file=sys.stderr)
    absent = {line.partition(" ")[0] for line in missing}
    installed = [peer for peer in options.peers if peer.partition(":")[0] not in absent]
    cases = plan_cases(
        options.artifacts,
        options.lengths,
        new_tokens=options.new_tokens,
        threads=options.threads,
        peers=installed,
        peer_model=peer_model,
        model=options.model,
    )
    words = _text_tokens(options) if options.text else []
    text = words[:LOSS_TOKENS]
    cases = [replace(case, words=tuple(words[: case.prompt_tokens])) for case in cases]
    limits = machine_limits(options.threads)
    systems = len({(case.system, case.settings, case.model) for case in cases})
    total = len(cases) * options.repeats + (systems if text else 0)
    with tqdm(total=total, desc="bench", unit="case", disable=None) as bar:

        def progress(case: Case) -> None:
            bar.set_postfix_str(f"{case.system} {case.settings}, {case.prompt_tokens:,} tokens")
            bar.update()

        limit = options.time_limit
        rows = run_cases(
            cases, repeats=options.repeats, time_limit=limit, progress=progress, so_far=so_far
        )
        if text:
            rows = with_losses(rows, cases, text, time_limit=limit, progress=progress)
    multiplied = _multiplied(load_manifest(options.artifacts[0], check_files=False))
    return [with_shares(row, limits, multiplied) for row in rows], limits


def _multiplied(manifest: Manifest) -> int | None:
    """All weights but the embedding, which is looked up; as LM head it runs once per prompt.

    None for an older artifact, whose manifest doesn't have the embedding's columns.
    """
    model = manifest.backbone
    if model.hidden_size is None:
        return None
    return model.parameters - model.vocabulary * model.hidden_size


def _text_tokens(options: BenchOptions) -> list[int]:
    assert options.text is not None
    text = read_text_file(options.text)
    # The vocabulary is the checkpoint's: every system's own tokenizer would give the same ids.
    tokens = load_tokenizer(options.artifacts[0]).encode_text(text)
    if len(tokens) < LOSS_TOKENS:
        raise EdgeInfiniteError(
            f"{options.text} has {len(tokens):,} tokens; give a text of at least {LOSS_TOKENS:,}"
        )
    return tokens
