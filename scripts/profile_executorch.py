"""Where the time of an ExecuTorch artifact goes.

python scripts/profile_executorch.py DIR [--slots 16,1000,2000 --threads 2]

The wheels of ExecuTorch can't record events, so the parts are measured by themselves: the linear
layers as small programs of the artifact's own shapes, made by the same passes and run by the same
XNNPACK; attention and the writing of the caches as the operators that the program calls. What is
left of a whole call is the rest: norms, RoPE, the memory's retrieval and gate, and starting them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from edgeinfinite.export.executorch import operators  # noqa: F401  (registers llama::*)
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.quantize import QuantizedEmbedding, quantized
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.loading import load_backbone
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.manifest import Manifest, read_manifest

PREFILL_TOKENS = 256


class Linears(nn.Module):
    """All linear layers of a decoder layer; those of the same width read the same input."""

    def __init__(self, layers: list[nn.Module], widths: list[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.widths = widths

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Outputs for one input `[1, T, I]` of each width I, in ascending order."""
        by_width = dict(zip(sorted(set(self.widths)), inputs, strict=True))
        return [layer(by_width[i]) for layer, i in zip(self.layers, self.widths, strict=True)]


def fastest(call: Callable[[], object], seconds: float = 1.0) -> float:
    """Milliseconds of the fastest call within some time; the first two warm up."""
    call(), call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def time_of(runtime: Any, module: nn.Module, inputs: list[torch.Tensor]) -> float:
    """Milliseconds of a module as a program of its own."""
    with torch.no_grad():
        program = torch.export.export(module.eval(), tuple(inputs), strict=False)
    run_passes(program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.pte"
        write_program(lower({"part": program}), path)
        loaded = runtime._load_program(str(path))
        method = loaded.load_method("part")
        return fastest(lambda: method.call(inputs))


def linears_of(manifest: Manifest, tokens: int, runtime: Any) -> dict[str, float]:
    """Milliseconds of the layers' linears, of their offsets, and of the LM head."""
    model = load_backbone(manifest.backbone.name).model
    attach(model, EdgeInfiniteConfig(manifest.geometry, NO_GATE))
    twin, _ = quantized(model, recipe_named(manifest.quantization.recipe))
    first = twin.get_decoder().layers[0]
    layers = [
        module
        for name, module in first.named_modules()
        if name.endswith("_proj") and not isinstance(module, QuantizedEmbedding)
    ]
    plain = [getattr(layer, "codes", layer) for layer in layers]
    widths = [int(layer.in_features) for layer in plain]
    inputs = [torch.randn(1, tokens, width) for width in sorted(set(widths))]
    count = manifest.backbone.layers
    whole = count * time_of(runtime, Linears(layers, widths), inputs)
    without = count * time_of(runtime, Linears(plain, widths), inputs)
    head = time_of(runtime, twin.lm_head, [torch.randn(1, 1, twin.lm_head.in_features)])
    return {"linear layers": without, "their offsets": whole - without, "LM head": head}


def attention_of(manifest: Manifest, slots: int) -> dict[str, float]:
    """Milliseconds of decode's attention and of the writing of the caches, in all layers."""
    shape = manifest.backbone
    size = (1, manifest.geometry.capacity, shape.kv_heads, shape.head_dim)
    keys, values = torch.randn(size), torch.randn(size)
    query = torch.randn(1, 1, shape.query_heads, shape.head_dim)
    new = torch.randn(1, 1, shape.kv_heads, shape.head_dim)
    attend, write = torch.ops.llama.custom_sdpa, torch.ops.llama.update_cache
    scale = shape.head_dim**-0.5
    return {
        "attention": shape.layers
        * fastest(lambda: attend(query, keys, values, slots, None, 0.0, True, scale), 0.3),
        "cache writes": 2 * shape.layers * fastest(lambda: write(new, keys, slots), 0.3),
    }


def main() -> None:
    """Prints the parts of decode for each number of slots, and of prefill on an empty cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artifact", type=Path, metavar="DIR")
    parser.add_argument("--slots", default="16,1000,2000")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    engine: Any = load_engine(options.artifact, threads=options.threads)
    manifest = read_manifest(options.artifact)
    state = engine.new_state()
    one = linears_of(manifest, 1, engine._runtime)
    for slots in (int(part) for part in options.slots.split(",")):
        state.length[:] = slots
        whole = fastest(lambda: engine.decode_step(np.array([[5]]), state))
        show(f"decode_step at {slots} slots", whole, one | attention_of(manifest, slots))
    state.length[:] = 0
    many = np.arange(PREFILL_TOKENS)[None] + 5
    whole = fastest(lambda: engine.prefill_segment(many, state))
    parts = linears_of(manifest, PREFILL_TOKENS, engine._runtime)
    show(f"prefill_segment of {PREFILL_TOKENS} tokens at 0 slots", whole, parts)


def show(what: str, whole: float, parts: dict[str, float]) -> None:
    """One line a part; the rest is what the parts leave of the whole."""
    print(f"{what}: {whole:.2f} ms")
    for name, part in (parts | {"the rest": whole - sum(parts.values())}).items():
        print(f"  {name:<16}{part:8.2f} ms {part / whole:5.0%}", flush=True)


if __name__ == "__main__":
    main()
