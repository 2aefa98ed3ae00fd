"""`scripts/shape_gguf.py`: files of checkpoints, which llama.cpp computes as transformers does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")

from gguf import GGMLQuantizationType
from gguf_cases import CONTEXT, LIMIT
from gguf_peer import difference, peer_logits
from tiny_gemma4 import tiny_gemma4
from tiny_lfm2 import tiny_lfm2
from tiny_mamba2 import tiny_bamba, tiny_granite_h
from tiny_qwen3_5 import tiny_qwen3_5
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone

FLOATS = GGMLQuantizationType.F32
PLACES = [0, 64, 99]
_S, _F = "sliding_attention", "full_attention"
OF_GEMMA: dict[str, Any] = {  # the caches that llama.cpp's last layers read, and E2B's heads
    "layer_types": [_S, _S, _S, _F, _S, _S, _F],
    "attention_k_eq_v": False,
    "num_global_key_value_heads": None,
}
MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "lfm2": tiny_lfm2,
    "qwen3.5": lambda: tiny_qwen3_5(value_heads=6, linear_value_head_dim=16),
    "granite": lambda: tiny_granite_h(position_embedding_type="nope"),
    "gemma4": lambda: tiny_gemma4(**OF_GEMMA),
    "gemma4, keys as values": lambda: tiny_gemma4(layer_types=OF_GEMMA["layer_types"]),
}


@pytest.fixture(scope="module")
def script() -> Any:
    path = Path(__file__).parents[4] / "scripts" / "shape_gguf.py"
    spec = importlib.util.spec_from_file_location("shape_gguf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for its annotations
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", MODELS)
def test_a_folders_file_is_the_folder_to_us_and_to_llama_cpp(
    name: str, script: Any, tmp_path: Path
) -> None:
    """In float32: the same parameters for us, untouched transformers' logits for llama.cpp."""
    model = MODELS[name]()
    model.save_pretrained(tmp_path / "folder")
    script.write(tmp_path / "folder", tmp_path / "f.gguf", FLOATS, FLOATS)
    found = load_backbone(str(tmp_path / "f.gguf")).model.state_dict()
    wanted = model.state_dict()
    assert found.keys() == wanted.keys()
    for (
        key,
        tensor,
    ) in wanted.items():  # of norms plus one and of decays, float32 rounds the last bit
        torch.testing.assert_close(found[key], tensor, rtol=2e-7, atol=2e-7, msg=key)
    if importlib.util.find_spec("llama_cpp") is None:
        return
    ids = np.random.default_rng(3).integers(3, model.config.vocab_size, 100)
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids)[None]).logits[0, PLACES].numpy()
    peer = peer_logits(tmp_path / "f.gguf", ids, PLACES, CONTEXT)
    assert peer is not None, "llama.cpp refuses the file"
    assert difference(theirs, peer).max() < LIMIT


def test_rounded_tensors_are_rounded_whole(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is written some rows at a time holds what one written at once does."""
    tiny_gemma4(**OF_GEMMA).save_pretrained(tmp_path / "folder")
    kinds = (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q8_0)
    script.write(tmp_path / "folder", tmp_path / "whole.gguf", *kinds)
    monkeypatch.setattr(script, "_ROWS", 7)
    script.write(tmp_path / "folder", tmp_path / "parts.gguf", *kinds)
    assert (tmp_path / "whole.gguf").read_bytes() == (tmp_path / "parts.gguf").read_bytes()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: tiny_granite_h(time_step_limit=(0.1, 0.2)), "time_step_limit is"),
        (tiny_gemma4, "whose cache is read by others"),
        (tiny_bamba, "is a bamba; lfm2, qwen3_5_text, granitemoehybrid, gemma4_text are written"),
    ],
    ids=["setting", "caches", "family"],
)
def test_what_the_format_has_no_place_for_is_refused(
    model: Callable[[], PreTrainedModel], reason: str, script: Any, tmp_path: Path
) -> None:
    model().save_pretrained(tmp_path / "folder")
    with pytest.raises(EdgeInfiniteError, match=reason):
        script.write(tmp_path / "folder", tmp_path / "f.gguf", FLOATS, FLOATS)
