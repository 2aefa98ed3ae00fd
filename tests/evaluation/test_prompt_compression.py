"""SnapKV and PyramidKV follow their papers, and equal full attention if everything fits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_artifact import VOCABULARY, tiny_checkpoint

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.methods import Reader, configuration
from edgeinfinite.evaluation.options import Setting
from edgeinfinite.evaluation.prompt_compression import (
    COMPRESSIONS,
    CompressedPromptReader,
    Compression,
    layer_budgets,
    most_attended,
)
from edgeinfinite.evaluation.questions.prompts import Prompt
from edgeinfinite.evaluation.questions.systems import model_system
from edgeinfinite.models.attach import attach
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import UNTRAINED_SCORER
from tiny import assert_close, random_tokens, tiny_hybrid, tiny_llama

SETTING = Setting(Geometry(8, 4, 8, policy="carry"))
SMALL = Compression(window=4, kernel=3)


def reader(compression: Compression, average: int, prompt: int, **shape: int):
    model = attach(tiny_llama(**shape), configuration("full", SETTING, 300))
    return CompressedPromptReader(model, compression, average, prompt)


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_with_room_for_the_whole_prompt_it_equals_full_attention(name):
    tokens, more = random_tokens(150), random_tokens(30, seed=1)
    full = Reader(tiny_llama(), "full", SETTING, 180)
    ours = reader(COMPRESSIONS[name], 150, 150)
    np.testing.assert_array_equal(ours.read(tokens).nats, full.read(tokens).nats)
    np.testing.assert_array_equal(ours.read(more).nats, full.read(more).nats)
    for figure in ("held", "peak", "average"):  # the other one counts its counters too
        expected = getattr(full.footprint, figure)
        assert getattr(ours.footprint, figure) == pytest.approx(expected, 0.01)
    smaller = reader(COMPRESSIONS[name], 149, 150)
    smaller.skip(tokens)
    assert smaller.state_bytes < ours.state_bytes


def test_one_pair_less_than_the_prompt_drops_the_least_attended_one():
    """Computed by hand: one head, a window of one token, no pooling."""
    key = torch.tensor([[[3.0], [1.0], [2.0], [0.0]]])
    query = torch.tensor([[[1.0]]])
    kept = most_attended(query, key, 3, 1, scaling=1.0)
    assert kept.tolist() == [[0, 2, 3]]
    # Neighbours of the best are as good: 1 has 0's share, of equal ones the topmost are taken.
    kept = most_attended(query, torch.tensor([[[9.0], [0], [1], [2], [0]]]), 3, 3, scaling=1.0)
    assert kept.tolist() == [[0, 1, 4]]


def test_it_keeps_the_same_pairs_as_the_papers_listing():
    """SnapKV's Listing 1, for heads with keys of their own, in plain loops."""
    generator = torch.Generator().manual_seed(0)
    heads, window, pairs, size, kernel, keep = 3, 5, 40, 8, 7, 17
    query = torch.randn(heads, window, size, generator=generator)
    key = torch.randn(heads, pairs, size, generator=generator)
    kept = most_attended(query, key, keep, kernel, scaling=size**-0.5)
    for head in range(heads):
        votes = np.zeros(pairs - window)
        for at in range(window):
            seen = pairs - window + at + 1
            scores = (key[head, :seen] @ query[head, at] * size**-0.5).double()
            votes += scores.softmax(0)[: pairs - window].numpy()
        reach = kernel // 2
        pooled = [votes[max(0, i - reach) : i + reach + 1].max() for i in range(len(votes))]
        best = sorted(np.argsort(pooled)[::-1][: keep - window])
        worst_kept = min(pooled[i] for i in kept[head, : keep - window].tolist())
        assert worst_kept == pytest.approx(min(pooled[i] for i in best))  # of equal ones, any
        assert kept[head, keep - window :].tolist() == list(range(pairs - window, pairs))
        assert kept[head].tolist() == sorted(set(kept[head].tolist()))


def test_heads_that_share_keys_choose_together():
    generator = torch.Generator().manual_seed(1)
    query, key = torch.randn(4, 4, 8, generator=generator), torch.randn(2, 30, 8)
    both = most_attended(query, key, 12, 3, scaling=1.0)
    assert both.shape == (2, 12)
    alone = most_attended(query[:2], key[:1], 12, 3, scaling=1.0)
    assert both[0].tolist() == alone[0].tolist()


def test_dropped_pairs_are_not_attended_and_positions_stay():
    """One layer, so that a mask over transformers' own attention is equivalent."""
    prompt, more = random_tokens(60), random_tokens(7, seed=1)
    ours = reader(SMALL, 20, 60, layers=1)
    ours.skip(prompt)
    assert ours._state.keys[0].shape[2] == 20
    nats = ours.read(more).nats

    full = reader(SMALL, 60, 60, layers=1)
    full.skip(prompt)
    state = full._state
    kept = most_attended(state.queries[0][0], state.keys[0][0], 20, 3, scaling=8**-0.5)
    total = len(prompt) + len(more)
    visible = torch.ones(total, total, dtype=torch.bool).tril().repeat(1, 4, 1, 1)
    for head in range(4):
        dropped = sorted(set(range(60)) - set(kept[head // 2].tolist()))
        visible[0, head, 60:, dropped] = False
    model = tiny_llama(layers=1)
    model.set_attn_implementation("eager")
    mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
    with torch.no_grad():
        logits = model(torch.tensor([prompt + more]), attention_mask=mask).logits[0]
    # The prompt's last token has seen everything: only what follows has to do without.
    expected = torch.nn.functional.cross_entropy(
        logits[59:-1], torch.tensor(more), reduction="none"
    )
    assert_close(nats, expected.double().numpy())


def test_pairs_dropped_before_the_question_do_not_depend_on_it():
    context = random_tokens(80)
    states = []
    for seed in (1, 2):
        one = reader(SMALL, 24, 80)
        one.skip(context + random_tokens(9, seed=seed))
        states.append([keys[:, :, :24] for keys in one._state.keys])
        assert one._state.keys[0].shape[2] == 24 + 9
    for first, second in zip(*states, strict=True):
        np.testing.assert_array_equal(first, second)


def test_budgets_of_pyramidkv_fall_from_layer_to_layer_and_add_up():
    pyramid = COMPRESSIONS["pyramidkv"]
    budgets = layer_budgets(pyramid, 1152, 30, 7500)
    assert sum(budgets) == 30 * 1152
    assert budgets == sorted(budgets, reverse=True)
    spare = 1152 - pyramid.window
    assert budgets[-1] - pyramid.window == pytest.approx(spare / 20, abs=2)
    assert budgets[0] - pyramid.window == pytest.approx(2 * spare - spare / 20, abs=2)
    assert np.ptp(np.diff(budgets)) <= 2  # an arithmetic sequence, rounded
    # No layer keeps more than there is; what it would have had goes to the others.
    short = layer_budgets(pyramid, 1152, 30, 1500)
    assert sum(short) == 30 * 1152 and max(short) == 1500
    assert layer_budgets(pyramid, 1152, 30, 1152) == [1152] * 30
    assert layer_budgets(COMPRESSIONS["snapkv"], 1152, 30, 7500) == [1152] * 30


def test_both_hold_the_same_bytes_after_the_prompt_and_peak_with_all_of_it():
    tokens = random_tokens(200)
    one, pyramid = (
        reader(compression, 40, 200)
        for compression in (SMALL, Compression(window=4, kernel=3, beta=20))
    )
    for each in (one, pyramid):
        each.skip(tokens)
        slot = 2 * 2 * 2 * 8 * 4  # K and V, layers, KV heads, D, float32
        assert each.footprint.held == 40 * slot
        assert each.footprint.peak == 200 * slot
        assert 40 * slot < each.footprint.average < 200 * slot


def test_a_saved_state_can_be_restored_any_number_of_times():
    ours = reader(SMALL, 24, 90)
    ours.skip(random_tokens(90))
    restore, footprint = ours.save(), ours.footprint
    first = ours.read(random_tokens(40, seed=1)).nats
    for _ in range(2):
        restore()
        assert ours.footprint == footprint
        np.testing.assert_array_equal(ours.read(random_tokens(40, seed=1)).nats, first)


def test_a_cache_smaller_than_the_window_is_refused():
    with pytest.raises(EdgeInfiniteError, match="observation window"):
        reader(SMALL, 4, 90)


def hybrid(average: int, prompt: int, family: str = "Gemma3") -> CompressedPromptReader:
    model = attach(tiny_hybrid(family, 12), configuration("full", SETTING, 120))
    return CompressedPromptReader(model, SMALL, average, prompt)


@pytest.mark.parametrize("family", ["Gemma2", "Gemma3", "GraniteSWA", "Qwen2", "SmolLM3"])
def test_layers_with_sliding_windows_hold_the_window_and_the_others_choose(family):
    tokens, more = random_tokens(80), random_tokens(20, seed=1)
    full = Reader(tiny_hybrid(family, 12), "full", SETTING, 100)
    ours = hybrid(80, 80, family)
    assert_close(ours.read(tokens).nats[1:], full.read(tokens).nats[1:])
    assert_close(ours.read(more).nats, full.read(more).nats)
    smaller = hybrid(20, 80, family)
    smaller.skip(tokens)
    held = sorted(keys.shape[2] for keys in smaller._state.keys)
    assert held == [11, 11, 20, 20]


def test_a_hybrid_model_keeps_as_many_bytes_as_edgeinfinite(tmp_path):
    geometry = Geometry(8, 4, 8, policy="carry", recall_slots=16)
    chosen = Setting(geometry, scorer=UNTRAINED_SCORER)
    prompt = Prompt(random_tokens(90), 85)
    folder = tiny_checkpoint(tmp_path, model=tiny_hybrid("Gemma3", 12, vocabulary=VOCABULARY))
    system = model_system(
        load_backbone(str(folder)), chosen, ["edgeinfinite", "snapkv", "snapkv-unseen"]
    )
    held = {}
    for method in system.methods:
        reader = system.open(method, prompt, 5)
        reader.skip(prompt.tokens)
        held[method] = reader.footprint.held
    counters = 4 * 8 + 4  # lengths and `has_memory`
    scores = 2 * 2 * 16 * 4  # of two layers' recall slots
    assert held["edgeinfinite"] - counters - scores == held["snapkv"] == held["snapkv-unseen"]


def test_a_model_that_sees_only_its_newest_tokens_is_refused():
    model = attach(tiny_hybrid("Mistral", 12), configuration("full", SETTING, 60))
    with pytest.raises(EdgeInfiniteError, match="every layer of this model sees its newest 12"):
        CompressedPromptReader(model, SMALL, 20, 50)
