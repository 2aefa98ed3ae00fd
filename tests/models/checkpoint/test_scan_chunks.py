"""Mamba-2 in shorter chunks than its configuration says computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tiny_artifact import VOCABULARY, tiny_checkpoint
from tiny_mamba2 import LAYERS, tiny_granite_h
from torch import nn

from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.checkpoint.scan_chunks import LENGTH, shorten_scans


def test_a_loaded_model_reads_in_short_chunks_and_computes_the_same(tmp_path: Path) -> None:
    untouched = tiny_granite_h(mamba_chunk_size=64)
    found = load_backbone(str(tiny_checkpoint(tmp_path / "folder", model=untouched))).model
    lengths = [m.chunk_size for m in found.modules() if hasattr(m, "chunk_size")]
    assert lengths == [LENGTH] * LAYERS.count("linear_attention")
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, VOCABULARY, (1, 150)))
    with torch.no_grad():
        wanted = untouched(ids).logits
        torch.testing.assert_close(found(ids).logits, wanted, rtol=1e-5, atol=1e-5)


def test_what_is_no_ssm_keeps_its_chunks() -> None:
    """Gemma's audio part attends within chunks, whose length matters."""
    module = nn.Linear(2, 2)
    module.chunk_size = 64
    shorten_scans(module)
    assert module.chunk_size == 64
