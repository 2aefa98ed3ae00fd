"""The ONNX back end: `BACKEND` is what `export.backend.backend_named` looks for."""

from edgeinfinite.export.onnx.backend import OnnxBackend

BACKEND = OnnxBackend()
