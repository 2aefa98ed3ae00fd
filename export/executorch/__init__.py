"""The ExecuTorch back end: one program for XNNPACK whose state is in the caller's memory."""

from edgeinfinite.export.executorch.backend import ExecuTorchBackend

BACKEND = ExecuTorchBackend()
