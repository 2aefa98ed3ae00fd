"""Checkpoints in half precision that stay so: the same numbers as float32, and whose files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from architectures import ARCHITECTURES
from safetensors.torch import load_file, save_file
from tiny_artifact import tiny_checkpoint
from tiny_gemma4 import MODELS as GEMMAS
from torch import nn
from transformers import AutoModelForCausalLM, GenerationConfig

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.checkpoint.loading import load_backbone, parameters_digest
from edgeinfinite.models.checkpoint.stored_loading import load_stored, release_stored
from edgeinfinite.models.weights.row_modules import StoredLinear, holds_stored, widen_stored
from tiny import tiny_family, tiny_llama

HALF = torch.bfloat16
TOKENS = torch.arange(3, 40).unsqueeze(0)


def logits(model) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(TOKENS).logits


def sharded(folder: Path, family: str = "Llama 3.2", dtype: torch.dtype = HALF) -> Path:
    tiny_family(family).to(dtype).save_pretrained(folder, max_shard_size="8KB")
    return folder


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_every_architecture_computes_bit_for_bit_what_float32_does(family, tmp_path):
    folder = str(sharded(tmp_path, family))
    stored = load_stored(folder, "main")
    widened = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert stored is not None and holds_stored(stored)
    assert torch.equal(logits(stored), logits(widened))
    assert parameters_digest(stored) == parameters_digest(widened)
    assert architecture_of(stored) == architecture_of(widened)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_linear_layers_and_embeddings_keep_their_type_and_everything_else_is_float32(
    dtype, tmp_path
):
    model = load_stored(str(sharded(tmp_path, dtype=dtype)), "main")
    assert model is not None
    for name, parameter in model.named_parameters():
        assert parameter.dtype == (torch.float32 if "norm" in name else dtype), name
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert not any(type(module) is nn.Linear for module in model.modules())
    assert {buffer.dtype for buffer in model.buffers()} == {torch.float32}


def test_weights_that_are_mapped_anew_are_the_same(tmp_path):
    model = load_stored(str(sharded(tmp_path)), "main")
    assert model is not None
    wanted, places = logits(model), {p.data_ptr() for p in model.parameters()}
    release_stored(model)
    halves = {p.data_ptr() for p in model.parameters() if p.dtype == HALF}
    assert halves and not halves & places
    assert torch.equal(logits(model), wanted)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_stored_layers_become_ordinary_ones_of_float32(tmp_path):
    model = load_stored(str(sharded(tmp_path)), "main")
    assert model is not None
    wanted = logits(model)
    widen_stored(model)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert type(model.lm_head) is nn.Linear
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert torch.equal(logits(model), wanted)


def test_a_layer_multiplies_some_rows_at_a_time_and_adds_its_bias():
    torch.manual_seed(0)
    linear = nn.Linear(512, 5000)  # more than one part
    linear.weight.data, linear.bias.data = linear.weight.data.to(HALF), torch.randn(5000)
    x = torch.randn(2, 3, 512)
    wanted = nn.functional.linear(x, linear.weight.float(), linear.bias)
    assert torch.allclose(StoredLinear(linear)(x), wanted, atol=1e-5)


def test_what_is_not_stored_so_is_left_to_transformers(tmp_path):
    floats = tmp_path / "floats"
    tiny_llama().save_pretrained(floats)
    assert load_stored(str(floats), "main") is None
    more = sharded(tmp_path / "more")
    index = more / "model.safetensors.index.json"
    fields = json.loads(index.read_text())
    first = sorted(set(fields["weight_map"].values()))[0]
    tensors = load_file(more / first)
    save_file(tensors | {"extra": torch.ones(2)}, more / first, metadata={"format": "pt"})
    fields["weight_map"]["extra"] = first
    index.write_text(json.dumps(fields))
    assert load_stored(str(more), "main") is None
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    model = tiny_llama().to(HALF)
    model.config.save_pretrained(pickled)
    torch.save(model.state_dict(), pickled / "pytorch_model.bin")
    assert load_stored(str(pickled), "main") is None


def test_generation_settings_are_the_checkpoints(tmp_path):
    folder = sharded(tmp_path)
    GenerationConfig(temperature=0.25, do_sample=True).save_pretrained(folder)
    model = load_stored(str(folder), "main")
    assert model is not None and model.generation_config.temperature == 0.25


def test_nan_and_a_truncated_shard_are_refused_as_ever(tmp_path):
    folder = tiny_checkpoint(tmp_path / "tiny", model=tiny_llama(vocabulary=258).to(HALF))
    assert holds_stored(load_backbone(str(folder), stored=True).model)
    assert not holds_stored(load_backbone(str(folder)).model)
    file = folder / "model.safetensors"
    whole, tensors = file.read_bytes(), load_file(file)
    tensors["model.layers.1.mlp.up_proj.weight"][2, 3] = float("nan")
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(EdgeInfiniteError, match=r"layers\.1\.mlp\.up_proj\.weight holds NaN"):
        load_backbone(str(folder), stored=True)
    file.write_bytes(whole[:-100])
    with pytest.raises(EdgeInfiniteError, match="can't be loaded"):
        load_backbone(str(folder), stored=True)


@pytest.mark.parametrize("kind", GEMMAS)
def test_gemma_with_shared_caches_stays_as_it_is_stored(kind, tmp_path):
    """Also where its file has keys of layers that need none, and numbers that aren't trained."""
    model = GEMMAS[kind]().to(HALF)
    tensors = {name: t for name, t in model.state_dict().items() if name != "lm_head.weight"}
    unused = () if kind == "gemma4_unified" else ("k_proj", "k_norm")  # transformers names none
    for part in unused:
        shape = tensors[f"model.layers.0.self_attn.{part}.weight"].shape
        last = f"model.layers.{len(model.model.layers) - 1}.self_attn.{part}.weight"
        tensors[last] = torch.ones(shape, dtype=HALF)
    model.config.save_pretrained(tmp_path)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    stored = load_stored(str(tmp_path), "main")
    widened = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert stored is not None and holds_stored(stored)
    assert torch.equal(logits(stored), logits(widened))
    assert parameters_digest(stored) == parameters_digest(widened)
    assert architecture_of(stored) == architecture_of(widened)
    release_stored(stored)
    assert torch.equal(logits(stored), logits(widened))
