"""Each method measures what its description says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation import cache_scales
from edgeinfinite.evaluation.baselines import BASELINES, KeyDiff, Lola, RandomSlots
from edgeinfinite.evaluation.methods import GATE_CONTROLS, Reader, check_methods, configuration
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.interface import run_tokens
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from edgeinfinite.models.memory.gate_file import save_gate
from tiny import assert_close, attached, random_tokens, tiny_llama

CARRY = Geometry(8, 4, 8, policy="carry", recall_slots=16)
PAPER = Geometry(8, 4, 6)


def setting(geometry: Geometry = CARRY, **more: Any) -> Setting:
    scorer = UNTRAINED_SCORER if geometry.recall_slots else None
    return Setting(geometry, scorer=scorer, **more)


@pytest.fixture
def gate(tmp_path) -> str:
    """A wide open gate, so that the memory matters."""
    path = tmp_path / "gate.safetensors"
    model = attached(CARRY, gate="untrained")
    save_gate(path, [layer.self_attn for layer in model.model.layers], {})
    return str(path)


def test_full_attention_equals_transformers():
    tokens = random_tokens(150)
    with torch.no_grad():
        logits = tiny_llama()(torch.tensor([tokens])).logits[0]
    expected = torch.nn.functional.cross_entropy(
        logits[:-1], torch.tensor(tokens[1:]), reduction="none"
    )
    prediction = Reader(tiny_llama(), "full", setting(), 150).read(tokens)
    assert np.isnan(prediction.nats[0])
    assert_close(prediction.nats[1:], expected.double().numpy())
    np.testing.assert_array_equal(
        prediction.best[1:], logits[:-1].argmax(-1) == torch.tensor(tokens[1:])
    )


def test_every_token_is_measured_once_for_any_split():
    tokens = random_tokens(90)
    whole = Reader(tiny_llama(), "edgeinfinite", setting(), 90).read(tokens)
    assert whole.nats.shape == whole.best.shape == (90,)
    reader = Reader(tiny_llama(), "edgeinfinite", setting(), 90)
    pieces = [reader.read(tokens[start : start + 13]).nats for start in range(0, 90, 13)]
    assert_close(np.concatenate(pieces)[1:], whole.nats[1:], 1e-4)
    reader.restart()
    reader.skip(tokens[:60])
    assert_close(reader.read(tokens[60:]).nats, whole.nats[60:], 1e-4)


def test_tokens_that_the_papers_window_reads_again_are_measured_once():
    """The second segment's tokens see the sinks and their own segment."""
    tokens = random_tokens(4 + 8 + 8)
    reader = Reader(tiny_llama(), "memory-off", setting(PAPER), 20)
    prediction = reader.read([*tokens, *random_tokens(20, seed=1)])
    assert prediction.nats.shape == (40,)
    with torch.no_grad():
        logits = tiny_llama()(torch.tensor([tokens[:4] + tokens[12:]])).logits[0, 4:-1]
    expected = torch.nn.functional.cross_entropy(
        logits, torch.tensor(tokens[13:]), reduction="none"
    )
    assert_close(prediction.nats[13:20], expected.double().numpy())


def test_a_saved_state_can_be_restored_any_number_of_times():
    tokens = random_tokens(90)
    reader = Reader(tiny_llama(), "edgeinfinite", setting(), 200)
    reader.skip(tokens)
    restore = reader.save()
    first = reader.read(random_tokens(40, seed=1)).nats
    for _ in range(2):
        restore()
        np.testing.assert_array_equal(reader.read(random_tokens(40, seed=1)).nats, first)
    assert not np.array_equal(reader.read(random_tokens(40, seed=1)).nats, first)


class LiteralStreaming:
    """StreamingLLM (2309.17453) as its paper says: positions within the cache, one token a step.

    Keys are kept as they were before RoPE, and rotated anew to their place at every step.
    """

    def __init__(self, model: PreTrainedModel, sinks: int, window: int) -> None:
        self.model, self.sinks, self.window = model, sinks, window
        self.has_memory = torch.zeros(1)
        self.pairs = [([], []) for _ in model.model.layers]

    def _rotate(self, key: torch.Tensor, places: list[int]) -> torch.Tensor:
        cos, sin = self.model.model.rotary_emb(key, torch.tensor([places]))
        return apply_rotary_pos_emb(key, key, cos, sin)[0]

    def positions(self, tokens: int) -> torch.Tensor:
        return torch.tensor([[len(self.pairs[0][0])]])

    def attend(self, call: AttentionCall) -> torch.Tensor:
        keys, values = self.pairs[call.layer]
        at = len(keys)
        keys.append(self._rotate(call.key, [-at]))
        values.append(call.value)
        whole = self._rotate(torch.cat(keys, dim=2), list(range(at + 1)))
        groups = call.query.shape[1] // call.key.shape[1]
        weights = (call.query @ whole.repeat_interleave(groups, 1).mT * call.scaling).softmax(-1)
        return weights @ torch.cat(values, dim=2).repeat_interleave(groups, 1)

    def evict(self) -> None:
        for keys, values in self.pairs:
            while len(keys) > self.sinks + self.window:
                del keys[self.sinks], values[self.sinks]


def test_streaming_is_streamingllm_with_the_same_sinks_and_window():
    """With segments of one token; it is EdgeInfinite without slots, whatever the segments."""
    tokens = random_tokens(70)
    model = tiny_llama()
    one = Geometry(1, 4, 20, policy="carry")
    streaming = Reader(model, "streaming", setting(one), 70).read(tokens)
    state = LiteralStreaming(model, sinks=4, window=20)
    expected = []
    with torch.inference_mode():
        for before, token in itertools.pairwise(tokens):
            logits = run_tokens(model, torch.tensor([[before]]), state)[0, -1]
            state.evict()
            expected.append(-logits.log_softmax(-1)[token].item())
    assert_close(streaming.nats[1:], np.array(expected), 1e-4)

    for geometry in (one, Geometry(8, 4, 24, policy="carry")):
        ours, streaming = (
            Reader(tiny_llama(), method, setting(geometry), 70).read(tokens)
            for method in ("edgeinfinite", "streaming")
        )
        np.testing.assert_array_equal(ours.nats, streaming.nats)


def test_the_papers_ablations_remove_sinks_and_window():
    for method, sinks, window in (
        ("without-sinks", 0, 6),
        ("without-window", 4, 1),
        ("without-both", 0, 1),
    ):
        geometry = configuration(method, setting(PAPER), 90).geometry
        assert (geometry.sink_length, geometry.window_length) == (sinks, window)
        assert geometry.segment_length == PAPER.segment_length
        assert geometry.policy == "reencode"


def test_only_full_attention_grows_with_the_text():
    for method, grows in (("full", True), ("streaming", False), ("edgeinfinite", False)):
        reader = Reader(tiny_llama(), method, setting(), 200)
        reader.skip(random_tokens(40))
        short = reader.footprint
        reader.skip(random_tokens(120))
        long = reader.footprint
        assert (long.peak > short.peak) == grows
        assert (long.average < long.held) == grows
        assert long.held == long.peak == (reader.state_bytes if not grows else long.peak)


def bytes_of_scores(geometry: Geometry) -> int:
    """Of two layers with two KV heads, 4 bytes a slot."""
    return 2 * 2 * 4 * geometry.most_slots


def test_streaming_has_as_many_slots_and_no_scores():
    ours, streaming = (
        configuration(m, setting(), 90).geometry for m in ("edgeinfinite", "streaming")
    )
    assert streaming.recall_slots == 0 and streaming.sink_length == ours.sink_length
    assert streaming.capacity == ours.capacity
    sizes = [
        Reader(tiny_llama(), m, setting(), 90).state_bytes for m in ("edgeinfinite", "streaming")
    ]
    assert sizes[0] - sizes[1] == bytes_of_scores(ours)


def test_the_gates_controls_differ_only_in_the_memory(gate):
    tokens, other = random_tokens(80), random_tokens(80, seed=5)
    loss = {
        method: Reader(tiny_llama(), method, setting(gate=gate, zero_gate=gate), 80, other)
        .read(tokens)
        .nats[1:]
        for method in ("trained-gate", "swapped-memory", "zero-memory-gate", "memory-off")
    }
    start = CARRY.sink_length + CARRY.segment_length + CARRY.window_length - 1
    trained = loss["trained-gate"]
    for method in ("swapped-memory", "zero-memory-gate", "memory-off"):
        assert_close(loss[method][:start], trained[:start], 1e-4)
        assert np.abs(loss[method][start:] - trained[start:]).max() > 1e-3, method
    own = Reader(tiny_llama(), "swapped-memory", setting(gate=gate), 80, tokens).read(tokens)
    assert_close(own.nats[1:], trained)


def test_an_untrained_gate_is_nearly_no_gate():
    tokens = random_tokens(80)
    loss = {
        m: Reader(tiny_llama(), m, setting(), 80).read(tokens)
        for m in ("untrained-gate", "memory-off")
    }
    difference = loss["untrained-gate"].nats[1:] - loss["memory-off"].nats[1:]
    # In the mean: a single token may see other pairs, where two of them rank nearly alike.
    assert 0 < np.abs(difference).mean() < 0.1


@pytest.mark.parametrize(
    ("methods", "controls", "says"),
    [
        (["fulll"], False, "unknown method 'fulll'"),
        (["memory-off"], False, "unknown method 'memory-off'"),
        (["trained-gate"], True, "needs a trained gate"),
        (["swapped-memory"], True, "needs a trained gate"),
        (["zero-memory-gate"], True, "--zero-gate"),
        (["keydiff"], False, "give --recall-slots"),
        ([], True, "no method"),
    ],
)
def test_methods_that_cannot_be_measured_are_refused(methods, controls, says):
    with pytest.raises(EdgeInfiniteError, match=says):
        check_methods(methods, setting(PAPER), GATE_CONTROLS if controls else ())


@pytest.mark.parametrize("method", BASELINES)
def test_baselines_differ_only_in_the_content_of_the_slots(method):
    tokens, room = random_tokens(120), CARRY.capacity
    ours, theirs = (Reader(tiny_llama(), m, setting(), 120) for m in ("edgeinfinite", method))
    assert ours.state_bytes - theirs.state_bytes == bytes_of_scores(CARRY)
    expected, got = ours.read(tokens).nats[1:], theirs.read(tokens).nats[1:]
    np.testing.assert_array_equal(got[: room - 1], expected[: room - 1])
    assert np.abs(got[room:] - expected[room:]).max() > 1e-3
    restore, after = theirs.save(), random_tokens(40, seed=1)
    first = theirs.read(after).nats
    restore()
    np.testing.assert_array_equal(theirs.read(after).nats, first)
    theirs.restart()
    np.testing.assert_array_equal(theirs.read(tokens).nats[1:], got)


def test_lola_keeps_what_its_memory_recalls_worst():
    torch.manual_seed(0)
    key, value = torch.randn(1, 6, 8), torch.randn(1, 1, 8).expand(1, 6, 8)
    scorer = Lola(1, 8)
    scorer.fold(key, value)
    assert scorer.rank(key, value).max() < 1e-4  # one value for every key: nothing is forgotten
    odd = torch.cat((value[:, :5], value[:, 5:] + 3), dim=1)
    assert scorer.rank(key, odd).argmax() == 5


def test_keydiff_keeps_the_most_different_key():
    key = torch.ones(1, 6, 8) + 0.01 * torch.arange(8)
    key[:, 3] *= -1
    assert KeyDiff().rank(key, torch.zeros(1, 6, 8)).argmax() == 3


def test_random_slots_belong_to_the_pair():
    torch.manual_seed(0)
    value = torch.randn(2, 300, 8)
    score = RandomSlots().rank(torch.randn(2, 300, 8), value)
    assert torch.equal(RandomSlots().rank(torch.randn(2, 300, 8), value), score)
    # As likely early as late: the mean place of the best half is the middle, within 3 deviations.
    best = score.argsort(-1)[:, :150].float().mean(-1)
    assert (best - 149.5).abs().max() < 3 * 300 / 12**0.5 / 150**0.5


def test_a_float16_cache_costs_half_the_bytes_and_little_else():
    tokens = random_tokens(120)
    whole, half = (
        Reader(tiny_llama(), "edgeinfinite", setting(cache_type=kind), 120)
        for kind in ("float32", "float16")
    )
    assert half.state_bytes < 0.6 * whole.state_bytes
    difference = np.abs(half.read(tokens).nats[1:] - whole.read(tokens).nats[1:])
    assert 0 < difference[: CARRY.capacity - 1].max() < 0.02


def test_an_int8_cache_costs_a_quarter_of_the_bytes_and_little_else():
    tokens = random_tokens(200)
    whole, rounded, again = (
        Reader(tiny_llama(), "edgeinfinite", setting(cache_type=kind, scale_tokens=tokens), 200)
        for kind in ("float32", "int8", "int8")
    )
    rest = 8 * 2 + 4 + bytes_of_scores(CARRY)
    assert rounded.state_bytes - rest == (whole.state_bytes - rest) // 4
    nats = rounded.read(tokens).nats
    difference = np.abs(nats[1:] - whole.read(tokens).nats[1:])
    assert 0 < difference[: CARRY.capacity - 1].max() < 0.2
    pieces = [again.read(tokens[start : start + 13]).nats for start in range(0, 200, 13)]
    assert_close(np.concatenate(pieces)[1 : CARRY.capacity], nats[1 : CARRY.capacity], 1e-3)


def test_an_int8_cache_is_not_measured_without_a_text_for_its_scales():
    with pytest.raises(EdgeInfiniteError, match="give the setting `scale_tokens`"):
        Reader(tiny_llama(), "edgeinfinite", setting(cache_type="int8"), 200)


def test_scales_are_measured_once_for_all_texts_of_a_policy(monkeypatch):
    model, tokens, found = tiny_llama(), random_tokens(200), []
    chosen = setting(cache_type="int8", scale_tokens=tokens)
    measure = cache_scales.add_cache_scales
    monkeypatch.setattr(
        cache_scales, "add_cache_scales", lambda *a: found.append(measure(*a)) or found[-1]
    )
    for method in ("edgeinfinite", "full", "streaming", "edgeinfinite"):
        Reader(model, method, chosen, 200)
    Reader(model, "edgeinfinite", setting(PAPER, cache_type="int8", scale_tokens=tokens), 200)
    assert len(found) == 2  # carry and reencode
