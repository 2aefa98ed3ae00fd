"""What the second network is fitted to: texts of four kinds, and what a repetition pays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_artifact import tiny_checkpoint

from edgeinfinite.models.checkpoint.loading import Backbone, load_backbone
from edgeinfinite.training.scorer.composed import Composed
from edgeinfinite.training.scorer.options import PassOptions
from edgeinfinite.training.scorer.pass_files import PassFiles
from edgeinfinite.training.scorer.repetition import (
    REQUEST,
    collect_repeated,
    composers,
    library_files,
)
from edgeinfinite.training.texts import encode

OPTIONS = PassOptions(tokens=300, gap=48, facts=1, kept_pairs=40)


class Asked:
    """Texts of one letter, with a question."""

    def compose(self, tokenizer, length: int, _: np.random.Generator) -> Composed:
        end = encode("Which letter? x.", tokenizer)
        return Composed(encode("x" * (length - len(end)), tokenizer) + end, [], len(end))


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> Backbone:
    return load_backbone(str(tiny_checkpoint(tmp_path_factory.mktemp("tiny"))))


@pytest.fixture
def documents(tmp_path) -> list[Path]:
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(list("abcdef"), 6)) for _ in range(400)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return [tmp_path / "text.txt"]


@pytest.fixture
def files(tmp_path) -> PassFiles:
    (tmp_path / "passes").mkdir()
    return PassFiles(tmp_path / "passes")


def test_texts_have_no_questions_and_one_kind_has_a_fact(backbone, documents):
    kinds = composers(documents, backbone.tokenizer, 130, 1, [Asked()])
    texts = [backbone.tokenizer.decode(kind(0, np.random.default_rng(0))) for kind in kinds]
    planted, plain, asked, *code = texts
    assert set(plain) <= set("abcdef \n") and set(asked) == {"x"}
    assert not set(planted) <= set("abcdef \n")
    assert len(code) == bool(library_files())
    assert all(set(text) - set("abcdef \nx") for text in code)


def test_the_target_is_what_text_and_repetition_pay_with_full_attention(backbone, documents, files):
    model, tokenizer = backbone.model, backbone.tokenizer
    given = (model, tokenizer, documents, OPTIONS, 8, 7, lambda done: None, files, [Asked()])
    found = collect_repeated(*given)
    assert found.inputs.shape == (2, 2, 320, 16) and found.fitted == 280
    # The second text, a plain document, with everything computed again.
    random, request = np.random.default_rng(7), encode(REQUEST, tokenizer)
    length = (300 - len(request)) // 2
    for kind in composers(documents, tokenizer, length, 1, [Asked()])[:2]:
        body = kind(0, random)[:length]
        places = sorted(random.permutation(len(body))[:40].tolist())
    tokens = body + request + body
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(torch.tensor([tokens]), output_attentions=True).attentions
    model.set_attn_implementation(before)
    age = torch.arange(len(tokens))[:, None] - torch.arange(len(tokens))
    paid = torch.stack([of[0].masked_fill(age < 48, 0.0).unflatten(0, (2, 2)) for of in weights])
    wanted = paid.amax((2, 3))[..., places].clamp(min=1e-6).log()
    torch.testing.assert_close(found.largest[..., 40:80], wanted, rtol=1e-3, atol=1e-3)


def test_what_was_watched_before_is_not_watched_again(backbone, documents, files, monkeypatch):
    given = (backbone.model, backbone.tokenizer, documents, OPTIONS, 2, 7, lambda done: None, files)
    first = collect_repeated(*given)
    monkeypatch.setattr(backbone.model, "forward", None)
    again = collect_repeated(*given)
    assert torch.equal(first.largest, again.largest) and torch.equal(first.inputs, again.inputs)
