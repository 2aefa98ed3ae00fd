"""Gated delta rules and SSMs in a program for ExecuTorch: an operator for a token, chunks for more.

The oracle is transformers' untouched model with its own cache, from which what the session has
evicted is cut (`untouched_hybrids.py`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("executorch")
pytest.importorskip("torchao")

from recurrent_artifacts import GEOMETRY, assert_forks_undone_turns_and_files_go_on
from ssm_drift import drift
from tiny_artifact import tiny_checkpoint
from tiny_qwen3_5 import tiny_qwen3_5
from untouched_hybrids import SMALL, N, S, W, assert_close, untouched_after_evictions

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.artifact.tensors import DECODE, PREFILL
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.executorch import recurrences
from edgeinfinite.export.executorch.passes.graph_tools import finish
from edgeinfinite.export.executorch.passes.recurrent_layers import recurrent_layers
from edgeinfinite.export.graphs import causal_convolution
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.engines.executorch_engine import ExecuTorchEngine
from edgeinfinite.runtime_py.session.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

OPERATOR = "llama.channelwise_gated_delta_rule"
OF_LAYERS = {
    "small qwen3_5": 2,
    "small qwen3_next": 2,
    "small granite_h": 2,
    "small bamba": 2,
    "small falcon_h1": 1,
}
"""How many layers have such a state; Falcon-H1's attend as well."""


def export(checkpoint: Path, output: Path, *options: str) -> Path:
    lengths = [str(length) for length in (N, S, W)]
    geometry = [part for pair in zip(GEOMETRY[::2], lengths, strict=True) for part in pair]
    command = ["export", "--model", str(checkpoint), "--output", str(output), *geometry, *options]
    assert main(command) == 0
    return output


@pytest.fixture(scope="module", params=OF_LAYERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def checkpoint(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("hybrid") / "hybrid", model=SMALL[kind]())


@pytest.fixture(scope="module")
def artifact(checkpoint: Path) -> Path:
    options = ("--backend", "executorch", "--quantize", "none")
    return export(checkpoint, checkpoint.parent / "program", *options)


@pytest.fixture(scope="module")
def engine(artifact: Path) -> ExecuTorchEngine:
    opened = load_engine(artifact, threads=1)
    assert isinstance(opened, ExecuTorchEngine)
    return opened


def test_in_any_split_it_is_transformers_with_the_kept_pairs(
    engine: ExecuTorchEngine, kind: str
) -> None:
    tokens, wanted = random_tokens(90), untouched_after_evictions(kind, 90)
    assert_close(kind, Session(engine).append(tokens), wanted[-1])
    session = Session(engine, chunk_length=5)
    for start, end in ((0, 1), (1, 24), (24, 26), (26, 27), (27, 80), (80, 90)):
        assert_close(kind, session.append(tokens[start:end]), wanted[end - 1])
    assert session.compressions > 3


def test_forks_undone_turns_and_saved_sessions_hold_the_states(
    engine: ExecuTorchEngine, tmp_path: Path
) -> None:
    assert_forks_undone_turns_and_files_go_on(engine, tmp_path, 60, 40)


def test_a_layer_is_two_parts_of_xnnpacks(artifact: Path, kind: str) -> None:
    """In decode around the operator; in prefill the chunks are XNNPACK's, all but a last slice."""
    details, layers = load_manifest(artifact).details, OF_LAYERS[kind]
    for name, operators, more in ((PREFILL, 0, 3), (DECODE, layers, 1)):
        assert details[name]["undelegated"].get(OPERATOR, 0) == operators
        assert details[name]["passes"]["recurrent_layers"] == layers
        assert details[name]["partitions"] == 2 * layers + more
        assert not any("conv" in kind for kind in details[name]["undelegated"])


@pytest.mark.parametrize("kind", ["small qwen3_5"], indirect=True, scope="module")
def test_a_call_of_256_tokens_is_transformers(checkpoint: Path, kind: str, tmp_path: Path) -> None:
    """Chunks of 32, and of few tokens for the rest; also of a text that repeats itself."""
    options = ("--backend", "executorch", "--quantize", "none", "--window-length", "300")
    engine = load_engine(export(checkpoint, tmp_path / "program", *options), threads=1)
    assert isinstance(engine, ExecuTorchEngine)
    assert engine._methods[PREFILL].most_tokens == 256
    for tokens in (random_tokens(290), [7] * 290):
        with torch.no_grad():
            wanted = SMALL[kind]()(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
        session = Session(engine, chunk_length=290)
        assert_close(kind, session.append(tokens), wanted.numpy())
        assert session.compressions == 0


@pytest.mark.parametrize(
    "kind", ["small qwen3_5", "small falcon_h1"], indirect=True, scope="module"
)
def test_a_text_goes_on_in_another_back_end_and_comes_back(
    engine: ExecuTorchEngine, checkpoint: Path, kind: str, tmp_path: Path
) -> None:
    onnx = load_engine(export(checkpoint, tmp_path / "onnx", "--quantize", "none"), threads=1)
    tokens, wanted = random_tokens(90), untouched_after_evictions(kind, 90)
    session = Session(engine)
    session.append(tokens[:30])
    for number, (other, end) in enumerate(((onnx, 70), (engine, 90))):
        save_session(session, tmp_path / f"s{number}")
        session, _ = load_session(other, tmp_path / f"s{number}")
        assert session.taken_over
        assert_close(kind, session.append(tokens[session.tokens_read : end]), wanted[end - 1])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("small qwen3_5", ("--quantize", "int4", "--cache-type", "int8")),
        (
            "small falcon_h1",
            ("--quantize", "int8", "--scorer", "untrained", "--recall-slots", "16"),
        ),
    ],
    indirect=["kind"],
    scope="module",
)
def test_rounded_weights_caches_and_recall_slots_pass_their_own_checks(
    checkpoint: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    folder = export(checkpoint, tmp_path / "artifact", "--backend", "executorch", *options)
    manifest = load_manifest(folder)
    held = [spec for spec in manifest.state if spec.role.endswith("_state")]
    assert {spec.dtype for spec in held} == {"float32"}
    assert manifest.parity["parity:recurrent_state"] < 0.1
    assert manifest.parity["exact:recurrent_state"] < 1e-4


def test_after_a_long_text_the_state_is_no_farther_off_than_transformers(tmp_path: Path) -> None:
    errors = drift(tmp_path, 3_000, "--backend", "executorch")
    assert errors["artifact"] <= 2 * errors["transformers"] + 1e-6, errors


@pytest.mark.parametrize("tokens", [1, 2, 40])
def test_a_rule_without_delta_is_the_plain_recurrence(tokens: int) -> None:
    """S = a S + k v^T: the operator's delta is made so small that not a bit of v is lost."""
    torch.manual_seed(tokens)
    heads, inner, outer = 3, 8, 6
    query, key = torch.randn(2, 1, tokens, heads, inner).unbind()
    value, state = torch.randn(1, tokens, heads, outer), torch.randn(1, heads, inner, outer)
    value[:, :, 0] *= 1e-4  # beside a state that is much larger
    log_decay = -torch.rand(1, tokens, heads)
    tiny = recurrences._WITHOUT_DELTA
    result, new = recurrences._operator(
        query, key, value / tiny, log_decay, torch.full((1, tokens, heads), tiny), state
    )
    now = state[0]
    for q, k, v, faded, found in zip(
        query[0], key[0], value[0], log_decay[0].exp(), result[0], strict=True
    ):
        now = now * faded[:, None, None] + k.unsqueeze(2) * v.unsqueeze(1)
        torch.testing.assert_close(found, (now * q.unsqueeze(2)).sum(1), rtol=1e-5, atol=1e-5)
    assert torch.equal(new[0], now)


@pytest.mark.parametrize("bias", [None, torch.linspace(-1.0, 1.0, 6)])
def test_the_convolution_is_the_one_that_models_are_compared_with(
    bias: torch.Tensor | None,
) -> None:
    joined, weight = torch.randn(1, 6, 11), torch.randn(6, 4)
    found = recurrences.convolution(joined, weight, bias, activation="silu")
    wanted = causal_convolution.convolution(joined, weight, bias, activation="silu")
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


class Slow(nn.Module):
    """Decays of a rule from slow to fast, and a plain softplus beside no rule."""

    def __init__(self, *, rule: bool) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        steps = functional.softplus(x)
        if not self.rule:
            return steps
        ones = torch.ones(x.shape[1], 1).reshape(1, 1, -1, 1)
        result = torch.ops.llama.channelwise_gated_delta_rule(
            ones, ones, ones, ones * steps.reshape(1, 1, -1, 1), ones.squeeze(3), state
        )
        return result[0] * 0.0 + steps.reshape(1, 1, -1, 1)


def test_softplus_keeps_small_numbers_and_other_programs_stay_as_they_are() -> None:
    x, state = torch.tensor([[-30.0, -18.0, -1.0, 0.0, 3.0, 21.0]]), torch.zeros(1, 1, 1, 1)
    program = torch.export.export(Slow(rule=True), (x, state), strict=False)
    assert recurrent_layers(program) == 1
    finish(program)
    assert not any("softplus" in str(node.target) for node in program.graph.nodes)
    found = program.module()(x, state).flatten()
    torch.testing.assert_close(found, functional.softplus(x[0].double()).float(), rtol=1e-6, atol=0)
    program = torch.export.export(Slow(rule=False), (x, state), strict=False)
    assert recurrent_layers(program) == 0
    assert any("softplus" in str(node.target) for node in program.graph.nodes)


def test_a_rule_that_differs_is_refused() -> None:
    model = tiny_qwen3_5(("linear_attention", "full_attention"))
    model.model.layers[0].linear_attn.activation = "gelu"
    said = "back end executorch .* isn't the gated delta rule behind silu"
    with pytest.raises(EdgeInfiniteError, match=said), recurrences.recurrences(model):
        pass
