"""What several tests of the real model use."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from edgeinfinite.export.exporter import ExportOptions, export_artifact


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """SmolLM2 as `make demo` exports it: every default, int4. One for all processes, to be read."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "shipped" / "artifact"
    folder.parent.mkdir(exist_ok=True)
    with FileLock(folder.parent / "lock"):
        if not folder.exists():  # an export appears in one step
            export_artifact(ExportOptions("smollm2-135m-instruct", folder, quantize="int4"))
    return folder
