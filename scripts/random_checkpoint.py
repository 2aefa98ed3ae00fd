"""Writes a checkpoint of a known model's shape with random weights, as the hub's are: sharded.

    python scripts/random_checkpoint.py llama-3.2-1b FOLDER --tokenizer OTHER_FOLDER

It serves to measure what exporting a large model takes. Weights are drawn tensor by tensor, in
bfloat16, and written shard by shard, so that it needs no more memory than a shard.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from model_shapes import SHAPES
from safetensors.torch import save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")

_BRANCH_ENDS = tuple(
    f"{module}.weight" for module in ("o_proj", "out_proj", "down_proj", "output_linear", "w2")
)
"""What a layer's branches add to its input, drawn smaller, as GPT-2 was initialised: otherwise the
rounding of each of Granite's 80 branches adds up to more than export allows."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with tokenizer.json")
    parser.add_argument("--shard-mb", type=float, default=2000.0)
    options = parser.parse_args()
    settings = dict(SHAPES[options.shape])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings, dtype="bfloat16")
    write_checkpoint(config, options.folder, int(options.shard_mb * 1e6))
    for name in TOKENIZER_FILES:
        if (options.tokenizer / name).exists():
            shutil.copyfile(options.tokenizer / name, options.folder / name)


def write_checkpoint(config: PreTrainedConfig, folder: Path, shard_bytes: int) -> None:
    """Writes `config.json`, shards of random weights in bfloat16, and their index.

    Args:
        config: of a causal LM.
        folder: made if it doesn't exist.
        shard_bytes: a shard is closed before it becomes larger.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    tied = set(model.all_tied_weights_keys) if config.tie_word_embeddings else set()
    tensors_of = dict(model.named_parameters()) | model.state_dict()  # these have buffers, too
    vectors = _vectors(model, set(tensors_of))

    def scale_of(name: str) -> float:
        return (2 * config.num_hidden_layers) ** -0.5 if name.endswith(_BRANCH_ENDS) else 1.0

    shards = _shards({n: t.shape for n, t in tensors_of.items() if n not in tied}, shard_bytes)
    random, index, total = torch.Generator().manual_seed(0), {}, 0
    for number, shapes in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        tensors = {
            name: vectors.pop(name) if name in vectors else _drawn(shape, random) * scale_of(name)
            for name, shape in shapes.items()
        }
        save_file(tensors, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(tensors, file)
        total += sum(tensor.nbytes for tensor in tensors.values())
    document = {"metadata": {"total_size": total}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(document, indent=1))


def _shards(shapes: dict[str, torch.Size], most: int) -> list[dict[str, torch.Size]]:
    shards: list[dict[str, torch.Size]] = [{}]
    size = 0
    for name, shape in shapes.items():
        if shards[-1] and size + 2 * shape.numel() > most:
            shards.append({})
            size = 0
        shards[-1][name] = shape
        size += 2 * shape.numel()
    return shards


def _drawn(shape: torch.Size, random: torch.Generator) -> torch.Tensor:
    """A matrix keeps the size of what it is multiplied with."""
    drawn = torch.empty(shape, dtype=torch.bfloat16)
    return drawn.normal_(0.0, shape[-1] ** -0.5, generator=random)


def _vectors(model: PreTrainedModel, names: set[str]) -> dict[str, torch.Tensor]:
    """What isn't a matrix, norms, decays and biases, as transformers initialises it: bfloat16.

    Where attention doesn't scale its scores (Gemma 3n and 4) the norm of keys does, as it must in
    trained weights: otherwise each head reads a single token, and each layer makes rounding larger.

    Args:
        model: without memory for its weights.
        names: of what its checkpoint holds.
    """
    torch.manual_seed(0)
    found: dict[str, torch.Tensor] = {}
    for place, module in model.named_modules():
        own = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_buffers(recurse=False)),
        }
        vectors = {
            key: torch.ones(held.shape)  # what transformers doesn't initialise
            for key, held in own.items()
            if held.dim() == 1 and f"{place}.{key}" in names
        }
        if not vectors:
            continue
        for key, values in vectors.items():
            parameter = isinstance(own[key], nn.Parameter)
            setattr(module, key, nn.Parameter(values) if parameter else values)
        model._init_weights(module)
        found |= {f"{place}.{key}": getattr(module, key).detach() for key in vectors}
    for place, module in model.named_modules():
        if getattr(module, "scaling", None) == 1.0 and f"{place}.k_norm.weight" in found:
            norm = found[f"{place}.k_norm.weight"]
            norm *= len(norm) ** -0.5
    return {name: values.to(torch.bfloat16) for name, values in found.items()}


if __name__ == "__main__":
    main()
