"""Tables and constants in a program are what the model computes, in fewer bytes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

pytest.importorskip("executorch")

from edgeinfinite.export.executorch.passes.graph_tools import finish, is_constant, value_of
from edgeinfinite.export.executorch.passes.half_constants import half_constants
from edgeinfinite.export.executorch.passes.rope_tables import RopeTables, rope_tables
from edgeinfinite.models.recall.movement import rotary_tables
from tiny import tiny_llama


def test_angles_from_tables_are_the_models_own() -> None:
    model = tiny_llama()
    tokens = torch.randint(3, 90, (1, 11))
    wanted = model(tokens).logits
    rotary = model.get_decoder().rotary_emb
    with rope_tables(model, capacity=32):
        assert model.get_decoder().rotary_emb is not rotary
        torch.testing.assert_close(model(tokens).logits, wanted, rtol=0, atol=0)
    assert model.get_decoder().rotary_emb is rotary


def test_a_table_of_angles_has_one_half_where_both_are_turned_alike() -> None:
    model, places = tiny_llama(), torch.arange(32).unsqueeze(0)
    with rope_tables(model, capacity=32):
        tables = dict(model.get_decoder().rotary_emb.named_buffers())
    moving = rotary_tables(model, 32)[0]
    assert torch.equal(tables["cosines"], moving.cos) and torch.equal(tables["sines"], moving.sin)

    class Unlike(nn.Module):
        def forward(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, ...]:
            angles = positions.float().unsqueeze(-1) * torch.tensor([1.0, 1.0, 0.1, 0.1])
            return angles.cos(), angles.sin()

    whole = RopeTables(Unlike(), 32)
    for made, wanted in zip(whole(torch.zeros(1), places), Unlike()(places, places), strict=True):
        assert torch.equal(made, wanted)
    assert whole.get_buffer("cosines").shape == (32, 4)


def test_constants_that_halves_hold_are_stored_as_such() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(0)
            exact = torch.randn(80, 80, generator=generator).half().float()
            self.register_buffer("exact", exact)
            self.register_buffer("inexact", exact + 1e-5)
            self.register_buffer("small", exact[:8, :8].clone())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x @ self.exact @ self.inexact
            return y[:, :8] @ self.small + (self.exact @ y.T).T[:, :8]

    module, x = Weighted().eval(), torch.randn(3, 80)
    program = torch.export.export(module, (x,), strict=False)
    assert half_constants(program) == 1
    finish(program)
    kinds = [value_of(program, n).dtype for n in program.graph.nodes if is_constant(program, n)]
    assert sorted(map(str, kinds)) == ["torch.float16", "torch.float32", "torch.float32"]
    torch.testing.assert_close(program.module()(x), module(x), atol=0, rtol=0)
