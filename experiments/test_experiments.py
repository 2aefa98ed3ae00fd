"""What the experiments compute, on numbers that can be checked by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import activation_rounding
import gate_forms
import gate_openings
import gate_under_carry
import memory_audit
import numpy as np
import pytest
import torch
from tiny_artifact import tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.memory.gate import log_positions
from edgeinfinite.models.memory.gate_file import save_gate
from edgeinfinite.training.gate.lengths import Lengths
from edgeinfinite.training.gate.transfer import look_at
from tiny import attached, open_gate, random_tokens


@pytest.mark.parametrize("opening", ["constant", "query", "place"])
def test_openings_on_a_text_are_those_of_its_queries(tmp_path, opening):
    geometry = Geometry(segment_length=24, sink_length=4, window_length=6)
    checkpoint = tiny_checkpoint(tmp_path / "tiny")
    config = EdgeInfiniteConfig(geometry, opening=opening)
    layers = attention_layers(attach(load_backbone(str(checkpoint)).model, config))
    for layer in layers:
        open_gate(layer.memory_gate)
    gate, text = tmp_path / "gate.safetensors", tmp_path / "text.txt"
    save_gate(gate, layers, {"geometry": json.dumps(geometry.to_dict())})
    text.write_text("A text of some length. " * 10)
    found = gate_openings.openings_on(gate, str(checkpoint), text, segments=3)
    assert found.shape == (2, 4, 72)
    if opening == "constant":
        expected = gate_openings.openings(gate).mean(2)
        np.testing.assert_allclose(found, expected[..., None].repeat(72, 2), rtol=1e-5)
    else:
        assert (found.std(2) > 1e-3).all() and (found >= 0).all() and (found <= 1).all()


def test_a_form_that_reads_zero_ignores_the_memory(tmp_path):
    backbone = load_backbone(str(tiny_checkpoint(tmp_path / "tiny")))
    lengths = Lengths(sinks=4, segment=24)
    random = np.random.default_rng(0)
    texts = [torch.from_numpy(random.integers(2, 250, lengths.tokens(3))) for _ in range(4)]
    seen = [look_at(backbone.model, text, lengths, 0)[1] for text in texts]
    found = {
        name: gate_forms._explained(backbone, gate_forms.FORMS[name], 1, seen[:2], seen[2:], 8)
        for name in ("memory reads zero, g + u·q", "σ learned, g + u·q", "… one g a head")
    }
    (own, swapped), *others = found.values()
    assert own == swapped and len(set(others)) == 2
    assert all(own != swapped for own, swapped in others)


def test_norms_of_a_memory_and_what_isnt_finite():
    memory, norm = np.ones((2, 1, 3, 3), np.float32), np.full((2, 1, 4), 2.0, np.float32)
    figures = memory_audit.norms(memory, norm)
    assert figures["memory_norm_mean"] == pytest.approx(3.0)
    assert figures["z_norm_max"] == pytest.approx(4.0)
    assert figures["finite"] is True
    memory[0, 0, 0, 0] = np.nan
    assert memory_audit.norms(memory, norm)["finite"] is False


def test_what_a_session_under_carry_sees_has_its_places_and_misses_the_rest_of_full_attention():
    geometry = Geometry(8, 4, 6, policy="carry", recall_slots=(8, 24))
    model = attached(geometry, open_gates=False, feature_map="learned", opening="place")
    for layer in attention_layers(model):
        layer.memory_gate.g.data.fill_(-30.0)
    tokens = random_tokens(4 + 6 + 8 * 9)
    first, second = gate_under_carry.watch_session(
        SimpleNamespace(model=model), tokens, number=1, stride=2
    )
    rows = [t for t in range(18, len(tokens)) if t % 2 == 1]
    # The longest cache holds all of the text until its slots are full, at 42 tokens.
    slots = torch.tensor([t if t < 42 else 34 + (t - 34) % 8 for t in rows])
    assert torch.allclose(first.log_position[: len(rows) - 1], log_positions(slots)[:-1])
    assert torch.equal(first.log_position, second.log_position)
    assert first.key.shape == first.value.shape == (2, 8, 8, 8)
    whole = (first.local.float() + first.missed.float()).transpose(0, 1).flatten(1)
    attended = []
    attention = attention_layers(model)[0]
    hook = attention.o_proj.register_forward_hook(lambda _m, inputs, _o: attended.append(inputs[0]))
    with torch.no_grad():
        model(input_ids=torch.tensor([tokens]), use_cache=False)
    hook.remove()
    expected = attended[0][0, rows]
    assert torch.allclose(whole[: len(rows) - 1], expected[:-1], atol=5e-3)
    assert first.missed.abs().max() > 0.05  # short slots miss something


def test_activations_are_rounded_by_at_most_half_a_step_of_their_row():
    random = torch.Generator().manual_seed(0)
    x = torch.randn(5, 64, generator=random) * torch.logspace(-3, 3, 5)[:, None]
    step = (x.amax(1) - x.amin(1)) / 255
    error = (activation_rounding.rounded(x) - x).abs().amax(1)
    assert (error <= 1.01 * step).all() and (error > 0.1 * step).all()
    assert not activation_rounding.rounded(torch.zeros(2, 8)).any()
