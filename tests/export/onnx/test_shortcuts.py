"""A program that `torch.onnx` needn't take apart becomes the same graph without a second trace."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.onnx import BACKEND, shortcuts
from edgeinfinite.export.recipes import recipe_named
from tiny import attached

REENCODE = Geometry(segment_length=16, sink_length=4, window_length=4)
CARRY = Geometry(segment_length=8, sink_length=4, window_length=12, policy="carry")
RECALL = replace(CARRY, recall_slots=8)


@pytest.fixture
def traced_again(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that went the long way."""
    long_way = shortcuts._traced_again
    went: list[Any] = []

    def watched(program: Any, registry: Any) -> Any:
        went.append(program)
        return long_way(program, registry)

    monkeypatch.setattr(shortcuts, "_traced_again", watched)
    return went


@pytest.mark.parametrize("geometry", [REENCODE, CARRY, RECALL], ids=["reencode", "carry", "recall"])
def test_graphs_have_the_operators_of_a_second_trace(
    geometry: Geometry,
    traced_again: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def operators(folder: Path) -> dict[str, Counter[str]]:
        folder.mkdir()
        model = attached(geometry, layers=2)
        BACKEND.export_graphs(
            WeightRequest(model, recipe_named("int4")), folder, "cpu", lambda *_: None
        )
        graphs = {path.name: onnx.load(path).graph for path in folder.glob("*.onnx")}
        return {name: Counter(node.op_type for node in graphs[name].node) for name in graphs}

    short = operators(tmp_path / "short")
    assert not traced_again
    monkeypatch.setattr(shortcuts, "_is_known", lambda *_: False)
    assert short == operators(tmp_path / "long")
    assert len(traced_again) == 2


class _Differences(torch.nn.Module):
    """Has an operator without an ONNX function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diff(x)


class _InPlace(torch.nn.Module):
    """Has an operator that changes what it reads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[..., :2].fill_(1)
        return y


class _ReadLater(torch.nn.Module):
    """What was changed is seen through a view."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        rows = y[1:]
        y *= 3.0
        return rows - 1


class _Given(torch.nn.Module):
    """Changes a part of a tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y[1:].add_(x[1:])
        return y


def test_a_product_in_place_that_nobody_shares_is_a_product(traced_again: list[Any]) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            before = y * 2
            y *= x[0]
            y += 0.5
            y /= 3.0
            y /= x[1]
            return torch.where((y > 1) | (x > 5) & (y > 0), y - before, y)

    x = torch.arange(12.0).reshape(3, 4)
    x[1, 0] = -2.0
    program = torch.export.export(Scaled(), (x,), strict=False)
    with shortcuts.traced_once():
        exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
    assert exported is not None and not traced_again
    torch.testing.assert_close(exported(x)[0], Scaled()(x))


@pytest.mark.parametrize("module", [_Differences(), _InPlace(), _ReadLater(), _Given()])
def test_what_has_to_be_taken_apart_goes_the_long_way(
    module: torch.nn.Module, traced_again: list[Any]
) -> None:
    x = torch.arange(12.0).reshape(3, 4) ** 2
    program = torch.export.export(module, (x,), strict=False)
    with shortcuts.traced_once():
        exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
    assert len(traced_again) == 1 and exported is not None
    (found,) = exported(x)
    torch.testing.assert_close(found, module(x))


def test_a_conversion_to_the_same_type_leaves_no_operator(traced_again: list[Any]) -> None:
    class Conversions(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.float32).to("cpu").to(torch.float16).to(torch.float32) + x

    x = torch.tensor([1 / 3, 7.0])
    program = torch.export.export(Conversions(), (x,), strict=False)
    with shortcuts.traced_once():
        exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
    assert exported is not None and not traced_again
    assert [node.op_type for node in exported.model.graph] == ["Cast", "Cast", "Add"]
    torch.testing.assert_close(exported(x)[0], Conversions()(x))
