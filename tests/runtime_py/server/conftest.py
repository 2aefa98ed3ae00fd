"""Servers with tiny artifacts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_artifact import tiny_artifact

pytest.importorskip("openai")
pytest.importorskip("uvicorn")

from tiny_server import Running, serving


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("served") / "tiny", "--policy", "carry")


@pytest.fixture(scope="session")
def paper_artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("served-paper") / "paper")


@pytest.fixture
def server(artifact: Path) -> Iterator[Running]:
    with serving(artifact) as running:
        yield running


@pytest.fixture
def serve(artifact: Path) -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """Starts servers with options of their own."""
    return lambda **options: serving(artifact, **options)
