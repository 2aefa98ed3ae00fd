"""ONNX Runtime's QNN execution provider: sessions that compile for Snapdragon's HTP, or run on it.

On x86-64 the package `onnxruntime-qnn` has the compiler and Qualcomm's emulator of the HTP. The
emulator computes what it has compiled in the same process; it can't load a context binary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeinfinite.artifact.socs import Soc
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_extra

PROVIDER = "QNNExecutionProvider"

_OPTIMIZATION = "3"
"""Of the compiled graph: the most; the emulator computes the same with any."""


def qnn_session(
    ort: Any,
    graph: Path,
    soc: Soc,
    *,
    config: dict[str, str] | None = None,
    trace: Path | None = None,
) -> Any:
    """Compiles a graph for the HTP; a node that would run on the CPU is an error.

    Args:
        ort: the module `onnxruntime`.
        graph: an ONNX file of fixed shapes.
        soc: to compile for.
        config: entries of the session's configuration.
        trace: a folder for the compiler's `qnn_op_trace.json`; None for none.

    Raises:
        EdgeInfiniteError: the package is missing, or the compiler refuses the graph.
    """
    qnn = provider_package()
    if not any(device.ep_name == PROVIDER for device in ort.get_ep_devices()):
        ort.register_execution_provider_library(PROVIDER, qnn.get_library_path())
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # fatal ones only; errors are also the exceptions' texts
    entries = {"session.disable_cpu_ep_fallback": "1"} | (config or {})
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    provider = {
        "backend_path": qnn.get_qnn_htp_path(),
        "soc_model": str(soc.model),
        "htp_arch": str(soc.arch),
        "enable_htp_fp16_precision": "1",
        "offload_graph_io_quantization": "0",
        "htp_graph_finalization_optimization_mode": _OPTIMIZATION,
    }
    if trace is not None:
        provider |= {"enable_framework_op_trace": "1", "framework_op_trace_dir": str(trace)}
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    options.add_provider_for_devices(devices, provider)
    try:
        return ort.InferenceSession(graph, options)
    except Exception as error:  # onnxruntime's own exceptions have no common base
        reason = " ".join(str(error).split())[:300]
        raise EdgeInfiniteError(
            f"{graph.name} can't be compiled for {soc.name} by onnxruntime-qnn "
            f"{qnn.__version__}: {reason}"
        ) from error


def provider_package() -> Any:
    """The package `onnxruntime_qnn`.

    Raises:
        EdgeInfiniteError: it isn't installed.
    """
    try:
        import onnxruntime_qnn
    except ModuleNotFoundError as error:
        raise EdgeInfiniteError(
            "compiling for an NPU and emulating it need the package onnxruntime-qnn (Linux x86-64, "
            f"glibc 2.35 or newer); install it with: {install_extra('qnn')}"
        ) from error
    return onnxruntime_qnn
