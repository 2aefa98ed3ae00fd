"""Trained parts are stored compactly and loaded exactly."""

from __future__ import annotations

import torch
from safetensors.torch import load_file
from torch import nn

from edgeinfinite.models.trained_file import (
    load_into,
    modules_digest,
    read_layers,
    save_layers,
)


def test_tensors_exact_in_float16_are_stored_as_float16(tmp_path):
    linear = nn.Linear(8, 4)
    linear.bias.data = linear.bias.data.half().float()
    save_layers(tmp_path / "part.safetensors", [linear], {})
    stored = load_file(tmp_path / "part.safetensors")
    assert stored["layers.0.bias"].dtype == torch.float16
    assert stored["layers.0.weight"].dtype == torch.float32

    again = nn.Linear(8, 4)
    load_into(again, read_layers(tmp_path / "part.safetensors", 1, "part")[0], tmp_path, "part")
    assert torch.equal(again.weight, linear.weight) and torch.equal(again.bias, linear.bias)
    assert again.bias.dtype == torch.float32


def test_the_digest_is_of_tensors_and_form_whatever_order_a_card_has(tmp_path):
    layers = [nn.Linear(3, 2) for _ in range(2)]
    digest = modules_digest(layers, "elu constant")
    card = {str(number): "x" for number in range(20)}
    for name in ("a", "b"):
        save_layers(tmp_path / name, layers, card)
        again = [nn.Linear(3, 2) for _ in range(2)]
        for layer, tensors in zip(again, read_layers(tmp_path / name, 2, "gate"), strict=True):
            load_into(layer, tensors, tmp_path / name, "gate")
        assert modules_digest(again, "elu constant") == digest
    assert modules_digest(layers, "elu query") != digest
    assert modules_digest(layers[::-1], "elu constant") != digest
