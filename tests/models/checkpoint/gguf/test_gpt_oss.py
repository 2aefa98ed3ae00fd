"""GPT-OSS's experts in MXFP4, as its files have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")

import tiny_gguf
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from gguf_cases import CONTEXT
from gguf_peer import difference, peer_logits
from tiny_gguf_experts import EXPERTS, THIN, WIDTH

from edgeinfinite.models.checkpoint.loading import load_backbone

KIND = GGMLQuantizationType.MXFP4
ROUNDED = 0.15
"""As in `verify --against`: llama.cpp rounds activations to 8 bits where weights are rounded."""


def test_experts_in_mxfp4_are_read_in_turns(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "gpt-oss", kind=KIND.name)
    layer = load_backbone(str(path)).model.model.layers[1]
    for number, part in enumerate(("gate", "up")):
        drawn = tiny_gguf.drawn(f"blk.1.ffn_{part}_exps.weight", (EXPERTS, THIN, WIDTH))
        found = layer.mlp.experts.gate_up_proj[..., number::2].detach()
        wanted = dequantize(quantize(drawn, KIND), KIND)
        assert np.array_equal(found.transpose(1, 2).numpy(), wanted)


@pytest.mark.llama_cpp
@pytest.mark.slow
def test_experts_in_mxfp4_are_near_llama_cpp(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "gpt-oss", kind=KIND.name)
    ids, places = np.random.default_rng(3).integers(3, tiny_gguf.VOCABULARY, 100), [0, 64, 99]
    wanted = peer_logits(path, ids, places, CONTEXT)
    assert wanted is not None, "llama.cpp refuses the file"
    with torch.no_grad():
        found = load_backbone(str(path)).model(torch.from_numpy(ids)[None]).logits[0, places]
    assert difference(found.numpy(), wanted).max() < ROUNDED
