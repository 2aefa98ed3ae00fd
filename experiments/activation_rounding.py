"""What rounding the inputs of linear layers to 8 bits costs, one scale a token, as XNNPACK does.

    python experiments/activation_rounding.py MODEL TEXT [--report REPORT.jsonl --scorer SCORER]

Prints the divergence of the predictions in nats a token (KL), all layers rounded and kind by kind,
on 3 x 512 tokens of the text. With `--report`, channels are scaled first as an export does; what
`quantize-report` read of the text, with the same scorer, lies beside that file.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.export.mixing.calibration import calibration_texts
from edgeinfinite.export.mixing.measure import statistics_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.defaults import ModelOptions, resolve

_EVERY = 3
"""Of eight stretches the second, fifth and eighth are read."""


def rounded(x: torch.Tensor) -> torch.Tensor:
    """`[..., I]`, each row on a scale and a zero point of its own."""
    low = x.amin(-1, keepdim=True).clamp(max=0)
    high = x.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255).clamp_min(1e-12)
    zero = (-128 - low / scale).round().clamp(-128, 127)
    return ((x / scale + zero).round().clamp(-128, 127) - zero) * scale


@torch.inference_mode()
def log_shares(model: PreTrainedModel, texts: list[torch.Tensor]) -> list[torch.Tensor]:
    """Log-probabilities `[T, V]` of every text."""
    return [model(input_ids=t, use_cache=False).logits[0].log_softmax(-1) for t in texts]


def divergence(model: PreTrainedModel, texts: list[torch.Tensor], of: list[torch.Tensor]) -> float:
    """Nats a token between what the model says now and what it said."""
    now = log_shares(model, texts)
    each = [(b.exp() * (b - n)).sum(-1).mean() for b, n in zip(of, now, strict=True)]
    return float(torch.stack(each).mean())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--scorer")
    arguments = parser.parse_args()
    backbone = load_backbone(arguments.model)
    model, text = backbone.model, arguments.text.read_text(encoding="utf-8")
    if arguments.report is not None:
        attach(model, resolve(backbone, ModelOptions(scorer=arguments.scorer)).config)
        statistics_of(backbone, text, lambda *_: None, arguments.report)()
    stretches = calibration_texts(backbone.tokenizer, text).short[1::_EVERY]
    texts = [torch.tensor([list(stretch)]) for stretch in stretches]
    before = log_shares(model, texts)
    kinds: dict[str, list[nn.Linear]] = defaultdict(list)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and "memory_gate" not in name:
            kinds[name.rpartition(".")[2]].append(module)
    every = [module for modules in kinds.values() for module in modules]
    for kind, modules in {"all": every, **kinds}.items():
        handles = [m.register_forward_pre_hook(lambda _, x: (rounded(x[0]),)) for m in modules]
        print(f"{kind:<12}{divergence(model, texts, before):.4f}", flush=True)
        for handle in handles:
            handle.remove()


if __name__ == "__main__":
    main()
