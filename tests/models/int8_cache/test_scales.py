"""int8 codes and their scales: rounding, writing, and what a text asks for."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers, config_of
from edgeinfinite.models.configuration import NO_GATE, EdgeInfiniteConfig
from edgeinfinite.models.int8_cache.measure import add_cache_scales
from edgeinfinite.models.int8_cache.scales import ScaledCache, as_numbers, moved, rounded
from edgeinfinite.models.recall.movement import rotary_tables
from edgeinfinite.models.trained_file import save_layers
from edgeinfinite.runtime_py.engines.torch_engine import TorchEngine
from edgeinfinite.runtime_py.session.session import Session
from tiny import assert_close, attached, random_tokens, tiny_hybrid, tiny_llama

CARRY = Geometry(8, 4, 12, policy="carry")
REENCODE = Geometry(8, 4, 6)


def scale_of(seed: int) -> torch.Tensor:
    return torch.rand(2, 8, generator=torch.Generator().manual_seed(seed)) + 0.01


@given(seed=st.integers(0, 10_000), size=st.floats(0.01, 300))
def test_rounding_is_off_by_half_a_step_and_twice_changes_nothing(seed, size):
    scale = scale_of(seed)
    numbers = size * torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(seed))
    codes = rounded(numbers, scale)
    found = codes * scale.unsqueeze(1)
    within = numbers.abs() <= 127 * scale.unsqueeze(1)
    steps = (found - numbers).abs() / scale.unsqueeze(1)
    assert (steps[within] <= 0.5 + 1e-4).all()
    assert (codes[~within].int().abs() >= 127).all()
    assert torch.equal(rounded(found, scale), codes)


def test_a_cache_is_read_as_it_was_written():
    codes, scale = torch.zeros(1, 2, 9, 8, dtype=torch.int8), scale_of(0)
    cache = ScaledCache(codes, scale)
    written = codes.new_tensor([[[[3] * 8] * 4] * 2]) * scale.unsqueeze(1)
    cache[:, :, 2:6] = written
    assert_close(cache[:, :, 2:6], written)
    assert_close(cache.index_select(2, torch.tensor([5, 0])), cache[:, :, [5, 0]])
    assert (codes[:, :, 2:6] == 3).all() and codes.sum() == 3 * 8 * 4 * 2


def test_slots_that_are_chosen_keep_their_codes():
    codes = torch.randint(-128, 128, (1, 2, 9, 8)).to(torch.int8)
    cache = ScaledCache(codes, scale_of(0))
    chosen = moved(cache, lambda slots: slots[:, :, [7, 0, 7]])
    assert isinstance(chosen, ScaledCache) and chosen.shape == (1, 2, 3, 8)
    assert torch.equal(chosen.codes, codes[:, :, [7, 0, 7]])
    assert torch.equal(as_numbers(chosen), cache[:, :, [7, 0, 7]])
    cache[:, :, :3] = as_numbers(chosen)
    assert torch.equal(codes[:, :, :3], chosen.codes)
    numbers = torch.randn(1, 2, 3, 8)
    assert as_numbers(numbers) is numbers
    assert torch.equal(moved(numbers, lambda slots: slots.flip(2)), numbers.flip(2))


@pytest.mark.parametrize("name", ["llama", "Gemma3", "SmolLM3"])
def test_no_key_or_value_of_the_text_is_beyond_the_last_code_wherever_its_key_moves(name):
    model = tiny_llama() if name == "llama" else tiny_hybrid(name, 11, layers=4)
    attach(model, EdgeInfiniteConfig(dataclasses.replace(CARRY, window_length=100), NO_GATE))
    tokens = random_tokens(110)
    scales = add_cache_scales(model, tokens)
    engine = TorchEngine(model)
    session = Session(engine)  # its caches hold the whole text in float32
    session.append(tokens)
    tables = rotary_tables(model, 128)
    for layer, (scale, table) in enumerate(zip(scales, tables, strict=True)):
        key, value = (
            torch.from_numpy(session.state.in_use(spec).copy())
            for spec in session.state.specs
            if spec.is_cache and spec.layer == layer
        )
        limit = 127 * (1 + 1e-5)
        assert (value.abs() / scale.value.unsqueeze(1)).max() <= limit
        for distance in (0, 1, 7, 109):
            there = table.shift_back(key, torch.full((key.shape[2],), distance))
            assert (there.abs() / scale.key.unsqueeze(1)).max() <= limit
        if config_of(model).geometry.slides(layer):
            continue  # its session holds the newest tokens alone
        # And no scale is wasted: each channel or pair of channels comes close to it somewhere.
        assert (value.abs().amax((0, 2)) / scale.value).min() > 127 * 0.999
        assert (key.abs().amax((0, 2)) / scale.key).min() > 127 * 0.3


def test_attention_over_an_int8_cache_is_near_attention_over_floats():
    tokens = random_tokens(100)
    wide = Session(TorchEngine(attach(tiny_llama(), EdgeInfiniteConfig(CARRY, NO_GATE))))
    narrow = Session(TorchEngine(with_scales(CARRY)))
    caches = [
        sum(a.nbytes for n, a in s.state.arrays.items() if "_cache_" in n) for s in (wide, narrow)
    ]
    assert caches[1] == caches[0] // 4
    for start in range(0, 100, 20):
        one, other = (s.append(tokens[start : start + 20]) for s in (wide, narrow))
        assert_close(other, one, 0.1)
        assert (one != other).any()


def with_scales(geometry: Geometry):
    """An int8 cache; under `reencode` with a memory that is read."""
    gate = NO_GATE if geometry.policy == "carry" else "untrained"
    model = attach(tiny_llama(), EdgeInfiniteConfig(geometry, gate, cache_type="int8"))
    add_cache_scales(model, random_tokens(200))
    return model


@pytest.mark.parametrize("geometry", [CARRY, REENCODE], ids=["carry", "reencode"])
@given(pieces=st.lists(st.integers(1, 25), min_size=1, max_size=5))
def test_any_split_gives_the_same_codes(geometry, pieces):
    engine = TorchEngine(with_scales(geometry))
    tokens = random_tokens(sum(pieces))
    whole, session = Session(engine), Session(engine, chunk_length=3)
    expected = whole.append(tokens)
    for piece in pieces:
        logits = session.append(tokens[:piece])
        tokens = tokens[piece:]
    # A number halfway between two codes may fall to either side, one step apart.
    assert_close(logits, expected, 0.05)
    for spec in session.state.specs:
        assert_close(session.state.in_use(spec), whole.state.in_use(spec), 0.02)


def test_a_text_of_too_few_tokens_is_refused():
    with pytest.raises(EdgeInfiniteError, match=r"has 20 tokens, .* give a longer one"):
        add_cache_scales(attached(CARRY), random_tokens(20))


def test_keys_that_are_not_finite_are_refused():
    model = attached(CARRY)
    attention_layers(model)[1].k_proj.weight.data[3, 5] = float("nan")
    with pytest.raises(EdgeInfiniteError, match="K or V of layer 1 isn't finite"):
        add_cache_scales(model, random_tokens(100))


def test_no_more_tokens_are_measured_than_the_backbone_has_positions():
    model = attached(CARRY)
    positions = model.config.max_position_embeddings
    tokens = random_tokens(positions + 100)
    first, all_of_them, others = (
        add_cache_scales(model, part)[1].value
        for part in (tokens[:positions], tokens, tokens[100:])
    )
    assert torch.equal(first, all_of_them) and not torch.equal(first, others)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda t: t.pop("layers.1.key"), "doesn't fit this model"),
        (lambda t: t.update({"layers.0.key": torch.ones(2, 9)}), "doesn't fit this model"),
        (lambda t: [t.pop(n) for n in list(t) if "layers.1" in n], "has 1 layers, this model 2"),
        (lambda t: t["layers.0.value"].fill_(torch.nan), "holds NaN or infinity"),
        (lambda t: t["layers.0.value"].zero_(), "isn't above 0"),
    ],
)
def test_a_file_of_scales_that_does_not_fit_is_refused(tmp_path, spoil, says):
    model, path = attached(CARRY), tmp_path / "scales.safetensors"
    save_layers(path, add_cache_scales(model, random_tokens(100)), {})
    config = EdgeInfiniteConfig(CARRY, NO_GATE, cache_type="int8", cache_scales=str(path))
    attach(model, config)
    tensors = load_file(path)
    spoil(tensors)
    save_file(tensors, path)
    with pytest.raises(EdgeInfiniteError, match=says):
        attach(model, config)


def test_scales_survive_their_file(tmp_path):
    model, path = attached(CARRY), tmp_path / "scales.safetensors"
    measured = add_cache_scales(model, random_tokens(100))
    save_layers(path, measured, {})
    attach(model, EdgeInfiniteConfig(CARRY, NO_GATE, cache_type="int8", cache_scales=str(path)))
    for layer, scales in zip(attention_layers(model), measured, strict=True):
        assert torch.equal(layer.cache_scales.key, scales.key)
        assert torch.equal(layer.cache_scales.value, scales.value)


def test_an_int8_cache_without_scales_is_refused():
    model = attach(tiny_llama(), EdgeInfiniteConfig(CARRY, NO_GATE, cache_type="int8"))
    with pytest.raises(EdgeInfiniteError, match="has no scales yet"):
        TorchEngine(model)
