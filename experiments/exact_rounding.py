"""Which ways of reading a prompt give transformers' logits bit for bit, and what float64 says.

python experiments/exact_rounding.py smollm2-135m-instruct BOOK.txt --lengths 515,2048,2051

For each length, against `standard` (the model as it is, in float32): the largest difference of the
last token's logits with `logits_to_keep=1`, mini-sequences and `--engine mom`; then, with
`--float64`, the largest difference of each from the same model in float64, which is nearer to the
exact value than any of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import PreTrainedModel

from edgeinfinite.files import read_text_file
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.mini_sequence import apply_mini_sequence
from edgeinfinite.models.mom.reader import MomReader


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--lengths", default="515,2048,2051")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--float64", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    backbone = load_backbone(options.model)
    ids = backbone.tokenizer(read_text_file(options.text), verbose=False)["input_ids"]
    lengths = list(map(int, options.lengths.split(",")))
    found = {}
    for length in lengths:
        found[length] = logits = logits_of(backbone.model, torch.tensor([ids[:length]]))
        told = {name: _difference(one, logits["standard"]) for name, one in logits.items()}
        print(length, "from standard:", told, flush=True)
    if not options.float64:
        return
    model = backbone.model.double()
    for length, logits in found.items():
        with torch.inference_mode():
            exact = model(torch.tensor([ids[:length]]), logits_to_keep=1).logits[0, -1]
        told = {name: _difference(one.double(), exact) for name, one in logits.items()}
        print(length, "from float64:", told, flush=True)


@torch.inference_mode()
def logits_of(model: PreTrainedModel, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    """The last token's logits `[V]` by way of reading `[1, T]` tokens."""
    found = {"standard": model(tokens).logits[0, -1].clone()}
    found["logits_to_keep=1"] = model(tokens, logits_to_keep=1).logits[0, -1].clone()
    with apply_mini_sequence(model, 512):
        found["mini-sequence"] = model(tokens).logits[0, -1].clone()
    with MomReader(model) as reader:
        found["mom"] = reader.read(tokens)[0, -1].clone()
    return found


def _difference(one: torch.Tensor, other: torch.Tensor) -> str:
    return "0" if torch.equal(one, other) else f"{(one - other).abs().max().item():.1e}"


if __name__ == "__main__":
    main()
