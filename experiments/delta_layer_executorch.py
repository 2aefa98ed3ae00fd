"""What a layer with a gated delta rule takes on ExecuTorch, against its matrix products alone.

    python experiments/delta_layer_executorch.py --quantize int4 --tokens 128

The layer has the shape of Qwen3.5-0.8B's and random weights, as in `delta_layer.py`. It is a
program of its own: its norms, projections, convolution, rule and MLP, made by the passes that an
export has. Its products stand beside it in another program. So does the rule, as the operator and
in chunks. All take turns of some runs each.

Letters: T tokens, d width, E channels, R columns of a convolution's state, U heads, I dimensions of
a key, J of a value.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from delta_layer import Turns, asked, report, small_model
from profile_executorch import Linears
from torch import nn
from torch.nn.functional import normalize
from transformers import PreTrainedModel

from edgeinfinite.export.executorch.chunks import MOST_TOKENS, in_chunks
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.quantize import quantized
from edgeinfinite.export.executorch.recurrences import _operator, recurrences
from edgeinfinite.export.graphs.tokens import EXAMPLE_TOKENS
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.recurrent_states import (
    RecurrentStates,
    recurrent_layers,
    recurrent_tensors,
)
from edgeinfinite.runtime_py.engines import executorch_engine


def main() -> None:
    """The command line."""
    options = asked(__doc__ or "")
    _, runtime = executorch_engine._executorch()
    executorch_engine._set_threads(runtime, options.threads)
    model = small_model()
    twin, _ = quantized(model, recipe_named(options.quantize))
    with tempfile.TemporaryDirectory() as folder:
        with recurrences(twin):
            parts = {
                name: Timed(runtime, Part(module), inputs, Path(folder) / name)
                for name, module, *inputs in programs(twin, options.tokens)
            }
        turns = [[part.turn() for part in parts.values()] for _ in range(options.turns)]
    report([(turn[0], turn[1]) for turn in turns])
    for number, name in enumerate(parts):
        if number > 1:
            alone = [time for turn in turns for time in turn[number]]
            print(f"{name}: median {statistics.median(alone):.2f} ms, least {min(alone):.2f} ms")


def programs(
    model: PreTrainedModel, tokens: int
) -> list[tuple[str, nn.Module, list[torch.Tensor], list[torch.Tensor]]]:
    """The layer, its products and its rule, each with random inputs by token and states."""
    layer = model.get_decoder().layers[0]
    states = [torch.randn(tensor.shape) for tensor in recurrent_tensors(model)]
    hidden = torch.randn(1, tokens, model.config.hidden_size)
    linears = [part for part in layer.modules() if isinstance(part, nn.Linear)]
    widths = [int(part.in_features) for part in linears]
    inputs = [torch.randn(1, tokens, width) for width in sorted(set(widths))]
    heads, inner, outer = states[1].shape[1:]
    keys = [normalize(torch.randn(1, tokens, heads, inner), dim=-1) for _ in range(2)]
    value = torch.randn(1, tokens, heads, outer)
    rates = [-torch.rand(1, tokens, heads, 1), torch.rand(1, tokens, heads, 1)]
    of_rule = [torch.cat((*keys, value, *rates), dim=-1)], states[1:]
    return [
        ("layer", Layer(model, layer), [hidden], states),
        ("products", Linears(linears, widths), inputs, []),
        ("rule", Rule(_operator), *of_rule),
        ("rule in chunks", Rule(in_chunks), *of_rule),
    ]


class Part(nn.Module):
    """Gives a module its inputs by token and its states."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, by_token: list[torch.Tensor], held: list[torch.Tensor]) -> Any:
        """What the module makes of all."""
        return self.module(*by_token, *held)


class Layer(nn.Module):
    """A decoder layer over its states."""

    def __init__(self, model: PreTrainedModel, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self._layers = recurrent_layers(model)

    def forward(self, hidden: torch.Tensor, *states: torch.Tensor) -> list[torch.Tensor]:
        """`[1, T, d]` and the states `[1, E, R]`, `[1, U, I, J]`: all of them anew."""
        cache = RecurrentStates(self._layers, states)
        result = self.layer(hidden, position_embeddings=None, past_key_values=cache)
        return [result, *cache.tensors]


class Rule(nn.Module):
    """The delta rule alone, computed one way or the other."""

    def __init__(self, compute: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
        super().__init__()
        self._compute = compute

    def forward(self, joined: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
        """Query, key, value, decay and rate, `[1, T, U, 2 I + J + 2]`, and state `[1, U, I, J]`."""
        inner, outer = state.shape[2:]
        sizes = [inner, inner, outer, 1, 1]
        query, key, value, decay, rate = joined.split_with_sizes(sizes, dim=-1)
        decay, rate = decay.squeeze(3), rate.squeeze(3)
        return list(self._compute(query, key, value, decay, rate, state))


class Timed(Turns):
    """A module as a program."""

    def __init__(
        self, runtime: Any, part: Part, inputs: list[list[torch.Tensor]], path: Path
    ) -> None:
        by_token, held = inputs
        tokens = {1: torch.export.Dim("T", min=2, max=MOST_TOKENS)}
        few = [x[:, :EXAMPLE_TOKENS].contiguous() for x in by_token]
        with torch.no_grad():
            program = torch.export.export(
                part.eval(),
                (few, held),
                dynamic_shapes=([tokens] * len(by_token), [None] * len(held)),
                strict=False,
                prefer_deferred_runtime_asserts_over_guards=True,
            )
        run_passes(program)
        write_program(lower({"part": program}), path)
        self._loaded = runtime._load_program(str(path))
        self._method = self._loaded.load_method("part")
        given = [*by_token, *held]
        self.run = lambda: self._method.call(given, clone_outputs=False)


if __name__ == "__main__":
    main()
