"""What is read from GGUF computes llama.cpp's logits, which are recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")

import tiny_gguf
from gguf_cases import LIMIT, RECORDED, Case, llama3_factors
from gguf_peer import difference
from tiny_gguf import ROPE_FREQS, VOCABULARY, keys_of, write
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from edgeinfinite.models.checkpoint.loading import load_backbone

RECORD = Path(__file__).with_name("gguf_logits.npz")


@pytest.fixture(scope="module")
def recorded():
    return np.load(RECORD)


def logits(path: Path, case: Case) -> np.ndarray:
    with torch.no_grad():
        found = load_backbone(str(path)).model(torch.from_numpy(case.ids)[None]).logits[0]
    return found[case.places].numpy()


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.label)
def test_logits_are_those_of_llama_cpp(case, recorded, tmp_path):
    found = logits(case.write(tmp_path), case)
    assert difference(found, recorded[case.label].astype(np.float32)).max() < LIMIT


def test_every_change_of_a_case_moves_the_logits_or_is_known_to_change_nothing(recorded):
    nothing = {"llama type none", "llama window that isn't used", "llama heads by layer"}
    nothing |= {"phi3 window that isn't used", "llama finetuned", "qwen3moe default width"}
    nothing |= {"qwen35 by interval", "qwen35 wide sections"}
    for case in RECORDED:
        base = recorded[f"{case.name} base"].astype(np.float32)
        if (not case.keys and not case.more) or base.shape != recorded[case.label].shape:
            continue
        error = difference(recorded[case.label].astype(np.float32), base).max()
        assert (error > LIMIT) == (case.label not in nothing), (case.label, error)


def test_a_file_without_biases_is_read_as_one_whose_biases_are_0(tmp_path, monkeypatch):
    shapes = tiny_gguf.shapes_of("qwen2")
    zeros = {n: np.zeros(shape, np.float32) for n, shape in shapes.items() if n.endswith(".bias")}
    assert len(zeros) == 6
    case = Case("qwen2 biases of 0", "qwen2", more=zeros)
    expected = logits(case.write(tmp_path), case)
    kept = {name: shape for name, shape in shapes.items() if name not in zeros}
    monkeypatch.setattr(tiny_gguf, "shapes_of", lambda _: kept)
    case = Case("qwen2 without biases", "qwen2")
    assert np.array_equal(logits(case.write(tmp_path), case), expected)


def test_llama_3_as_gguf_gives_the_logits_of_its_folder_far_into_a_text(tmp_path):
    factors = llama3_factors(16, 500000.0, 32.0, 8192)
    path = write(
        tmp_path / "llama.gguf",
        keys={"rope.freq_base": 500000.0, "context_length": 131072},
        more={ROPE_FREQS: factors},
    )
    from_file = load_backbone(str(path))
    keys = keys_of("llama")
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=keys["embedding_length"],
        intermediate_size=keys["feed_forward_length"],
        num_hidden_layers=keys["block_count"],
        num_attention_heads=keys["attention.head_count"],
        num_key_value_heads=keys["attention.head_count_kv"],
        max_position_embeddings=131072,
        rms_norm_eps=keys["attention.layer_norm_rms_epsilon"],
        tie_word_embeddings=True,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    )
    folder = LlamaForCausalLM(config)
    folder.load_state_dict(from_file.model.state_dict())
    folder.save_pretrained(tmp_path / "folder")
    from_file.tokenizer.save_pretrained(tmp_path / "folder")
    assert AutoTokenizer.from_pretrained(tmp_path / "folder")
    from_folder = load_backbone(str(tmp_path / "folder"))
    ids = torch.randint(3, VOCABULARY, (1, 64), generator=torch.Generator().manual_seed(0))
    places = torch.arange(6000 - 63, 6001)[None]
    with torch.no_grad():
        one, other = (
            backbone.model(ids, position_ids=places, attention_mask=None).logits
            for backbone in (from_file, from_folder)
        )
    assert torch.allclose(one, other, atol=1e-4)
    assert from_file.model.config.rope_parameters == from_folder.model.config.rope_parameters


def test_scaled_rope_survives_saving_and_loading(tmp_path):
    factors = np.float32([1, 1.1, 1.2, 1.5, 4, 7, 8, 9])  # no rule's
    path = write(tmp_path / "tiny.gguf", more={ROPE_FREQS: factors})
    backbone = load_backbone(str(path))
    backbone.model.save_pretrained(tmp_path / "folder")
    backbone.tokenizer.save_pretrained(tmp_path / "folder")
    again = load_backbone(str(tmp_path / "folder"))
    plain = 10000.0 ** (-np.arange(0, 16, 2) / 16)
    for model in (backbone.model, again.model):
        assert np.allclose(model.model.rotary_emb.inv_freq.numpy(), plain / factors, rtol=1e-6)
    ids = torch.arange(3, 60)[None]
    with torch.no_grad():
        assert torch.equal(backbone.model(ids).logits, again.model(ids).logits)
