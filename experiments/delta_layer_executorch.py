"""What a layer with a gated delta rule takes on ExecuTorch, against its matrix products alone.

    python experiments/delta_layer_executorch.py --quantize int4 --tokens 128

The layer has the shape of Qwen3.5-0.8B's and random weights, as in `delta_layer.py`. It is a
program of its own: its norms, projections, convolution, rule and MLP, made by the passes that an
export has. Its products stand beside it in another program. So does the rule, as the operator and
in chunks of 32 tokens. All take turns of some runs each.

Letters: T tokens, d width, E channels, R columns of a convolution's state, U heads, I dimensions of
a key, J of a value.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from chunked_delta_rule import ChunkedDeltaRule
from delta_layer import Turns, asked, report, small_model
from profile_executorch import Linears
from torch import nn
from torch.nn.functional import normalize
from transformers import PreTrainedModel

from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.quantize import quantized
from edgeinfinite.export.executorch.recurrences import _operator, recurrences
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.recurrent_states import (
    RecurrentStates,
    recurrent_layers,
    recurrent_tensors,
)
from edgeinfinite.runtime_py.engines import executorch_engine

CHUNK = 32
"""Tokens: 16 and 64 took longer."""

MOST = 128
"""Tokens to which fewer are filled up for the rule in chunks."""


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
                name: Timed(runtime, module, inputs, Path(folder) / name)
                for name, module, inputs in programs(twin, options.tokens)
            }
        turns = [[part.turn() for part in parts.values()] for _ in range(options.turns)]
    report([(turn[0], turn[1]) for turn in turns])
    for number, name in enumerate(parts):
        if number > 1:
            alone = [time for turn in turns for time in turn[number]]
            print(f"{name}: median {statistics.median(alone):.2f} ms, least {min(alone):.2f} ms")


def programs(
    model: PreTrainedModel, tokens: int
) -> list[tuple[str, nn.Module, tuple[torch.Tensor, ...]]]:
    """The layer, its products and its rule, each with random inputs."""
    layer = model.get_decoder().layers[0]
    states = [torch.randn(tensor.shape) for tensor in recurrent_tensors(model)]
    hidden = torch.randn(1, tokens, model.config.hidden_size)
    linears = [part for part in layer.modules() if isinstance(part, nn.Linear)]
    widths = [int(part.in_features) for part in linears]
    inputs = tuple(torch.randn(1, tokens, width) for width in sorted(set(widths)))
    heads, inner, outer = states[1].shape[1:]
    keys = [normalize(torch.randn(1, tokens, heads, inner), dim=-1) for _ in range(2)]
    value = torch.randn(1, tokens, heads, outer)
    rates = [-torch.rand(1, tokens, heads), torch.rand(1, tokens, heads)]
    of_rule = (*keys, value, *rates, states[1])
    return [
        ("layer", Layer(model, layer), (hidden, *states)),
        ("products", Linears(linears, widths), inputs),
        ("rule", Rule(), of_rule),
        ("rule in chunks", ChunkedDeltaRule(MOST, states[1].shape, CHUNK), of_rule),
    ]


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
    """The delta rule alone."""

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Query, key `[1, T, U, I]`, value, decay and rate `[1, T, U]`, state `[1, U, I, J]`."""
        return list(_operator(*inputs))


class Timed(Turns):
    """A module as a program."""

    def __init__(
        self, runtime: Any, module: nn.Module, inputs: tuple[torch.Tensor, ...], path: Path
    ) -> None:
        sizes = _any_number(inputs) if isinstance(module, ChunkedDeltaRule) else None
        with torch.no_grad():
            program = torch.export.export(
                module.eval(),
                inputs,
                dynamic_shapes=sizes,
                strict=False,
                prefer_deferred_runtime_asserts_over_guards=True,
            )
        run_passes(program)
        write_program(lower({"part": program}), path)
        self._loaded = runtime._load_program(str(path))
        self._method = self._loaded.load_method("part")
        given = list(inputs)
        self.run = lambda: self._method.call(given, clone_outputs=False)


def _any_number(inputs: tuple[torch.Tensor, ...]) -> tuple[dict[int, Any], ...]:
    """Of tokens, in all inputs but the state."""
    tokens = torch.export.Dim("T", min=2, max=MOST)
    return (*({1: tokens} for _ in inputs[:-1]), {})


if __name__ == "__main__":
    main()
