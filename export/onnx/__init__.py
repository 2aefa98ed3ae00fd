"""The ONNX back end: `BACKEND` is what `export.backend.backend_named` looks for."""

from __future__ import annotations

from edgeinfinite.artifact.socs import Soc
from edgeinfinite.export.backend import Backend
from edgeinfinite.export.onnx.backend import OnnxBackend

BACKEND = OnnxBackend()


def backend_for(soc: Soc) -> Backend:
    """The back end that compiles for a chip's HTP."""
    from edgeinfinite.export.onnx.qnn.backend import QnnBackend

    return QnnBackend(soc)
