"""How long a token takes where each layer computes 4 of 32 experts, and where it computes all 32.

    python experiments/experts_decode.py [--threads 1] [--rounds 60]

A random OLMoE of 8 layers, hidden size 512, experts of 512, in 4 bits and in float32. Beside it the
same weights with all experts chosen for each token: what a graph computes that knows no choice. The
artifacts take turns, token by token; the figures are medians.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from transformers import OlmoeConfig, OlmoeForCausalLM, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.manifest import SCHEMA_VERSION, BackboneInfo, Manifest
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import recipe_named
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.runtime_py.engines.onnx_engine import OnnxEngine
from edgeinfinite.runtime_py.session.session import Session

EXPERTS, CHOSEN, LAYERS, WIDTH = 32, 4, 8, 512
READ = 128
"""Tokens of the text, which is read at once before single tokens are timed."""


def backbone(chosen: int) -> PreTrainedModel:
    """The model with so many experts a token; the same weights whatever the number."""
    torch.manual_seed(0)
    config = OlmoeConfig(
        vocab_size=1024,
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        num_experts=EXPERTS,
        num_experts_per_tok=chosen,
        max_position_embeddings=2048,
    )
    return OlmoeForCausalLM(config).eval().requires_grad_(False)


def exported(chosen: int, recipe: str, folder: Path) -> Manifest:
    """Writes the graphs of such a model."""
    model = attach(
        backbone(chosen), EdgeInfiniteConfig(Geometry(512, 4, 256, policy="carry"), NO_GATE)
    )
    folder.mkdir()
    request = WeightRequest(model, recipe_named(recipe))
    graphs = BACKEND.export_graphs(request, folder, "cpu", lambda *_: None)
    facts = architecture_of(model)
    sizes = len(facts.layers), facts.query_heads, facts.kv_heads, facts.head_dim
    return Manifest(
        schema_version=SCHEMA_VERSION,
        backend="onnx",
        target="cpu",
        backbone=BackboneInfo(
            "random", facts.name, *sizes, facts.vocabulary, facts.positions, 1, "0"
        ),
        geometry=Geometry(512, 4, 256, policy="carry"),
        gate=None,
        scorer=None,
        state=graphs.state,
        graphs=graphs.graphs,
        quantization=graphs.quantization,
        parity={},
        files={},
        tools={},
        details={},
    )


def main() -> None:
    """Prints a line for each artifact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sessions, first = {}, {}
        for recipe in ("int4", "none"):
            for chosen in (CHOSEN, EXPERTS):
                folder = Path(scratch) / f"{recipe}-{chosen}"
                manifest = exported(chosen, recipe, folder)
                engine = OnnxEngine(folder, manifest, threads=options.threads)
                sessions[recipe, chosen] = Session(engine)
        random = np.random.default_rng(0)
        text = random.integers(3, 1024, READ).tolist()
        for name, session in sessions.items():
            begun = time.perf_counter()
            session.append(text)
            first[name] = 1e3 * (time.perf_counter() - begun)
        times: dict[tuple[str, int], list[float]] = {name: [] for name in sessions}
        for token in random.integers(3, 1024, options.rounds).tolist():
            for name, session in sessions.items():
                begun = time.perf_counter()
                session.append([token])
                times[name].append(1e3 * (time.perf_counter() - begun))
        for (recipe, chosen), found in times.items():
            print(
                f"{recipe}: {chosen} of {EXPERTS} experts, {median(found):.2f} ms a token "
                f"(median of {options.rounds}), {first[recipe, chosen]:.0f} ms for {READ} tokens"
            )


if __name__ == "__main__":
    main()
