"""For every test: no network, no time limit for examples, no more threads of torch than cores, and
one folder for what the test processes share."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest
from own_cpus import keep_to_share

if "PYTEST_XDIST_WORKER" in os.environ:  # before torch counts the CPUs
    keep_to_share(
        int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")),
        int(os.environ["PYTEST_XDIST_WORKER_COUNT"]),
    )

import torch

# Before any test imports transformers: what isn't on this machine is an error, not a download.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

# A busy machine takes longer; how long says nothing about what is right.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SHARED = "EDGEINFINITE_TESTS_SHARED"


def pytest_configure(config: pytest.Config) -> None:
    """Before xdist starts its processes, which find the folder's name in their environment."""
    if SHARED in os.environ:
        return
    os.environ[SHARED] = tempfile.mkdtemp(prefix="edgeinfinite-tests-")

    def remove() -> None:
        shutil.rmtree(os.environ.pop(SHARED), ignore_errors=True)

    config.add_cleanup(remove)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that run a real model come first: one that began last would run alone for minutes."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


_THREADS = torch.get_num_threads()


@pytest.fixture(autouse=True, scope="module")
def _few_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads that wait for each other took ten times as long on a busy machine.

    Tiny models get one, real ones those that the other test processes leave.
    """
    slow = request.node.get_closest_marker("slow")
    torch.set_num_threads(_THREADS if slow else 1)
    yield
    torch.set_num_threads(_THREADS)
