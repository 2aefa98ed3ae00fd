"""What reading costs by products of bytes and of float32 with 4-bit weights (int8_products.md).

    python experiments/weight_products.py ARTIFACT TEXT

First one matrix by itself, then the artifact: as its file says (level 4), with level 1 for all
products, with level 1 for those of 4 bits, and as the engine reads a long text. Every reading is a
process of its own. Linux with AVX-512 only.
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
from edgeinfinite.runtime_py.engines import load_engine, reading_graph
from edgeinfinite.runtime_py.engines.float_products import with_float_products
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer

BYTES, FLOAT32 = 4, 1
"""Values of `accuracy_level`."""
TOKENS, THREADS, READ, REPEATS = (1, 8, 16, 32, 128), 2, 8000, 3
SHAPES = ((594, 3072), (1584, 576), (594, 960))
"""Of SmolLM2-135M in int4, whose rows are longer by a column for each block."""

BLOCK = 32
WAYS = ("level 4", "level 1", "level 1 where 4 bits", "as the engine reads")


def milliseconds(inner: int, outer: int, tokens: int, level: int) -> float:
    """What `MatMulNBits` takes with one matrix."""
    random = np.random.default_rng(0)
    blocks = -(-inner // BLOCK)
    weights = random.integers(0, 256, (outer, blocks, BLOCK // 2), dtype=np.uint8)
    scales = random.random((outer, blocks), dtype=np.float32) / 100
    given: dict[str, int] = {"K": inner, "N": outer, "bits": 4, "block_size": BLOCK}
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", accuracy_level=level, **given
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [tokens, inner])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [tokens, outer])
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")]
    graph = helper.make_graph([node], "one", [x], [y], constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    fed = {"x": random.standard_normal((tokens, inner)).astype(np.float32)}
    times = []
    for _ in range(40):
        start = time.perf_counter()
        session.run(None, fed)
        times.append(time.perf_counter() - start)
    return 1000 * median(times[5:])


def changed(graph: onnx.GraphProto, level: int) -> Iterator[str]:
    """Sets the level of all products, of graphs within it, too."""
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                attribute.i = level
                yield node.name
            if attribute.HasField("g"):
                yield from changed(attribute.g, level)


def read(folder: Path, text: Path, way: str) -> None:
    """Prints tokens a second, of answers too, and the peak in MB."""
    if way != WAYS[-1]:
        reading_graph.LONG = READ + 1
    engine = load_engine(folder, manifest=load_manifest(folder, check_files=False), threads=THREADS)
    tokens = load_tokenizer(folder).encode_text(text.read_text(encoding="utf-8"))[:READ]
    start = time.perf_counter()
    session = Session(engine)
    session.append(tokens)
    reads = time.perf_counter()
    for token in tokens[:48]:
        session.append([token])
    decodes = (time.perf_counter() - reads) / 48
    print(
        f"{READ / (reads - start):.0f} tokens/s, then {1 / decodes:.0f} one by one, "
        f"peak {(peak_rss_bytes() or 0) / 1e6:.0f} MB"
    )


def main() -> None:
    """Measures both."""
    artifact, text = map(Path, sys.argv[1:3])
    if len(sys.argv) > 3:
        read(artifact, text, sys.argv[3])
        return
    for inner, outer in SHAPES:
        for tokens in TOKENS:
            found = [milliseconds(inner, outer, tokens, level) for level in (BYTES, FLOAT32)]
            print(f"{inner} x {outer}, {tokens} tokens: {found[0]:.2f} and {found[1]:.2f} ms")
    with tempfile.TemporaryDirectory() as name:
        for way in WAYS:
            folder = Path(name) / way
            shutil.copytree(artifact, folder)
            file = folder / "prefill_segment.onnx"
            if way == WAYS[1]:
                model = onnx.load(file, load_external_data=False)
                assert list(changed(model.graph, FLOAT32))
                onnx.save(model, file)
            elif way == WAYS[2]:
                file.write_bytes(with_float_products(file.read_bytes()) or b"")
            for _ in range(REPEATS):
                print(f"{way}:", end=" ", flush=True)
                command = [sys.executable, __file__, str(folder), str(text), way]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
