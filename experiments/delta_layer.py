"""What a layer with a gated delta rule takes, against its matrix products alone.

    python experiments/delta_layer.py --quantize int4 --tokens 128

The layer has the shape of Qwen3.5-0.8B's and random weights. It is cut out of an exported graph:
its norms, the projections, the convolution, the rule and the MLP. The products of the same graph
stand beside it in a graph of their own. Both take turns of some runs each, so a slow machine slows
both; in single runs the threads of one would wait actively beside those of the other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import ModelProto, NodeProto, TensorProto, helper
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.backend import WeightRequest
from edgeinfinite.export.onnx import BACKEND
from edgeinfinite.export.recipes import RECIPES, recipe_named
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from random_checkpoint import SHAPES

PRODUCTS = ("MatMul", "MatMulNBits")


def main() -> None:
    """The command line."""
    options = asked(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        graph = exported(options.quantize, Path(folder))
    nodes = first_layer(graph)
    layer = Timed(part(graph, nodes, the_layer_outputs(nodes)), options.tokens, options.threads)
    alone = Timed(products(graph, nodes), options.tokens, options.threads)
    turns = [(layer.turn(), alone.turn()) for _ in range(options.turns)]
    report(turns)


def asked(description: str) -> argparse.Namespace:
    """The options; the first line of the description is shown."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quantize", choices=RECIPES, default="int4")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=20, help="of ten runs each")
    return parser.parse_args()


def report(turns: Sequence[tuple[list[float], list[float]]]) -> None:
    """Prints the times of the layer and of its products, and how they compare.

    Args:
        turns: milliseconds of some runs of the layer, and of its products right after them. The
            machine has phases of some tenths of a second in which everything takes longer, so only
            neighbours are compared.
    """
    for name, times in zip(("layer", "products"), zip(*turns, strict=True), strict=True):
        joined = [time for turn in times for time in turn]
        print(f"{name}: median {statistics.median(joined):.2f} ms, least {min(joined):.2f} ms")
    ratios = [statistics.median(one) / statistics.median(other) for one, other in turns]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"ratio of neighbours: median {middle:.2f}, quarters {low:.2f} to {high:.2f}")


def exported(quantize: str, folder: Path) -> ModelProto:
    """The graph of the small model."""
    request = WeightRequest(small_model(), recipe_named(quantize))
    BACKEND.export_graphs(request, folder, "cpu", lambda *_: None)
    return onnx.load(folder / "prefill_segment.onnx")


def small_model() -> PreTrainedModel:
    """A model of two layers, of which the first has the delta rule; attached."""
    settings = dict(SHAPES["qwen3.5-0.8b"])
    kind = settings.pop("model_type")
    layers = ["linear_attention", "full_attention"]
    settings |= {"num_hidden_layers": 2, "layer_types": layers, "vocab_size": 512}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **settings))
    geometry = Geometry(256, 4, 256, policy="carry")
    attach(model.eval(), EdgeInfiniteConfig(geometry, NO_GATE))
    return model


def first_layer(model: ModelProto) -> list[NodeProto]:
    """Its nodes, from the first norm to the sum behind its MLP."""
    nodes = list(model.graph.node)
    norms = [i for i, node in enumerate(nodes) if "SimplifiedLayerNorm" in node.op_type]
    sums = [i for i in norms if nodes[i].op_type.startswith("Skip")]
    return nodes[norms[0] : sums[1] + 1]


def the_layer_outputs(nodes: Sequence[NodeProto]) -> list[str]:
    """The layer's result and its states."""
    states = [name for node in nodes for name in node.output if name.endswith("_0_out")]
    return [nodes[-1].output[3], *states]


def products(model: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """The matrix products of some nodes, each of a given input."""
    found = [node for node in nodes if node.op_type in PRODUCTS]
    return part(model, found, [name for node in found for name in node.output])


def part(model: ModelProto, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> ModelProto:
    """Some nodes as a graph; what they read and don't make becomes its input."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = [*(node for node in fixed(model) if node not in nodes), *nodes]
    made = {name for node in nodes for name in node.output}
    read = dict.fromkeys(name for node in nodes for name in node.input if name)
    known = {value.name: value for value in (*model.graph.value_info, *model.graph.input)}
    counts = {node.output[0] for node in model.graph.node if node.op_type in ("Shape", "Squeeze")}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [])
        if name in counts
        else known.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in read
        if name not in made and name not in constants
    ]
    given = [constants[name] for name in read if name in constants]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "part", inputs, results, given)
    return helper.make_model(
        graph, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )


def fixed(model: ModelProto) -> list[NodeProto]:
    """What makes weights of stored ones, once, when a graph is loaded."""
    known = {tensor.name for tensor in model.graph.initializer}
    found = []
    for node in model.graph.node:
        if node.input and known.issuperset(filter(None, node.input)):
            known.update(node.output)
            found.append(node)
    return found


class Turns:
    """What is run for some times at once; `run` runs it."""

    run: Callable[[], object]

    def turn(self) -> list[float]:
        """Milliseconds of ten runs, after one and a pause in which other threads fall asleep."""
        time.sleep(0.1)
        self.run()
        return [self._timed() for _ in range(10)]

    def _timed(self) -> float:
        start = time.perf_counter()
        self.run()
        return 1e3 * (time.perf_counter() - start)


class Timed(Turns):
    """A graph in onnxruntime with random inputs."""

    def __init__(self, model: ModelProto, tokens: int, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_mem_pattern = False  # as the engine has them
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._binding = self._session.io_binding()
        random = np.random.default_rng(0)
        widths = _widths(model)
        for value in self._session.get_inputs():
            given = _given(value, tokens, widths, random)
            self._binding.bind_cpu_input(value.name, given)
        for value in self._session.get_outputs():
            self._binding.bind_output(value.name)
        self.run = lambda: self._session.run_with_iobinding(self._binding)


def _widths(model: ModelProto) -> dict[str, int]:
    """Of the inputs of products."""
    shapes = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    widths = {}
    for node in model.graph.node:
        if node.op_type == "MatMul":
            widths[node.input[0]] = shapes[node.input[1]][0]
        if node.op_type == "SimplifiedLayerNormalization":
            widths[node.input[0]] = shapes[node.input[1]][0]
        if node.op_type == "MatMulNBits":
            widths[node.input[0]] = next(a.i for a in node.attribute if a.name == "K")
    return widths


def _given(value: Any, tokens: int, widths: dict[str, int], random: Any) -> np.ndarray:
    if "int64" in value.type:  # T
        return np.array(tokens, np.int64)
    if value.name in widths:
        shape = [1, tokens, widths[value.name]]
    else:
        shape = [size if isinstance(size, int) else tokens for size in value.shape]
    return random.standard_normal(shape).astype(np.float32)


if __name__ == "__main__":
    main()
