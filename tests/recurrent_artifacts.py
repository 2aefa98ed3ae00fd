"""Exports of models whose layers keep more than KV caches, and PyTorch beside them."""

from __future__ import annotations

import numpy as np
from tiny_artifact import tiny_checkpoint

from edgeinfinite.cli import main
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.recurrent_states import recurrent_layers
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

GEOMETRY = ["--segment-length", "16", "--sink-length", "4", "--window-length", "24"]


def export(checkpoint, output, *options: str) -> int:
    return main(
        ["export", "--model", str(checkpoint), "--output", str(output), *GEOMETRY, *options]
    )


def exported(model, folder, *options: str):
    """The engine of a model's artifact in float32."""
    checkpoint = tiny_checkpoint(folder / "checkpoint", model=model)
    assert export(checkpoint, folder / "artifact", "--quantize", "none", *options) == 0
    return load_engine(folder / "artifact", threads=1)


def assert_forks_undone_turns_and_files_go_on(engine, folder, count=90, read=70):
    """A fork, a session from a file and one whose last turn was undone go on bit for bit."""
    tokens = random_tokens(count)
    session = Session(engine)
    session.append(tokens[:read])
    save_session(session, folder / "s")
    fork, (restored, _) = session.fork(), load_session(engine, folder / "s")
    undo = session.mark()
    session.append(tokens[:9])
    undo()
    wanted = session.append(tokens[read:])
    np.testing.assert_array_equal(fork.append(tokens[read:]), wanted)
    np.testing.assert_array_equal(restored.append(tokens[read:]), wanted)


def compare_with_pytorch(engine, model, scorer=None):
    model = attach(model, EdgeInfiniteConfig(engine.geometry, NO_GATE, scorer=scorer))
    tokens = random_tokens(150)
    wanted, session = Session(TorchEngine(model)), Session(engine)
    for start, end in ((0, 1), (1, 40), (40, 41), (41, 130), (130, 150)):
        expected = wanted.append(tokens[start:end])
        np.testing.assert_allclose(session.append(tokens[start:end]), expected, atol=1e-3)
    held = [name for name in session.state.arrays if name.startswith(("conv", "recurrent"))]
    assert len(held) == sum(len(layer.tensors) for layer in recurrent_layers(model))
    for name in held:
        np.testing.assert_allclose(
            session.state.arrays[name], wanted.state.arrays[name], rtol=1e-4, atol=1e-4
        )
