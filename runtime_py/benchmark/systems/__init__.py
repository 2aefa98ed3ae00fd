"""The systems that `bench` measures: one file each, the same small interface."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.installation import install_package
from edgeinfinite.runtime_py.benchmark.case import Case


@dataclass(frozen=True)
class Figures:
    """Sizes that a system reports about itself after a run, in bytes."""

    quantization: str
    policy: str
    state_bytes: int | None
    file_bytes: int


class System(Protocol):
    """A model that is loaded, reads a prompt once, and decodes greedily."""

    def read(self, tokens: Sequence[int] | np.ndarray) -> int:
        """Reads the whole prompt and returns the first new token: this is the time to it."""
        ...

    def step(self, token: int) -> int:
        """Reads the token just chosen and returns the next."""
        ...

    def logits(self, token: int) -> np.ndarray:
        """Reads one token and returns the next one's logits `[V]`, float."""
        ...

    def figures(self) -> Figures:
        """Sizes and names."""
        ...


@dataclass(frozen=True)
class Peer:
    """Another project's runtime, to compare with.

    Args:
        module: the file beside this one that has `load(case) -> System`.
        package: what must be importable.
        distribution: what pip calls it.
        settings: every setting that is measured: as the peer's own programs run it, the fastest
            one, and if that loses quality (`bench --text`) also one that doesn't.
        loads: `gguf` file, transformers `folder`, or a `genai` folder built from one.
    """

    module: str
    package: str
    distribution: str
    settings: tuple[str, ...]
    loads: str

    @property
    def install(self) -> str:
        """The command that installs it."""
        return install_package(self.distribution)


PEERS = {
    "llama.cpp": Peer(
        "llama_cpp_peer",
        "llama_cpp",
        "llama-cpp-python",
        (
            "flash attention, swa_full off, f16 cache",
            "flash attention, swa_full off, q8_0 cache",
        ),
        "gguf",
    ),
    "onnxruntime-genai": Peer(
        "genai_peer",
        "onnxruntime_genai",
        "onnxruntime-genai",
        ("int4", "int8"),
        "genai",
    ),
    "transformers": Peer(
        "transformers_peer",
        "transformers",
        "transformers",
        ("sdpa, float32",),
        "folder",
    ),
}


def peer_settings(choice: str) -> tuple[str, tuple[str, ...]]:
    """A peer as the command line names it.

    Args:
        choice: a name of `PEERS` for all its settings, or `NAME:WORD` for settings with the word.

    Returns:
        The name, and the settings to measure.

    Raises:
        EdgeInfiniteError: there is no such peer, or no such setting.
    """
    name, _, word = choice.partition(":")
    if name not in PEERS:
        raise EdgeInfiniteError(f"unknown peer {name!r}; choose among {', '.join(PEERS)}")
    settings = tuple(s for s in PEERS[name].settings if word in s)
    if not settings:
        raise EdgeInfiniteError(
            f"{name} has no setting {word!r}; it has: {'; '.join(PEERS[name].settings)}"
        )
    return name, settings


def load_system(case: Case) -> System:
    """Loads what the case names, in this process."""
    module = PEERS[case.system].module if case.system in PEERS else "edgeinfinite_system"
    return importlib.import_module(f"{__name__}.{module}").load(case)
