"""A GGUF file loads to what transformers makes of it, and is refused if something is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")

from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from transformers import AutoModelForCausalLM

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.loading import float_parts
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.weights import file_memory
from edgeinfinite.models.weights.file_memory import FileMemory

WIDTH, INNER, LAYERS, HEADS, KV_HEADS, VOCABULARY = 64, 128, 2, 4, 2, 300
NORMS = ("attn_norm", "ffn_norm")
SHAPES = {
    "attn_q": (WIDTH, WIDTH),
    "attn_k": (WIDTH // HEADS * KV_HEADS, WIDTH),
    "attn_v": (WIDTH // HEADS * KV_HEADS, WIDTH),
    "attn_output": (WIDTH, WIDTH),
    "ffn_gate": (INNER, WIDTH),
    "ffn_up": (INNER, WIDTH),
    "ffn_down": (WIDTH, INNER),
}


def write(path: Path, *, without: str = "", narrow: str = "", head: bool = False) -> Path:
    """A tiny Llama in Q8_0, with one tensor left out, or with fewer rows."""
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    words = ["a", "b", "ab", *(f"<{index}>" for index in range(3, VOCABULARY))]
    writer.add_token_list(words)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    random = np.random.default_rng(0)

    def add(name: str, shape: tuple[int, ...]) -> None:
        values = random.standard_normal(shape).astype(np.float32)
        if name == without:
            return
        if name == narrow:
            values = values[: len(values) // 2]
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)

    add("token_embd.weight", (VOCABULARY, WIDTH))
    for layer in range(LAYERS):
        for name, shape in SHAPES.items():
            add(f"blk.{layer}.{name}.weight", shape)
        for name in NORMS:
            add(f"blk.{layer}.{name}.weight", (WIDTH,))
    add("output_norm.weight", (WIDTH,))
    if head:
        add("output.weight", (VOCABULARY, WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("head", [False, True], ids=["tied", "with a head of its own"])
def test_a_file_loads_to_the_weights_that_transformers_makes_of_it(head, tmp_path):
    path = write(tmp_path / "tiny.gguf", head=head)
    ours = load_backbone(str(path))
    theirs = AutoModelForCausalLM.from_pretrained(
        str(tmp_path), gguf_file=path.name, dtype=torch.float32
    )
    expected = theirs.state_dict()
    assert ours.model.state_dict().keys() == expected.keys()
    for name, values in ours.model.state_dict().items():
        assert torch.equal(values, expected[name]), name
    tied = ours.model.lm_head.weight is ours.model.model.embed_tokens.weight
    assert tied is not head
    ids = torch.arange(7)[None]
    assert torch.equal(ours.model(ids).logits, theirs(ids).logits)
    assert len(ours.integers) == len(SHAPES) * LAYERS + 1 + head


def test_a_file_loads_into_files_as_it_does_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(file_memory, "_SMALL", 0)
    path = write(tmp_path / "tiny.gguf")
    expected, found = load_backbone(str(path)), load_backbone(str(path), FileMemory(tmp_path))
    for name, values in found.model.state_dict().items():
        assert torch.equal(values, expected.model.state_dict()[name]), name
    assert found.weights_sha256 == expected.weights_sha256
    for name, weight in expected.integers.items():
        assert torch.equal(found.integers[name].codes, weight.codes)
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.gguf"]


def test_a_file_without_one_of_its_tensors_is_refused_by_name(tmp_path):
    path = write(tmp_path / "tiny.gguf", without="blk.1.ffn_up.weight")
    with pytest.raises(EdgeInfiniteError, match=r"lacks .*layers\.1\.mlp\.up_proj\.weight"):
        load_backbone(str(path))


def test_a_tensor_of_another_shape_is_refused_by_name(tmp_path):
    path = write(tmp_path / "tiny.gguf", narrow="blk.0.ffn_down.weight")
    with pytest.raises(EdgeInfiniteError, match=r"down_proj\.weight has shape \[32, 128\]"):
        load_backbone(str(path))


def test_a_large_tensor_is_read_in_parts_that_cover_it(monkeypatch):
    monkeypatch.setattr("edgeinfinite.models.checkpoint.gguf.loading._PART", 3 * 34)
    values = np.random.default_rng(1).standard_normal((8, 32)).astype(np.float32)
    data = quantize(values, GGMLQuantizationType.Q8_0)
    parts = list(float_parts(data, GGMLQuantizationType.Q8_0))
    assert [(rows.start, rows.stop) for rows, _ in parts] == [(0, 3), (3, 6), (6, 8)]
    assert np.allclose(np.concatenate([part for _, part in parts]), values, atol=0.03)
