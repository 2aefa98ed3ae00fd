"""What reading costs by products of bytes and of float32 with 4-bit weights (int8_products.md).

    python experiments/weight_products.py ARTIFACT TEXT

First one matrix by itself, then the artifact with each `accuracy_level` in its graph for reading;
every reading is a process of its own. Linux only.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.process_memory import peak_rss_bytes
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

BYTES, FLOAT32 = 4, 1
"""Values of `accuracy_level`."""
TOKENS, THREADS, READ, REPEATS = 128, 2, 4000, 3
SHAPES = ((576, 1536), (1536, 576), (576, 576))
BLOCK = 32


def rate(inner: int, outer: int, level: int) -> float:
    """GFLOP/s of `MatMulNBits` with one matrix."""
    random = np.random.default_rng(0)
    blocks = inner // BLOCK
    weights = random.integers(0, 256, (outer, blocks, BLOCK // 2), dtype=np.uint8)
    scales = random.random((outer, blocks), dtype=np.float32) / 100
    given: dict[str, int] = {"K": inner, "N": outer, "bits": 4, "block_size": BLOCK}
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", accuracy_level=level, **given
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [TOKENS, inner])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [TOKENS, outer])
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")]
    graph = helper.make_graph([node], "one", [x], [y], constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    fed = {"x": random.standard_normal((TOKENS, inner)).astype(np.float32)}
    times = []
    for _ in range(40):
        start = time.perf_counter()
        session.run(None, fed)
        times.append(time.perf_counter() - start)
    return 2e-9 * TOKENS * inner * outer / median(times[5:])


def changed(graph: onnx.GraphProto, level: int) -> Iterator[str]:
    """Sets the level of all products, of graphs within it, too."""
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                attribute.i = level
                yield node.name
            if attribute.HasField("g"):
                yield from changed(attribute.g, level)


def read(folder: Path, text: Path) -> None:
    """Prints tokens a second and the peak in MB."""
    engine = load_engine(folder, manifest=load_manifest(folder, check_files=False), threads=THREADS)
    tokens = load_tokenizer(folder).encode_text(text.read_text(encoding="utf-8"))[:READ]
    start = time.perf_counter()
    Session(engine).append(tokens)
    speed = len(tokens) / (time.perf_counter() - start)
    print(f"{speed:.0f} tokens/s, peak {(peak_rss_bytes() or 0) / 1e6:.0f} MB")


def main() -> None:
    """Measures both."""
    artifact, text = map(Path, sys.argv[1:3])
    if len(sys.argv) > 3:
        read(artifact, text)
        return
    for level in (BYTES, FLOAT32):
        rates = [rate(*shape, level) for shape in SHAPES]
        print(f"level {level}, one matrix:", ", ".join(f"{one:.0f}" for one in rates), "GFLOP/s")
    with tempfile.TemporaryDirectory() as name:
        for level in (BYTES, FLOAT32):
            folder = Path(name) / f"level-{level}"
            shutil.copytree(artifact, folder)
            file = folder / "prefill_segment.onnx"
            model = onnx.load(file, load_external_data=False)
            count = len(list(changed(model.graph, level)))
            onnx.save(model, file)
            for _ in range(REPEATS):
                print(f"level {level}, {count} products:", end=" ", flush=True)
                command = [sys.executable, __file__, str(folder), str(text), "read"]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
