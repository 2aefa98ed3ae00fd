"""What the shortcuts say is what ExecuTorch would have found out."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram, ExportGraphSignature

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from edgeinfinite.export.executorch.passes.graph_tools import is_constant
from edgeinfinite.export.executorch.shortcuts import remembered_weights


class _Weights(nn.Module):
    """A parameter, a buffer and a constant tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))
        self.scale = torch.tensor([2.0, 3.0, 4.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.layer(x) + self.shift) * self.scale


def _constants(program: ExportedProgram) -> list[str]:
    return [node.name for node in program.graph.nodes if is_constant(program, node)]


def test_weights_are_found_with_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    program = torch.export.export(_Weights(), (torch.ones(2, 3),), strict=False)
    before, wanted = program.graph_signature, _constants(program)
    assert len(wanted) == 4
    made: list[ExportGraphSignature] = []
    with remembered_weights(program):
        remembering = type(program.graph_signature)
        for name in ("inputs_to_parameters", "inputs_to_buffers"):
            table = vars(remembering)[name]
            monkeypatch.setattr(table, "func", _counted(table.func, made))
        assert _constants(program) == wanted
        assert _constants(program) == wanted
    assert len(made) == 2
    assert program.graph_signature is before


def _counted(table, made: list[ExportGraphSignature]):
    def counted(signature: ExportGraphSignature):
        made.append(signature)
        return table(signature)

    return counted
