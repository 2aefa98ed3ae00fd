"""What tokens should count in the statistics that weights are scaled and rounded by.

    python experiments/token_weights.py CHECKPOINT ROWS.jsonl --calibrate TEXT --data TEXTS \
        --weights alike,norm,square --stretches 8,16,24

All linear layers but the LM head get 4 bits in groups of 32 with zero points, by `scale_inputs` and
`round_by_inputs`, computed in float32. A row has the divergence of the predictions from the
checkpoint's (KL, nats a token) and the loss above its, means over the texts with standard errors.
`alike`: every token's x xᵀ counts alike; `norm`: by the norm of the loss' gradient by x, which
ships; `square`: by its square.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from quantizers import METHODS, Shared, _tokens
from transformers import AutoModelForCausalLM, AutoTokenizer

from edgeinfinite.export.mixing import statistics
from edgeinfinite.export.mixing.calibration import calibration_texts

_START = 20_000
"""Characters of each text that are left out: title pages and tables of contents."""


def weighted(power: float) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]:
    """In the place of `statistics._add_weighted`."""

    def add(to: torch.Tensor, x: torch.Tensor, gradient: torch.Tensor) -> None:
        rows = x.flatten(0, -2)
        counts = gradient.detach().flatten(0, -2).norm(dim=1).pow(power)
        to.addmm_(rows.T * (counts / counts.mean()), rows)

    return add


WEIGHTS = {"alike": 0.0, "norm": 1.0, "square": 2.0}


@torch.inference_mode()
def predictions(model: Any, text: list[int]) -> torch.Tensor:
    """Log probabilities `[T, V]`."""
    return model(input_ids=torch.tensor([text]), use_cache=False).logits[0].log_softmax(-1)


def distances(model: Any, texts: list[list[int]], expected: list[torch.Tensor]) -> dict[str, float]:
    """Of predictions from expected ones."""
    divergences, losses = [], []
    for text, wanted in zip(texts, expected, strict=True):
        found = predictions(model, text)
        divergences.append(float((wanted.exp() * (wanted - found)).sum(-1).mean()))
        places, labels = torch.arange(len(text) - 1), torch.tensor(text[1:])
        losses.append(float((wanted[places, labels] - found[places, labels]).mean()))
    row = {}
    for name, values in (("kl", divergences), ("nats", losses)):
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        row |= {name: round(fmean(values), 4), f"{name}_error": round(error, 4)}
    return row


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--calibrate", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--weights", default="alike,norm,square")
    parser.add_argument("--stretches", default="8,16,24")
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.checkpoint)
    texts = [_tokens(tokenizer, path, options.tokens, _START) for path in options.data]
    model = AutoModelForCausalLM.from_pretrained(options.checkpoint, dtype=torch.float32)
    model.eval().requires_grad_(False)
    expected = [predictions(model, text) for text in texts]
    text = options.calibrate.read_text(encoding="utf-8")
    for count in map(int, options.stretches.split(",")):
        stretches = calibration_texts(tokenizer, text, sequences=count).short
        for name in options.weights.split(","):
            statistics._add_weighted = weighted(WEIGHTS[name])
            shared = Shared(model, [list(stretch) for stretch in stretches])
            changed = METHODS["awq-gptq"](shared, tokenizer)
            row = {"weights": name, "stretches": len(stretches)}
            row |= distances(changed, texts, expected)
            shared.restore()
            with options.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
