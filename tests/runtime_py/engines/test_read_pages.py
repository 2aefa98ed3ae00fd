"""Loading a graph whose weights are mapped: the largest one isn't in memory twice."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgeinfinite.runtime_py.benchmark.worker import own_peak_bytes
from edgeinfinite.runtime_py.engines.read_pages import read_pages_go_back

OUTPUTS, INPUTS, GROUP = 262_144, 256, 32
CODES = OUTPUTS * INPUTS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="madvise is Linux's")


def large_product(folder: Path) -> Path:
    """One product of 67 million weights in 8 bits, which lie in `weights.data`."""
    folder.mkdir()
    codes = np.random.default_rng(0).integers(0, 256, CODES, dtype=np.uint8)
    codes.tofile(folder / "weights.data")
    groups = INPUTS // GROUP
    tensor = TensorProto(name="codes", data_type=TensorProto.UINT8, dims=[OUTPUTS, groups, GROUP])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.data"), ("offset", "0"), ("length", f"{CODES}")):
        tensor.external_data.add(key=key, value=value)
    scales = np.full((OUTPUTS, groups), 0.01, np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "codes", "scales"],
        ["y"],
        domain="com.microsoft",
        K=INPUTS,
        N=OUTPUTS,
        bits=8,
        block_size=GROUP,
        accuracy_level=4,
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, OUTPUTS])],
        [tensor, onnx.numpy_helper.from_array(scales, "scales")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "g.onnx")
    return folder


def loaded(folder: Path, how: str) -> tuple[int, str]:
    """Bytes that the peak grew by while the graph was loaded, and a digest of what it computes."""
    command = [sys.executable, str(Path(__file__)), str(folder), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, digest = done.stdout.split()
    return int(grown), digest


def test_pages_that_were_packed_go_back_and_the_results_are_the_same(tmp_path):
    folder = large_product(tmp_path / "artifact")
    plain, wanted = loaded(folder, "plain")
    less, digest = loaded(folder, "read_pages_go_back")
    assert digest == wanted
    assert plain > 2 * CODES  # or there is nothing to give back
    assert less < plain - CODES // 2


def test_files_behind_links_are_known_as_in_a_hubs_cache(tmp_path):
    folder = large_product(tmp_path / "artifact")
    (folder / "weights.data").rename(tmp_path / "blob")
    (folder / "weights.data").symlink_to(tmp_path / "blob")
    mapped = np.memmap(folder / "weights.data", np.uint8, "c")
    with read_pages_go_back(folder):
        assert mapped.sum() > 0
        deadline = time.monotonic() + 60
        while resident(tmp_path / "blob") > CODES // 10 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert resident(tmp_path / "blob") <= CODES // 10
    assert mapped[:4].tolist() == np.fromfile(tmp_path / "blob", np.uint8, 4).tolist()


def resident(file: Path) -> int:
    """Bytes of a mapped file that are in this process's memory."""
    _, _, after = Path("/proc/self/smaps").read_text().partition(f"{file.resolve()}\n")
    line = next(line for line in after.splitlines() if line.startswith("Rss:"))
    return int(line.split()[1]) * 1024


def _measure(folder: Path, how: str) -> None:
    import hashlib

    import onnxruntime

    before = own_peak_bytes()
    with read_pages_go_back(folder) if how == "read_pages_go_back" else nullcontext():
        session = onnxruntime.InferenceSession(
            folder / "g.onnx", providers=["CPUExecutionProvider"]
        )
    after = own_peak_bytes()
    x = np.sin(np.arange(INPUTS, dtype=np.float32))[None]
    y = session.run(None, {"x": x})[0]
    assert before is not None and after is not None
    print(after - before, hashlib.sha256(y.tobytes()).hexdigest())


if __name__ == "__main__":
    _measure(Path(sys.argv[1]), sys.argv[2])
