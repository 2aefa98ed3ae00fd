"""Compiles `prefill_segment` and `decode_step` into one context binary with shared weights."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from edgeinfinite.artifact.socs import Soc
from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.export.onnx.qnn.macs import macs_on_htp
from edgeinfinite.runtime_py.engines.qnn_provider import qnn_session

_TRACE = "qnn_op_trace.json"


@dataclass(frozen=True)
class Compiled:
    """One graph, compiled.

    Args:
        file: the ONNX file that stands for it: one EPContext node, which names the binary.
        trace: which node of the graph became what, the compiler's own report.
        htp_nodes, cpu_nodes: of the graph as the compiler saw it.
        htp_macs, cpu_macs: multiply-accumulate operations of one call.
        seconds: that it took.
    """

    file: str
    trace: str
    htp_nodes: int
    cpu_nodes: int
    htp_macs: int
    cpu_macs: int
    seconds: float

    def figures(self) -> dict[str, float]:
        """For the manifest's details."""
        return {
            "htp_nodes": self.htp_nodes,
            "cpu_nodes": self.cpu_nodes,
            "htp_macs": self.htp_macs,
            "cpu_macs": self.cpu_macs,
            "seconds": round(self.seconds, 1),
        }


def compile_graphs(
    folder: Path, soc: Soc, macs: Mapping[str, Mapping[str, int]]
) -> tuple[str, dict[str, Compiled]]:
    """Compiles the folder's two graphs.

    Args:
        folder: holds `prefill_segment.onnx` and `decode_step.onnx`.
        soc: to compile for.
        macs: by graph and node.

    Returns:
        The binary's file name, and each graph's files.

    Raises:
        EdgeInfiniteError: the package is missing, or the compiler refuses a graph.
    """
    import onnxruntime

    binary = f"{soc.name}.bin"
    compiled: dict[str, Compiled] = {}
    sessions: list[Any] = []  # both live until the binary is written, which the second one does
    for graph in (PREFILL, DECODE):
        file = f"{graph}.{soc.name}.onnx"
        config = {
            "ep.context_enable": "1",
            "ep.context_embed_mode": "0",
            "ep.context_file_path": str(folder / file),
            "ep.share_ep_contexts": "1",
        }
        if graph == DECODE:
            config["ep.stop_share_ep_contexts"] = "1"
        start = time.perf_counter()
        sessions.append(
            qnn_session(onnxruntime, folder / f"{graph}.onnx", soc, config=config, trace=folder)
        )
        seconds = time.perf_counter() - start
        trace = f"{graph}.{soc.name}.trace.json"
        (folder / _TRACE).rename(folder / trace)
        told = json.loads((folder / trace).read_text(encoding="utf-8"))
        on_htp = macs_on_htp(macs[graph], told)
        compiled[graph] = Compiled(
            file,
            trace,
            htp_nodes=told["summary"]["supported_nodes"],
            cpu_nodes=told["summary"]["unsupported_nodes"],
            htp_macs=on_htp,
            cpu_macs=sum(macs[graph].values()) - on_htp,
            seconds=seconds,
        )
    sessions.clear()
    for done in compiled.values():
        _name_binary(folder, done.file, binary)
    return binary, compiled


def _name_binary(folder: Path, file: str, binary: str) -> None:
    """Gives the context binary a short name, and says so in the file that stands for a graph."""
    model = onnx.load(folder / file)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "ep_cache_context":
            written = folder / attribute.s.decode()
            if written.exists():
                written.rename(folder / binary)
            attribute.s = binary.encode()
    onnx.save(model, folder / file)
