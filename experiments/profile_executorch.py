"""Where the time of an ExecuTorch artifact goes.

python experiments/profile_executorch.py DIR [--slots 16,1000,2000 --threads 2]

The wheels of ExecuTorch can't record events, so the parts are measured by themselves: all linear
layers together as a program of their own, with and without the offsets of their groups, and the LM
head, made by the same passes and run by the same XNNPACK; attention as what more slots cost. The
rest is norms, RoPE, the memory's retrieval and gate, and the overhead of calls.
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

from edgeinfinite.artifact.manifest import Manifest, read_manifest
from edgeinfinite.export.executorch.lowering import lower, write_program
from edgeinfinite.export.executorch.passes import run_passes
from edgeinfinite.export.executorch.quantize import quantized
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines import load_engine

PREFILL_TOKENS = 256


class Linears(nn.Module):
    """Linear layers; those of the same width read the same input."""

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
    layers = [m for name, m in twin.named_modules() if name.endswith("_proj")]
    plain = [getattr(layer, "codes", layer) for layer in layers]
    widths = [int(layer.in_features) for layer in plain]
    inputs = [torch.randn(1, tokens, width) for width in sorted(set(widths))]
    whole = time_of(runtime, Linears(layers, widths), inputs)
    without = time_of(runtime, Linears(plain, widths), inputs)
    width = int(twin.lm_head.in_features)
    head = time_of(runtime, Linears([twin.lm_head], [width]), [torch.randn(1, 1, width)])
    return {"linear layers": without, "their offsets": whole - without, "LM head": head}


def main() -> None:
    """Prints the parts of decode for each number of slots, and of prefill on an empty cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artifact", type=Path, metavar="DIR")
    parser.add_argument("--slots", default="16,1000,2000", help="few slots first")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    engine: Any = load_engine(options.artifact, threads=options.threads)
    manifest = read_manifest(options.artifact)
    state = engine.new_state()
    for name, array in state.arrays.items():
        if "_cache_" in name:  # pages never written are one page of zeros, which reads too fast
            array[...] = np.random.default_rng(0).standard_normal(array.shape, np.float32)
    parts = linears_of(manifest, 1, engine._runtime)
    least = None
    for slots in (int(part) for part in options.slots.split(",")):
        state.length[:] = slots
        whole = fastest(lambda: engine.decode_step(np.array([[5]]), state))
        least = whole if least is None else least
        show(f"decode_step at {slots} slots", whole, parts | {"attention": whole - least})
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
