"""Registers ExecuTorch's `llama::update_cache` with PyTorch."""

from __future__ import annotations

import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401
