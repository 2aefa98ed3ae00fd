"""For every test: no network, no time limit for examples, and one thread for tiny models."""

import os
from collections.abc import Iterator

import hypothesis
import pytest
import torch

# Before any test imports transformers: what isn't on this machine is an error, not a download.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

# A busy machine takes longer; how long says nothing about what is right.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

_THREADS = torch.get_num_threads()


@pytest.fixture(autouse=True, scope="module")
def _one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tiny models: threads that wait for each other took ten times as long on a busy machine."""
    slow = request.node.get_closest_marker("slow")
    torch.set_num_threads(_THREADS if slow else 1)
    yield
    torch.set_num_threads(_THREADS)
