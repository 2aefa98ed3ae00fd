"""`evaluate --state-mb`: a checkpoint's state of a size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_texts import tiny_texts

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main


@pytest.mark.parametrize("more", [[], ["--cache-type", "int8"], ["--cache-type", "float32"]])
def test_a_state_of_a_size_has_the_slots_that_an_export_gives_it(
    tmp_path: Path, more: list[str]
) -> None:
    """Without a cache type in half precision, as an export has it."""
    (tmp_path / "texts").mkdir()
    checkpoint, texts = tiny_checkpoint(tmp_path / "tiny"), tiny_texts(tmp_path / "texts", 4)
    out, size = tmp_path / "rows.json", ["--policy", "carry", "--scorer", "untrained"]
    size += ["--segment-length", "16", "--sink-length", "4", "--window-length", "16"]
    size += ["--state-mb", "0.05", *more]
    ask = ["evaluate", "perplexity", "--model", str(checkpoint), "--data", str(texts)]
    ask += ["--tokens", "200", "--documents", "1"]
    assert main([*ask, *size, "--methods", "edgeinfinite", "--json", str(out)]) == 0
    folder = tmp_path / "artifact"
    assert main(["export", "--model", str(checkpoint), "--output", str(folder), *size]) == 0
    told, made = json.loads(out.read_text()), load_manifest(folder)
    assert told["options"]["geometry"] == made.geometry.to_dict()
    assert made.geometry.most_slots > 16
    caches = {state.dtype for state in made.state if state.is_cache}
    assert caches == {told["options"]["cache_type"]}
