"""Shared by the training tests: a tiny checkpoint, and texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_artifact import tiny_checkpoint
from tiny_texts import tiny_texts


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_texts(tmp_path_factory.mktemp("texts"), 5)
