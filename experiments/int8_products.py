"""What attention to an int8 cache costs by ONNX Runtime's own operators (int8_products.md).

    python experiments/int8_products.py

One layer of SmolLM2-135M in the default's geometry reads a chunk: 128 queries, 9 query heads and 3
KV heads of 64 dimensions, 1,828 slots in use, two threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

HEADS, KV_HEADS, DIM, TOKENS, BEFORE = 9, 3, 64, 128, 1700
SLOTS = BEFORE + TOKENS
STEP = 1 / 32
"""What a byte of the cache is worth. Its numbers are standard normal: with larger ones weights of
the softmax would be denormal, which takes many times as long."""
QUERIES = HEADS // KV_HEADS * TOKENS


def milliseconds(
    node: onnx.NodeProto, inputs: dict[str, np.ndarray], outputs: Sequence[str]
) -> float:
    """The median time of a graph of one node."""
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for name, array in inputs.items()
    ]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "one", given, made)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    times = []
    for _ in range(40):
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - begin)
    return 1e3 * median(times[5:])


def attention(*, as_bytes: bool) -> float:
    """GroupQueryAttention over a cache in float32 or in bytes."""
    random = np.random.default_rng(0)
    new = random.standard_normal((1, TOKENS, KV_HEADS * DIM)).astype(np.float32)
    size = (1, KV_HEADS, SLOTS if as_bytes else BEFORE, DIM)
    codes = np.clip(random.standard_normal(size) / STEP, -127, 127)
    cache: np.ndarray = codes.astype(np.int8)
    inputs: dict[str, Any] = {
        "query": random.standard_normal((1, TOKENS, HEADS * DIM)).astype(np.float32),
        **{"key": new, "value": new},
        **dict.fromkeys(("k_cache", "v_cache"), cache if as_bytes else cache * np.float32(STEP)),
        "last": np.array([SLOTS - 1], np.int32),
        "total": np.array(SLOTS, np.int32),
    }
    names, more = [*inputs], {}
    if as_bytes:
        scale = np.full((1, KV_HEADS, 1, DIM), STEP, np.float32)
        inputs |= {"k_scale": scale, "v_scale": scale}
        names += ["", "", "", "", "", "k_scale", "v_scale"]
        kinds = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_CHANNEL")
        more = {**kinds, "kv_cache_bit_width": 8}
    outputs = ["attended", "keys", "values"]
    node = helper.make_node(
        "GroupQueryAttention",
        names,
        outputs,
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        **more,
    )
    return milliseconds(node, inputs, outputs)


def product(operator: str, columns: int, inner: int) -> float:
    """`[K, G T, inner]` times `[K, inner, columns]`, in float32 or in bytes."""
    random = np.random.default_rng(0)
    whole = operator == "MatMulInteger"
    left = random.integers(0, 255, (KV_HEADS, QUERIES, inner))
    right = random.integers(-127, 127, (KV_HEADS, inner, columns))
    inputs = {
        "left": left.astype(np.uint8 if whole else np.float32),
        "right": right.astype(np.int8 if whole else np.float32),
    }
    return milliseconds(helper.make_node(operator, [*inputs], ["out"]), inputs, ["out"])


def row_by_row(operator: str, dtype: type, **attributes: int) -> float:
    """An operator over all scores `[H, T, SLOTS]`."""
    scores = 2 * np.random.default_rng(0).standard_normal((HEADS, TOKENS, SLOTS))
    return milliseconds(
        helper.make_node(operator, ["x"], ["out"], **attributes),
        {"x": scores.astype(dtype)},
        ["out"],
    )


def main() -> None:
    """Prints a line for each."""
    to_float = int(onnx.TensorProto.FLOAT)
    times = {
        "attention, float32": attention(as_bytes=False),
        "attention, bytes": attention(as_bytes=True),
        "Q K, float32": product("MatMul", SLOTS, DIM),
        "Q K, bytes": product("MatMulInteger", SLOTS, DIM),
        "P V, float32": product("MatMul", DIM, SLOTS),
        "P V, bytes": product("MatMulInteger", DIM, SLOTS),
        "sums as float32": row_by_row("Cast", np.int32, to=to_float),
        "softmax": row_by_row("Softmax", np.float32, axis=-1),
    }
    for what, spent in times.items():
        print(f"{what:20} {spent:6.2f} ms")


if __name__ == "__main__":
    main()
