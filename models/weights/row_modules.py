"""Linear layers and embeddings whose float32 weights exist a few rows at a time.

A model of 3 billion weights takes 12 GB in float32, and a reference beside it 12 GB more. Here the
weights stay as they are held (half precision, or integers), and rows of them become float32 while
they are multiplied with. Sums are float32 ones, so results are those of float32 weights but for the
order of sums.

Letters: O outputs, I inputs, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

_PART = 2**17
"""Numbers of a weight that are float32 at a time: half a MiB stays in a core's cache, and malloc
has it at hand, also where it maps pieces of a MiB (`malloc_options`). 2 MiB took ten times as long
there."""


class RowLinear(nn.Linear):
    """nn.Linear over a weight that `rows` gives; the parameter `weight` is up to the subclass.

    Args:
        linear: whose shape and bias it has.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=False, device="meta")
        self.bias = linear.bias

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        """Rows `[n, I]` of the weight, float32."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[..., I]` float32 to `[..., O]`."""
        rows = max(1, _PART // self.in_features)
        parts = [
            functional.linear(x, self.rows(slice(start, start + rows)))
            for start in range(0, self.out_features, rows)
        ]
        product = torch.cat(parts, dim=-1)
        return product if self.bias is None else product + self.bias


class RowEmbedding(nn.Embedding):
    """nn.Embedding over a table that `rows` gives.

    Args:
        embedding: whose shape it has.
        factor: what some models (Gemma) multiply an embedding with.
    """

    def __init__(self, embedding: nn.Embedding, factor: float) -> None:
        super().__init__(
            embedding.num_embeddings, embedding.embedding_dim, embedding.padding_idx, device="meta"
        )
        self.embed_scale = factor

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        """Rows `[n, I]` of the table, float32."""
        raise NotImplementedError

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """`[...]` int64 to `[..., I]` float32."""
        return self.rows(tokens.flatten()).unflatten(0, tokens.shape) * self.embed_scale


class StoredLinear(RowLinear):
    """A linear layer whose parameter is in half precision, as a checkpoint stores it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear)
        self.weight = linear.weight

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        return self.weight[order].float()


class StoredEmbedding(RowEmbedding):
    """An embedding whose parameter is in half precision, as a checkpoint stores it."""

    def __init__(self, embedding: nn.Embedding, factor: float) -> None:
        super().__init__(embedding, factor)
        self.weight = embedding.weight

    def rows(self, order: slice | torch.Tensor) -> torch.Tensor:
        return self.weight[order].float()


def is_linear(module: nn.Module) -> bool:
    """Whether it computes x Wᵀ + b with its parameters, and nothing else."""
    return type(module) in (nn.Linear, StoredLinear)


def plain_product(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """x Wᵀ + b in float32, without what a subclass may do to x; no hooks run."""
    if isinstance(layer, RowLinear):
        return layer.forward(x)
    product = functional.linear(x, layer.weight)
    return product if layer.bias is None else product + layer.bias


def embedding_factor(module: nn.Module) -> float | None:
    """What the module multiplies a row of its table with; None if it isn't such an embedding."""
    if not isinstance(module, nn.Embedding):
        return None
    factor = float(getattr(module, "embed_scale", 1.0))
    row = module.weight[:1].detach().float()
    table = row.expand(module.weight.shape)  # the module's own code sees float32
    made = functional_call(module, {"weight": table}, (torch.zeros(1, dtype=torch.int64),))
    return factor if torch.allclose(made, row * factor, rtol=1e-5) else None


def holds_stored(model: nn.Module) -> bool:
    """Whether some weights are in half precision while the model computes in float32."""
    return any(isinstance(module, StoredLinear | StoredEmbedding) for module in model.modules())


def compute_dtype(model: Any) -> torch.dtype:
    """Of the activations of a transformers model."""
    return torch.float32 if holds_stored(model) else model.dtype


def widen_stored(model: nn.Module) -> None:
    """Puts ordinary float32 modules in the place of stored ones; tied weights stay tied."""
    made: dict[int, nn.Parameter] = {}
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            if not isinstance(module, StoredLinear | StoredEmbedding):
                continue
            weight = module.weight
            if id(weight) not in made:
                made[id(weight)] = nn.Parameter(weight.detach().float(), requires_grad=False)
            module.weight = made[id(weight)]
            setattr(parent, name, _ordinary(module))


def _ordinary(module: StoredLinear | StoredEmbedding) -> nn.Module:
    if isinstance(module, StoredEmbedding):
        return module  # what it computes is right in any type
    linear = nn.Linear(module.in_features, module.out_features, bias=False, device="meta")
    linear.weight, linear.bias = module.weight, module.bias
    return linear.train(module.training)
