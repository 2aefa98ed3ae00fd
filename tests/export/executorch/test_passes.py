"""Each pass finds its places, and the program computes what it did before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers.models.llama.modeling_llama import LlamaRMSNorm, rotate_half

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from edgeinfinite.export.executorch.layers import OffsetLinear
from edgeinfinite.export.executorch.passes.elu_as_exp import elu_as_exp
from edgeinfinite.export.executorch.passes.folded_constants import folded_constants
from edgeinfinite.export.executorch.passes.gelu_as_sigmoid import gelu_as_sigmoid
from edgeinfinite.export.executorch.passes.graph_tools import (
    finish,
    nodes_of,
)
from edgeinfinite.export.executorch.passes.joins_of_few import joins_of_few
from edgeinfinite.export.executorch.passes.last_token_first import last_token_first
from edgeinfinite.export.executorch.passes.layer_norm_as_means import layer_norm_as_means
from edgeinfinite.export.executorch.passes.matmul_as_bmm import matmul_as_bmm
from edgeinfinite.export.executorch.passes.reductions_as_products import reductions_as_products
from edgeinfinite.export.executorch.passes.rotation_as_product import rotation_as_product
from edgeinfinite.export.executorch.passes.shapes_as_views import shapes_as_views
from edgeinfinite.export.executorch.passes.shared_inputs import shared_inputs
from edgeinfinite.export.executorch.passes.sort_as_topk import sort_as_topk
from edgeinfinite.export.executorch.passes.without_assertions import without_assertions
from edgeinfinite.models.memory.compressive import retrieve
from edgeinfinite.models.memory.feature_map import elu_features

Pass = Callable[[torch.export.ExportedProgram], int]


class Calls(nn.Module):
    """A function as a module, with submodules for its weights."""

    def __init__(self, function: Callable[..., Any], **modules: Any) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(self, *args)


def check(
    rewrite: Pass,
    module: nn.Module,
    *args: torch.Tensor,
    places: int,
    gone: Any = None,
    dynamic_axis: int | None = None,
    exact: bool = False,
) -> torch.export.ExportedProgram:
    """Runs a pass on a module's program and compares, also for another size of the dynamic axis."""
    module = module.eval().requires_grad_(False)
    shapes = None
    if dynamic_axis is not None:
        axis = {dynamic_axis: torch.export.Dim("T", min=2, max=64)}
        shapes = (tuple(axis if i == 0 else None for i in range(len(args))),)
    program = torch.export.export(
        module,
        args,
        dynamic_shapes=shapes,
        strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    assert rewrite(program) == places
    finish(program)
    assert not [node for node in program.graph.nodes if gone and node.target is gone]
    cases = [args]
    if dynamic_axis is not None:
        cases.append((torch.cat([args[0]] * 2, dim=dynamic_axis), *args[1:]))
    for case in cases:
        wanted, got = module(*case), program.module(check_guards=False)(*case)
        tolerance = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-6, "atol": 1e-6}
        torch.testing.assert_close(got, wanted, **tolerance)
    return program


def test_rms_norm_without_a_mean() -> None:
    norm = LlamaRMSNorm(24)
    nn.init.normal_(norm.weight)
    check(
        reductions_as_products,
        Calls(lambda self, x: self.norm(x), norm=norm),
        torch.randn(1, 5, 24),
        places=1,
        gone=torch.ops.aten.mean.dim,
        dynamic_axis=1,
    )


def test_a_norm_of_heads_without_a_mean() -> None:
    module = Calls(lambda self, x: self.norm(x), norm=LlamaRMSNorm(8))
    check(reductions_as_products, module, torch.randn(1, 5, 3, 8), places=1, dynamic_axis=1)


def test_sums_over_groups_without_a_sum() -> None:
    module = Calls(lambda self, x: x.reshape(1, -1, 3, 8).sum(-1))
    check(
        reductions_as_products,
        module,
        torch.randn(1, 5, 24),
        places=1,
        gone=torch.ops.aten.sum.dim_IntList,
        dynamic_axis=1,
    )


def test_other_means_and_sums_are_left_alone() -> None:
    module = Calls(lambda self, x: x.mean(1, keepdim=True) + x.sum((1, 2)) + x.long().sum(-1))
    check(reductions_as_products, module, torch.randn(1, 5, 5), places=0)


def test_the_feature_map_without_elu() -> None:
    x = torch.linspace(-90, 90, 2001).reshape(1, -1)
    module = Calls(lambda self, x: elu_features(x))
    check(elu_as_exp, module, x, places=1, gone=torch.ops.aten.elu.default)


def test_the_tanh_form_of_gelu_is_not_taken_for_the_other() -> None:
    """XNNPACK's delegate computes the other for both, which differs by up to 0.0005."""
    module = Calls(lambda self, x: functional.gelu(x, approximate="tanh") + functional.gelu(x))
    x = torch.linspace(-9, 9, 2001).reshape(1, -1)
    program = check(gelu_as_sigmoid, module, x, places=1)
    assert [node.kwargs for node in nodes_of(program, torch.ops.aten.gelu.default)] == [{}]


def test_another_elu_is_left_alone() -> None:
    module = Calls(lambda self, x: functional.elu(x, alpha=0.5) + 1 + functional.elu(x) * 2)
    check(elu_as_exp, module, torch.randn(1, 9), places=0)


def test_the_rotation_of_rope_as_an_exact_product() -> None:
    module = Calls(lambda self, x: rotate_half(x))
    check(
        rotation_as_product,
        module,
        torch.randn(1, 4, 5, 16),
        places=1,
        gone=torch.ops.aten.cat.default,
        dynamic_axis=2,
        exact=True,
    )


@pytest.mark.parametrize(
    "turned",
    [
        lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2),
        lambda x: torch.stack((x[..., 1::2], -x[..., ::2]), dim=-1).flatten(-2),
        lambda x: torch.cat((x[..., 8:], -x[..., :8]), dim=-1),
        lambda x: x.repeat_interleave(2, dim=-1),
    ],
    ids=["neighbours", "neighbours, backwards", "halves, backwards", "angles of neighbours"],
)
def test_other_rotations_are_exact_products_too(
    turned: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    module = Calls(lambda self, x: turned(x))
    x = torch.randn(1, 4, 5, 16)
    check(rotation_as_product, module, x, places=1, dynamic_axis=2, exact=True)


@pytest.mark.parametrize(
    ("width", "other"),
    [
        (16, lambda x: torch.cat([-x[..., :8], x[..., 8:]], -1)),
        (16, lambda x: torch.cat([-x[..., 8:], -x[..., :8]], -1)),
        (18, lambda x: torch.cat([-x[..., 8:16], x[..., :8]], -1)),
        (16, lambda x: torch.stack((-x[..., ::2], x[..., 1::2]), dim=-1).flatten(-2)),
        (16, lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), dim=-2).flatten(-2)),
        (16, lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-3)),
        (16, lambda x: x.repeat_interleave(3, dim=-1)),
    ],
)
def test_other_joined_slices_are_left_alone(
    width: int, other: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    module = Calls(lambda self, x: other(x))
    check(rotation_as_product, module, torch.randn(1, 2, 5, width), places=0)


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 2), (4, 4), (8, 1)])
def test_grouped_queries_read_the_memory_in_one_product_per_kv_head(
    heads: int, kv_heads: int
) -> None:
    memory, norm = torch.randn(kv_heads, 8, 8), torch.rand(kv_heads, 8) + 1
    program = check(
        matmul_as_bmm,
        Calls(lambda self, q, m, z: retrieve(q, m, z)),
        torch.randn(1, heads, 5, 8),
        memory,
        norm,
        places=2,
        gone=torch.ops.aten.matmul.default,
        dynamic_axis=2,
    )
    assert "aten.expand.default" not in {str(node.target) for node in program.graph.nodes}


def test_changes_of_shape_have_at_most_one_open_size() -> None:
    def shapes(_: nn.Module, x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        grouped = x.unsqueeze(0).reshape(1, 2, -1, 8).transpose(1, 2).flatten(2)
        return grouped[0].reshape(-1, 2, 8) + m.select(0, 0).unsqueeze(0).expand(1, 2, 8)

    program = check(
        shapes_as_views,
        Calls(shapes),
        torch.randn(6, 5, 8),
        torch.randn(1, 2, 8),
        places=8,
        dynamic_axis=1,
    )
    for node in program.graph.nodes:
        if node.target is torch.ops.aten.view.default:
            assert all(isinstance(size, int) for size in node.args[1])
            assert node.args[1].count(-1) <= 1


def test_integers_keep_their_shapes_as_they_are() -> None:
    module = Calls(lambda self, x: x.unsqueeze(0).float())
    check(shapes_as_views, module, torch.arange(5), places=0)


class _Decoder(nn.Module):
    """The end of a decoder: mixing of tokens, residual, norm, MLP, norm, selection, head."""

    def __init__(self, down: nn.Module) -> None:
        super().__init__()
        self.norms = nn.ModuleList(LlamaRMSNorm(16) for _ in range(2))
        self.up, self.down, self.head = nn.Linear(16, 64), down, nn.Linear(16, 9)

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        x = args[0] + args[0].cumsum(1)
        x = x + self.down(functional.silu(self.up(self.norms[0](x))))
        return self.head(self.norms[1](x)[:, -1:, :])


@pytest.mark.parametrize("affine", [False, True])
def test_a_layer_norm_is_means(affine: bool) -> None:
    norm = nn.LayerNorm(16, eps=1e-3, elementwise_affine=affine)
    if affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    module = Calls(lambda self, x: self.norm(x), norm=norm)
    check(layer_norm_as_means, module, 3 + 5 * torch.randn(1, 5, 16), places=1, dynamic_axis=1)


@pytest.mark.parametrize(("parts", "places"), [(5, 0), (6, 1), (30, 1)])
def test_no_join_is_of_more_than_xnnpack_takes(parts: int, places: int) -> None:
    def joined(_: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scaled = [x * (index + 1) for index in range(parts)]
        return torch.stack(scaled, -2), torch.cat(scaled, 1)

    program = check(joins_of_few, Calls(joined), torch.randn(1, 3, 4), places=2 * places)
    joins = nodes_of(program, torch.ops.aten.cat.default)
    assert all(len(node.args[0]) <= 5 for node in joins)


@pytest.mark.parametrize("offsets", [False, True])
def test_only_the_last_token_goes_through_the_last_mlp(offsets: bool) -> None:
    down: nn.Module = nn.Linear(64, 16)
    if offsets:
        down = OffsetLinear(down, nn.Linear(2, 16, bias=False))

    def moved(program: torch.export.ExportedProgram) -> int:
        without_assertions(program)  # else they need all tokens
        return last_token_first(program)

    program = check(moved, _Decoder(down), torch.randn(1, 5, 16), places=1, dynamic_axis=1)
    for node in program.graph.nodes:
        if node.target in (torch.ops.aten.linear.default, torch.ops.aten.silu.default):
            assert node.meta["val"].shape[1] == 1


def test_values_shared_by_all_tokens_are_computed_once() -> None:
    def shared(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.first(x)
        return self.second(y)[:, -1:], y

    module = Calls(shared, first=nn.Linear(8, 8), second=nn.Linear(8, 8))
    program = check(last_token_first, module, torch.randn(1, 5, 8), places=1, dynamic_axis=1)
    linears = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    assert len(linears) == 2


def test_layers_with_one_input_quantize_it_once() -> None:
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.utils import unwrap_tensor_subclass

    module = Calls(
        lambda self, x: (self.q(x), self.k(x), self.v(x * 2)),
        **{name: nn.Linear(32, 32) for name in "qkv"},
    )
    config = Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32))
    quantize_(module, config)
    unwrap_tensor_subclass(module)
    program = check(
        shared_inputs, module, torch.randn(1, 5, 32), places=5, dynamic_axis=1, exact=True
    )
    chosen = torch.ops.torchao.choose_qparams_affine.default
    assert len([node for node in program.graph.nodes if node.target is chosen]) == 2


def test_attention_and_mlp_with_one_input_round_its_last_token_apart() -> None:
    """As in Cohere: XNNPACK has no layer with rounded weights behind anything but the rounding."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.utils import unwrap_tensor_subclass

    module = Calls(
        lambda self, x: (self.q(x).cumsum(1) + self.up(x))[:, -1:],
        **{name: nn.Linear(32, 32) for name in ("q", "up")},
    )
    quantize_(module, Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32)))
    unwrap_tensor_subclass(module)

    def shared_and_moved(program: torch.export.ExportedProgram) -> int:
        return shared_inputs(program) and last_token_first(program)

    program = check(shared_and_moved, module, torch.randn(1, 5, 32), places=1, dynamic_axis=1)
    linears = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    assert sorted(isinstance(n.meta["val"].shape[1], int) for n in linears) == [False, True]
    rounded = torch.ops.torchao.dequantize_affine.default
    assert all(node.args[0].target is rounded for node in linears)


def _with_offsets() -> nn.Module:
    return OffsetLinear(nn.Linear(64, 8), nn.Linear(2, 8, bias=False))


def test_layers_with_one_input_sum_its_groups_once() -> None:
    module = Calls(lambda self, x: self.q(x) + self.k(x), q=_with_offsets(), k=_with_offsets())
    program = check(
        shared_inputs, module, torch.randn(1, 5, 64), places=2, dynamic_axis=1, exact=True
    )
    sums = torch.ops.aten.sum.dim_IntList
    assert len([node for node in program.graph.nodes if node.target is sums]) == 1


def test_the_gates_opening_is_a_constant() -> None:
    def gated(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.g) * x + torch.zeros(3, 1) + torch.sigmoid(x)

    module = Calls(gated, g=nn.Parameter(torch.randn(3, 4)))
    program = check(folded_constants, module, torch.randn(3, 4), places=2)
    sigmoids = [n for n in program.graph.nodes if n.target is torch.ops.aten.sigmoid.default]
    assert len(sigmoids) == 1


def test_assertions_are_dropped() -> None:
    def asserting(_: nn.Module, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        start = n.item()
        torch._check(start >= 0)
        torch._check(start < x.shape[0])
        return x * 2

    module = Calls(asserting).eval()
    program = torch.export.export(module, (torch.randn(7), torch.tensor(3)), strict=False)
    assert without_assertions(program) > 0
    finish(program)
    assert "assert" not in program.graph_module.code


def test_numbers_are_sorted_without_a_sort() -> None:
    module = Calls(lambda self, x: x.topk(5, sorted=False).indices.sort(dim=-1).values * 2)
    sort = torch.ops.aten.sort.default
    check(sort_as_topk, module, torch.randn(2, 3, 40), places=1, gone=sort, exact=True)


def test_a_sort_whose_indices_are_used_is_left_alone() -> None:
    module = Calls(lambda self, x: (x.sort(-1).indices, x.sort(-1, descending=True).values))
    check(sort_as_topk, module, torch.randn(3, 7), places=0, exact=True)
