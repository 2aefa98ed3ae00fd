"""How models turn their keys: learned from the keys, against untouched transformers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from evicted import EVICTING, error_after_evictions, shaken
from transformers.models.llama import modeling_llama
from transformers.models.phi3 import modeling_phi3

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.recall import key_probe
from edgeinfinite.models.recall.movement import measure_movements, rotary_tables
from edgeinfinite.models.recall.rotary import Layout
from tiny import tiny_family, tiny_llama

SPLITS = [(7, 1, 9, 3, 30, 1, 1, 11, 25), (1,) * 60, (64, 1, 1)]
HALVES, NEIGHBOURS = Layout(), Layout(interleaved=True)
FAMILIES: dict[str, tuple[Layout, bool, bool]] = {
    "Llama 3.2": (HALVES, False, False),
    "Phi-4-mini": (HALVES, False, False),
    "Mistral 0.1": (HALVES, False, False),
    "Ernie4_5": (NEIGHBOURS, False, False),
    "Glm": (NEIGHBOURS, False, False),
    "Glm4": (NEIGHBOURS, False, False),
    "Helium": (NEIGHBOURS, False, False),
    "Cohere": (NEIGHBOURS, False, False),
    "Cohere2": (NEIGHBOURS, False, False),
    "HunYuanDenseV1": (HALVES, False, True),
    "NanoChat": (HALVES, True, False),
}
"""Layout, whether backwards, whether channels have a gain after the turn."""


def one_layer(name: str, **extra: object) -> transformers.PreTrainedModel:
    return shaken(tiny_family(name, num_hidden_layers=1, **extra))


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_after_evictions_are_those_of_the_kept_tokens_alone(name: str) -> None:
    for parts in SPLITS:
        model = one_layer(name)
        assert error_after_evictions(model, copy.deepcopy(model), parts) < 1e-5
    found = measure_movements(model, EVICTING.capacity)[0]
    assert (found.layout, found.backwards, found.gain is not None) == FAMILIES[name]


def test_a_gain_is_the_weight_of_the_norm_up_to_a_factor_for_each_pair() -> None:
    model = one_layer("HunYuanDenseV1")
    weight = model.model.layers[0].self_attn.key_layernorm.weight.detach()
    gain = measure_movements(model, 60)[0].gain
    assert gain is not None
    first, second = (gain / weight).chunk(2)
    torch.testing.assert_close(first, second, rtol=1e-5, atol=0)


Turn = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def with_turn(monkeypatch: pytest.MonkeyPatch, module: Any, turn: Turn) -> None:
    """Lets a model turn each of q and k `[B, H, T, D]` by `turn(x, cos, sin)`."""

    def apply(q: Any, k: Any, cos: Any, sin: Any, **_: Any) -> Any:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return turn(q, cos, sin), turn(k, cos, sin)

    monkeypatch.setattr(module, "apply_rotary_pos_emb", apply)


def by_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return x * cos + modeling_llama.rotate_half(x) * sin


def last_dimensions(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    size = cos.shape[-1]
    return torch.cat((x[..., :-size], by_halves(x[..., -size:], cos, sin)), dim=-1)


def last_neighbours_backwards(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> torch.Tensor:
    half = cos.shape[-1] // 2
    before, first, second = x[..., : -2 * half], x[..., -2 * half :: 2], x[..., 1 - 2 * half :: 2]
    cos, sin = cos[..., :half], sin[..., :half]
    turned = torch.stack((first * cos + second * sin, second * cos - first * sin), dim=-1)
    return torch.cat((before, turned.flatten(-2)), dim=-1)


def signed_gain(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    gain = torch.tensor([0.5, -2.0, 3.0, 1.0, 1.5, 0.1, 1.0, 7.0])
    return by_halves(x, cos, sin) * gain


@pytest.mark.parametrize(
    ("family", "module", "turn"),
    [
        ("Phi-4-mini", modeling_phi3, last_dimensions),
        ("Phi-4-mini", modeling_phi3, last_neighbours_backwards),
        ("Llama", modeling_llama, signed_gain),
    ],
)
def test_ways_to_turn_that_no_model_has_yet_are_learned_too(
    family: str, module: Any, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_turn(monkeypatch, module, turn)
    model = one_layer(family)
    assert error_after_evictions(model, copy.deepcopy(model), SPLITS[0]) < 1e-5


def decayed(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    angle = torch.atan2(sin[..., -1:], cos[..., -1:])  # of the slowest pair, so it tells position
    return by_halves(x, cos, sin) * torch.exp(-angle)


def centred(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    turned = by_halves(x, cos, sin)
    return turned - turned.mean(-1, keepdim=True)


def twice_as_fast(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return by_halves(by_halves(x, cos, sin), cos, sin)


def without_a_channel(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return by_halves(x, cos, sin) * torch.tensor([0.0] + [1.0] * 7)


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (decayed, "keys change their length with the position"),
        (centred, "keys change their length with the position"),
        (without_a_channel, "keys change their length with the position"),
        (twice_as_fast, "keys don't turn by the angles of its rotary embedding"),
    ],
)
def test_what_no_rotation_moves_is_refused_with_the_layer_and_the_reason(
    turn: Turn, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_turn(monkeypatch, modeling_llama, turn)
    model = one_layer("Llama")
    with pytest.raises(EdgeInfiniteError, match=rf"in layer 0 {reason}.*; use --policy reencode"):
        attach(model, EdgeInfiniteConfig(EVICTING, NO_GATE))
    attach(model, EdgeInfiniteConfig(Geometry(8, 4, 12), NO_GATE))  # it moves no keys


def test_values_that_depend_on_the_position_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys_for_values(module: Any, q: Any, k: Any, _v: Any, *rest: Any, **named: Any) -> Any:
        return original(module, q, k, k, *rest, **named)

    functions = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS
    original = functions[key_probe._PROBE_ATTENTION]
    monkeypatch.setitem(functions, key_probe._PROBE_ATTENTION, keys_for_values)
    with pytest.raises(EdgeInfiniteError, match="in layer 0 values depend on the position"):
        measure_movements(tiny_llama(), 20)


@pytest.mark.parametrize(
    ("rope", "fits"),
    [
        (
            {
                "rope_type": "longrope",
                "rope_theta": 1e4,
                "short_factor": [1.0] * 4,
                "long_factor": [4.0] * 4,
                "original_max_position_embeddings": 40,
            },
            40,
        ),
        ({"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}, 128),
    ],
    ids=["longrope", "dynamic"],
)
def test_a_cache_beyond_which_all_frequencies_change_is_refused(
    rope: dict[str, object], fits: int
) -> None:
    model = tiny_family("Llama", rope_parameters=rope)
    for policy in ("carry", "reencode"):
        longest = Geometry(8, 4, fits - 12, policy)
        attach(model, EdgeInfiniteConfig(longest, NO_GATE))
        if fits == 128:
            continue  # all that it was trained on
        with pytest.raises(EdgeInfiniteError, match=f"41 slots are too many.*beyond {fits} "):
            attach(model, EdgeInfiniteConfig(Geometry(8, 4, fits - 11, policy), NO_GATE))


def test_layers_that_turn_alike_share_their_table_and_halves_keep_the_models_own_numbers() -> None:
    model = tiny_llama()
    first, second = rotary_tables(model, 500)
    assert first.cos is second.cos and first.sin is second.sin and first.gain is None
    cos, sin = model.model.rotary_emb(torch.zeros(1), torch.arange(500)[None])
    assert torch.equal(first.cos, cos[0, :, :4]) and torch.equal(first.sin, sin[0, :, :4])


def test_a_model_in_half_precision_is_learned_as_far_as_its_numbers_go() -> None:
    for name in ("Llama", "Ernie4_5"):
        found = measure_movements(one_layer(name).bfloat16(), 100)[0]
        assert (found.layout, found.backwards) == FAMILIES.get(name, FAMILIES["Llama 3.2"])[:2]
        assert found.gain is None


@pytest.mark.parametrize("name", ["Glm4", "HunYuanDenseV1", "Llama"])
def test_no_channel_of_a_key_exceeds_its_reach_wherever_the_key_moves(name: str) -> None:
    table = rotary_tables(one_layer(name), 128)[0]
    keys = torch.randn(2, 128, 8)
    reach = table.reach(keys)
    moved = [table.shift_back(keys, torch.full((128,), by)) for by in range(0, 128)]
    largest = torch.stack(moved).abs().amax(0)
    assert (largest <= reach * (1 + 1e-5)).all()
    for part in table.layout.of(table.cos.shape[-1]):  # the first pair turns a radian a position
        assert (largest[..., part][..., 0] >= reach[..., part][..., 0] * 0.99).all()
