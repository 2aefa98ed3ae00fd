"""The text model of a checkpoint that also reads images is loaded alone, or refused truthfully."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from every_decoder import tiny_config, tiny_decoder
from safetensors.torch import save_file
from tiny_artifact import tiny_checkpoint
from transformers import AutoModelForImageTextToText

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.checkpoint.text_part import load_text_part
from tiny import tiny_llama


def _saved(kind: str, folder: Path) -> torch.nn.Module:
    torch.manual_seed(0)
    model = AutoModelForImageTextToText.from_config(tiny_config(kind)).eval()
    model.save_pretrained(folder)
    return model.requires_grad_(False)


@pytest.mark.parametrize(
    "kind", ["mistral3", "gemma3", "gemma4", "llava", "llava_onevision", "idefics3"]
)
def test_a_text_part_computes_what_the_whole_does_for_text(kind: str, tmp_path: Path) -> None:
    whole = _saved(kind, tmp_path)
    part = load_text_part(str(tmp_path), "main")
    assert part is not None and part.config.model_type != kind
    tokens = torch.arange(3, 23).unsqueeze(0)
    expected = whole(input_ids=tokens, use_cache=False).logits
    torch.testing.assert_close(part.eval()(tokens).logits, expected, rtol=1e-5, atol=1e-5)


def test_a_head_that_the_whole_alone_says_is_tied_is_tied(tmp_path: Path) -> None:
    """Also where transformers hands the text's configuration on, and would draw the head anew."""
    config = tiny_config("qwen3_5")
    config.tie_word_embeddings, config.text_config.tie_word_embeddings = True, False
    whole = AutoModelForImageTextToText.from_config(config).eval().requires_grad_(False)
    tiny_checkpoint(tmp_path, model=whole)
    tokens = torch.arange(3, 23).unsqueeze(0)
    expected = whole(input_ids=tokens, use_cache=False).logits
    found = load_backbone(str(tmp_path)).model(tokens).logits
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_the_text_part_of_gemma_3n_is_found_by_its_names(tmp_path: Path) -> None:
    """Its whole wants timm, which isn't here; the names are those of the hub's checkpoint."""
    config = tiny_config("gemma3n")
    config.architectures = ["Gemma3nForConditionalGeneration"]
    config.save_pretrained(tmp_path)
    text = tiny_decoder("gemma3n")
    held = {name: t for name, t in text.state_dict().items() if name.startswith("model.")}
    save_file(
        {name.replace("model.", "model.language_model.", 1): t for name, t in held.items()},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    part = load_text_part(str(tmp_path), "main")
    assert part is not None and part.config.model_type == "gemma3n_text"
    tokens = torch.arange(3, 23).unsqueeze(0)
    with torch.no_grad():
        torch.testing.assert_close(part.eval()(tokens).logits, text(tokens).logits)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("qwen2_5_vl", "is no causal LM of transformers by itself"),
        ("paligemma", "sees later tokens"),
        ("aya_vision", "scales logits in another way"),
        ("musicgen", "it is an encoder-decoder"),
        ("t5", "it is an encoder-decoder"),
        ("gemma4_assistant", "KV caches of another model"),
        ("clip", "is no causal LM of transformers"),
    ],
)
def test_what_holds_no_causal_lm_is_refused_by_its_configuration_alone(
    kind: str, reason: str, tmp_path: Path
) -> None:
    tiny_config(kind).save_pretrained(tmp_path)
    with pytest.raises(EdgeInfiniteError, match=f"{kind} isn't supported: .*{reason}"):
        load_backbone(str(tmp_path))


def test_a_text_model_has_no_part(tmp_path: Path) -> None:
    tiny_llama().save_pretrained(tmp_path)
    assert load_text_part(str(tmp_path), "main") is None


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3"])
def test_a_billion_layers_are_refused_before_one_is_built(kind: str, tmp_path: Path) -> None:
    tiny_config(kind).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    settings = json.loads(file.read_text())
    part = settings.get("text_config", settings)
    part.pop("layer_types", None)
    part["num_hidden_layers"] = 10**9
    file.write_text(json.dumps(settings))
    with pytest.raises(EdgeInfiniteError, match=r"num_hidden_layers of its .* is 10"):
        load_backbone(str(tmp_path))


def test_settings_that_dont_fit_together_are_told_with_their_reason(tmp_path: Path) -> None:
    tiny_config("gemma3_text").save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"hidden_size": 33}))
    with pytest.raises(EdgeInfiniteError, match=r"hidden size \(33\) is not a multiple"):
        load_backbone(str(tmp_path))
