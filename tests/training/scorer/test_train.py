"""`edgeinfinite train-scorer`, from texts to a file that fits the model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_artifact import VOCABULARY, tiny_checkpoint
from tiny_gemma4 import LAYERS, OWN
from tiny_gemma4 import MODELS as GEMMAS
from transformers import PreTrainedModel

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.artifact.rank_rule import RankRule
from edgeinfinite.cli import main
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.attach import attach, attention_layers
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.defaults import ModelOptions, resolve, with_trained_slots
from edgeinfinite.models.geometry_options import GeometryOptions
from edgeinfinite.models.recall.scorer_file import read_rank_rule
from edgeinfinite.models.trained_file import read_metadata
from edgeinfinite.training.scorer import pairs as pairs_module
from edgeinfinite.training.scorer import train as scorer_training
from edgeinfinite.training.scorer.held_out import held_out_score
from edgeinfinite.training.scorer.options import PassOptions, ScorerOptions
from edgeinfinite.training.scorer.pairs import Pairs, compose
from edgeinfinite.training.scorer.retrieval_heads import retrieval_heads, retrieval_layers
from edgeinfinite.training.scorer.train import fit_scorers, watch
from edgeinfinite.training.texts import split_documents
from tiny import tiny_hybrid

QUICK = [
    "--passes",
    "3",
    "--repeated-passes",
    "2",
    "--tokens",
    "480",
    "--gap",
    "48",
    "--facts",
    "1",
    "--steps",
    "8",
]


def train(checkpoint: Path, texts: Path, output: Path, *more: str) -> int:
    command = ["train-scorer", "--model", str(checkpoint), "--data", str(texts)]
    return main([*command, "--output", str(output), *QUICK, *more])


def test_the_trained_scorer_fits_the_model_and_its_card_says_what_it_saw(
    checkpoint, texts, tmp_path, capsys
):
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output) == 0
    shown = capsys.readouterr()
    assert "planted kept: " in shown.out and "reading ordinary text: 100 %" in shown.err
    card = read_metadata(output)
    trained, held_out = (json.loads(card[k]) for k in ("trained_on", "held_out_documents"))
    assert len(trained) + len(held_out) == 5 and not set(trained) & set(held_out)
    assert 0 < json.loads(card["held_out_score"])["attention_kept"] <= 1
    backbone = load_backbone(str(checkpoint))
    model = backbone.model
    alike = Geometry(128, 4, 8, policy="carry", recall_slots=256)
    geometry = with_trained_slots(alike, str(output), backbone)
    assert geometry.average_slots == 256 and geometry.most_slots % 128 == 0
    attach(model, EdgeInfiniteConfig(geometry, gate="none", scorer=str(output)))


def test_the_same_seed_gives_the_same_scorer_and_another_one_another(checkpoint, texts, tmp_path):
    first, again, other = (tmp_path / f"{name}.safetensors" for name in "abc")
    assert train(checkpoint, texts, first) == train(checkpoint, texts, again) == 0
    assert train(checkpoint, texts, other, "--seed", "1") == 0
    first, again, other = (load_file(path) for path in (first, again, other))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if ".w1" in name)


def test_fitting_finds_what_the_targets_depend_on():
    torch.manual_seed(0)
    inputs = torch.randn(2, 3, 800, 16).half()
    targets = 2.0 * inputs[..., 5].float() - 6.0
    pairs = Pairs(
        inputs,
        {"largest": targets},
        torch.rand(800) < 0.1,
        torch.zeros(800, dtype=torch.int64),
    )
    scores = {}
    for steps in (1, 150):
        options = ScorerOptions("model", Path("out"), steps=steps, batch=256, learning_rate=0.02)
        fitted = fit_scorers(pairs, options, lambda *_: None)
        scores[steps] = held_out_score(fitted, pairs)
    assert scores[150]["huber_loss"] < 0.1 * scores[1]["huber_loss"]
    assert scores[150]["attention_kept"] > 0.7 > scores[1]["attention_kept"]


def test_emphasis_weights_the_fit_towards_pairs_with_much_attention():
    """Two pairs that look alike: one is asked for, the other hardly; what is predicted for both?"""
    inputs = torch.randn(1, 1, 2, 8, generator=torch.Generator().manual_seed(0)).half()
    inputs = inputs[:, :, :1].expand(1, 1, 2, 8).repeat(1, 1, 50, 1)
    targets = torch.tensor([-0.5, -8.0]).repeat(50).expand(1, 1, 100)
    pairs = Pairs(inputs, {"largest": targets}, torch.ones(100).bool(), torch.zeros(100).long())
    score = {}
    for emphasis in (0.0, 0.5):
        options = ScorerOptions("model", Path("out"), steps=200, batch=64, emphasis=emphasis)
        scorer = fit_scorers(pairs, options, lambda *_: None)[0]
        score[emphasis] = float(scorer(*inputs[0].float().chunk(2, dim=-1))[0, 0])
    assert -7.0 < score[0.0] < -2.0 < score[0.5]


def test_one_pass_in_n_is_long_but_within_the_positions():
    options = PassOptions(tokens=1000, facts=4, plain=3, long=7)
    assert [options.of_pass(i, 8192) for i in (0, 1, 6, 13)] == [
        (1000, 0),
        (1000, 4),
        (2000, 0),
        (2000, 6),
    ]
    assert options.of_pass(13, 1500) == (1500, 6)
    assert PassOptions(tokens=1000, long=0).of_pass(13, 8192) == (1000, 8)


def test_heads_that_attend_to_planted_facts_become_retrieval_heads():
    planted = torch.arange(100) % 10 == 0
    largest = torch.full((2, 3, 100), -7.0)
    largest[1, 2, planted], largest[0, 1, planted] = -0.5, -1.0
    largest[0, 0, ~planted] = -0.1  # asked for often, but not for facts
    pairs = Pairs(torch.zeros(2, 3, 100, 4), {"largest": largest}, planted, torch.zeros(100))
    assert retrieval_heads(pairs, 0.01) == [(1, 2)]
    assert retrieval_heads(pairs, 1 / 3) == [(1, 2), (0, 1)]
    assert len(retrieval_heads(pairs, 1.0)) == 6
    assert retrieval_layers(pairs, 0.5) == [1] and retrieval_layers(pairs, 1.0) == [1, 0]
    plain = replace(pairs, planted=torch.zeros(100).bool())
    assert len(retrieval_heads(plain, 0.1)) == 6 and len(retrieval_layers(plain, 0.1)) == 2


def test_streaming_heads_give_all_pairs_the_same_score(checkpoint, texts, tmp_path):
    """Half of the heads of two layers with two KV heads each."""
    output, everywhere = tmp_path / "half.safetensors", tmp_path / "all.safetensors"
    assert train(checkpoint, texts, output, "--retrieval-share", "0.5") == 0
    assert train(checkpoint, texts, everywhere, "--retrieval-share", "1") == 0
    retrieval = json.loads(read_metadata(output)["retrieval_heads"])
    assert len(retrieval) == 2
    assert len(json.loads(read_metadata(everywhere)["retrieval_heads"])) == 4
    half, whole = load_file(output), load_file(everywhere)
    for layer, head in np.ndindex(2, 2):
        name = f"layers.{layer}.w2"
        if [layer, head] in retrieval:
            assert torch.equal(half[name][head], whole[name][head]) and half[name][head].any()
        else:
            assert not half[name][head].any() and whole[name][head].any()


def test_heads_that_score_do_so_on_one_scale(checkpoint, texts, tmp_path, monkeypatch):
    """Mean 0 and deviation 1 over the pairs of training that aren't of planted facts."""
    watched = []
    monkeypatch.setattr(
        scorer_training, "watch", lambda *given: watched.append(watch(*given)) or watched[0]
    )
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output, "--retrieval-share", "0.5") == 0
    model, pairs = load_backbone(str(checkpoint)).model, watched[0][0]
    slots = Geometry(128, 4, 8, policy="carry", recall_slots=256)
    attach(model, EdgeInfiniteConfig(slots, gate="none", scorer=str(output)))
    heads = 0
    for layer, inputs in zip(model.model.layers, pairs.inputs[:, :, ~pairs.planted], strict=True):
        scorer = layer.self_attn.retention_scorer
        scores = scorer(*inputs.float().chunk(2, dim=-1))[scorer.retrieval[:, 0] > 0]
        torch.testing.assert_close(scores.mean(-1), torch.zeros(len(scores)), atol=0.02, rtol=0)
        torch.testing.assert_close(scores.std(-1), torch.ones(len(scores)), atol=0.02, rtol=0)
        assert torch.equal(scorer.head_weights != 0, scorer.retrieval > 0)
        heads += len(scores)
    assert heads == 2


def test_the_card_says_how_scores_rank_and_a_file_without_it_is_refused(
    checkpoint, texts, tmp_path
):
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output, "--retrieval-share", "1") == 0
    assert read_rank_rule(output) == RankRule()
    card = read_metadata(output)
    del card["rank_rule"]
    save_file(load_file(output), output, metadata=card)
    model = load_backbone(str(checkpoint)).model
    slots = Geometry(128, 4, 8, policy="carry", recall_slots=256)
    with pytest.raises(EdgeInfiniteError, match="train it again"):
        attach(model, EdgeInfiniteConfig(slots, gate="none", scorer=str(output)))


def test_planted_facts_stand_where_the_composed_text_says(checkpoint, texts):
    tokenizer = load_backbone(str(checkpoint)).tokenizer
    document = (texts / "text0.txt").read_text() * 3
    text = compose(document, tokenizer, 2000, 5, np.random.default_rng(0))
    assert len(text.tokens) == 2000
    planted = tokenizer.decode([text.tokens[place] for place in text.planted])
    rest = [t for i, t in enumerate(text.tokens) if i not in set(text.planted)]
    words = tokenizer.decode(rest[: -text.asking]).split()[:-1]  # the last one may be cut off
    assert set(words) <= {"a", "dog", "went", "home"}
    assert len(planted) > 100 and not {"dog", "home"} & set(planted.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--tokens", "96"), "tokens of a text have no room for 1 facts with their questions"),
        (("--tokens", "220"), "have no room for 1 facts with their questions, which take"),
        (("--facts", "60"), "there are 51 facts to plant in a text, 60 were asked for"),
        (("--facts", "-1"), "facts is -1; give a number from 0 on"),
    ],
    ids=["short", "short for repeating", "more than there are", "negative"],
)
def test_facts_that_a_text_has_no_room_for_are_refused_in_a_line(
    checkpoint, texts, tmp_path, capsys, more, said
):
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output, *more) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not output.exists()


def test_documents_are_held_out_by_their_names(tmp_path):
    names = [tmp_path / f"{number}.txt" for number in range(40)]
    trained, held_out = split_documents(names, 0.25)
    assert sorted(trained + held_out) == sorted(names) and 4 <= len(held_out) <= 16
    elsewhere = [Path("elsewhere") / path.name for path in reversed(names)]
    assert [p.name for p in split_documents(elsewhere, 0.25)[1]] == [p.name for p in held_out]
    assert [len(side) for side in split_documents(names[:2], 0.01)] == [1, 1]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--tokens", "90"], "too few for a gap"),
        (["--tokens", "600"], "more than the 512 positions"),
        (["--emphasis", "2"], "emphasis is 2.0"),
        (["--retrieval-share", "0"], "retrieval share is 0.0"),
        (["--long", "-1"], "long is -1"),
        (["--passes", "0"], "passes must be at least 1"),
        (["--hold-out", "1"], "between 0 and 1"),
        (["--data", "nowhere"], "nowhere doesn't exist"),
        (["--output", "nowhere/scorer.safetensors"], "there is no folder nowhere"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(checkpoint, texts, tmp_path, capsys, more, says):
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output, *more) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("edgeinfinite: error: ") and says in error
    assert not list(tmp_path.iterdir())


def test_a_document_too_short_or_alone_is_named(checkpoint, tmp_path, capsys):
    (tmp_path / "one.txt").write_text("too short")
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, tmp_path, output) == 2
    assert "only document" in capsys.readouterr().err
    (tmp_path / "two.txt").write_text("too short as well")
    assert train(checkpoint, tmp_path, output) == 2
    assert "give longer documents" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["gemma3n", "gemma4"])
def test_layers_that_read_what_others_cached_get_no_scorer(kind, texts, tmp_path):
    checkpoint = tiny_checkpoint(tmp_path / kind, model=GEMMAS[kind]())
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output) == 0
    model = load_backbone(str(checkpoint)).model
    geometry = Geometry(64, 4, 8, policy="carry", recall_slots=64)
    attach(model, EdgeInfiniteConfig(geometry, gate="none", scorer=str(output)))
    scores = [not layer.retention_scorer.streams for layer in attention_layers(model)]
    assert scores == [type_ == "full_attention" for type_ in LAYERS[:OWN]]


def test_layers_with_sliding_windows_get_no_heads_that_score_and_no_slots(texts, tmp_path):
    checkpoint = tiny_checkpoint(tmp_path / "hybrid", model=hybrid("Gemma3"))
    output = tmp_path / "scorer.safetensors"
    assert train(checkpoint, texts, output, "--retrieval-share", "0.25") == 0  # of all layers
    card, tensors = read_metadata(output), load_file(output)
    assert {layer for layer, _ in json.loads(card["retrieval_heads"])} <= {1, 3}
    rule = read_rank_rule(output)
    assert (rule.newest_slots(4096), rule.newest_slots(64)) == (0, 0)  # all by rank
    assert {layer for layer in range(4) if tensors[f"layers.{layer}.w2"].any()} <= {1, 3}
    (layer,) = json.loads(card["retrieval_layers"])
    asked = GeometryOptions(recall_slots="trained:256", segment_length=128, sink_length=4)
    options = ModelOptions(replace(asked, window_length=8), scorer=str(output))
    backbone = load_backbone(str(checkpoint))
    geometry = resolve(backbone, options).config.geometry
    slots = [geometry.slots_of(i) for i in range(4)]
    assert slots == [0, 384 if layer == 1 else 128, 0, 384 if layer == 3 else 128]
    attach(backbone.model, resolve(backbone, options).config)


def test_where_every_layer_slides_there_is_nothing_to_train(texts, tmp_path, capsys):
    checkpoint = tiny_checkpoint(tmp_path / "sliding", model=hybrid("Mistral"))
    assert train(checkpoint, texts, tmp_path / "scorer.safetensors") == 2
    assert "every layer" in capsys.readouterr().err


def hybrid(family: str) -> PreTrainedModel:
    return tiny_hybrid(family, 40, vocabulary=VOCABULARY, positions=1024)


def test_a_killed_training_goes_on_with_the_passes_that_it_watched(
    checkpoint, texts, tmp_path, monkeypatch
):
    whole, killed = tmp_path / "whole.safetensors", tmp_path / "killed.safetensors"
    assert train(checkpoint, texts, whole) == 0
    observe, seen = pairs_module.observe, []

    def dies_after_two(*given):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(observe(*given))

    monkeypatch.setattr(pairs_module, "observe", dies_after_two)
    assert train(checkpoint, texts, killed) == 130
    folder = tmp_path / "killed.safetensors.passes"
    first = folder / "repeated-0-0.safetensors"
    names = sorted(f.name for f in folder.glob("*.safetensors"))
    assert names == [first.name, "repeated-0-1.safetensors"]
    first.write_bytes(first.read_bytes()[:100])  # as a power failure may leave it
    monkeypatch.setattr(pairs_module, "observe", lambda *given: seen.append(observe(*given)))
    assert train(checkpoint, texts, killed) == 0
    assert len(seen) == 2 + 1 + 3 + 4  # of two repetitions the first again, then all others
    one, other = load_file(whole), load_file(killed)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert {path.name for path in tmp_path.iterdir()} == {whole.name, killed.name}


def test_a_scorer_gets_a_second_network_and_stays_as_it_is(checkpoint, texts, tmp_path, capsys):
    base, both, whole = (tmp_path / f"{name}.safetensors" for name in ("base", "both", "whole"))
    share = ("--retrieval-share", "0.25")  # one of four heads: a layer only streams
    assert train(checkpoint, texts, base, *share, "--repeated-passes", "0") == 0
    assert train(checkpoint, texts, both, "--base", str(base)) == 0
    assert "repeated correlation: " in capsys.readouterr().out
    before, after = load_file(base), load_file(both)
    assert all(torch.equal(before[name], after[name]) for name in before)
    ((layer, _),) = json.loads(read_metadata(base)["retrieval_heads"])
    added = {name for name in after if name not in before}
    assert added == {name for name in after if name.startswith(f"layers.{layer}.repeats.")} != set()
    assert "repeated_passes" in read_metadata(both)["repeats"]
    assert read_metadata(both)["rank_rule"] == read_metadata(base)["rank_rule"]
    # Trained in one go, the same second network.
    assert train(checkpoint, texts, whole, *share) == 0
    assert all(torch.equal(load_file(whole)[name], after[name]) for name in after)
    changed = load_backbone(str(checkpoint)).model
    changed.model.norm.weight.data += 1
    other = tiny_checkpoint(tmp_path / "other", model=changed)
    assert train(other, texts, tmp_path / "x.safetensors", "--base", str(base)) == 2
    assert "another checkpoint" in capsys.readouterr().err
    assert train(checkpoint, texts, tmp_path / "x", "--base", str(tmp_path / "no")) == 2


def test_passes_of_another_training_are_not_taken(checkpoint, texts, tmp_path, monkeypatch):
    output, observe = tmp_path / "scorer.safetensors", pairs_module.observe

    def dies(*given):
        observe(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(pairs_module, "observe", dies)
    for seed in ("0", "1"):
        assert train(checkpoint, texts, output, "--seed", seed) == 130
    monkeypatch.undo()
    kept = (tmp_path / "scorer.safetensors.passes").glob("*")
    assert [path.name for path in kept if path.suffix == ".safetensors"] == []
    assert train(checkpoint, texts, output) == 0


def test_a_folder_with_something_else_is_left_alone(checkpoint, texts, tmp_path, capsys):
    folder = tmp_path / "scorer.safetensors.passes"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert train(checkpoint, texts, tmp_path / "scorer.safetensors") == 2
    assert "scorer.safetensors.passes holds something else" in capsys.readouterr().err
    assert (folder / "mine.txt").read_text() == "mine"
