"""What the second network is fitted to: repetition and answers, text by text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_artifact import tiny_checkpoint

from edgeinfinite.models.loading import Backbone, load_backbone
from edgeinfinite.training.scorer.composed import Composed
from edgeinfinite.training.scorer.options import PassOptions
from edgeinfinite.training.scorer.own_answers import REQUESTS, framed, own_answers
from edgeinfinite.training.scorer.paid import largest_paid, read_text
from edgeinfinite.training.scorer.pass_files import PassFiles
from edgeinfinite.training.scorer.repeated_texts import composers
from edgeinfinite.training.scorer.repetition import REQUEST, collect_repeated
from edgeinfinite.training.texts import encode

OPTIONS = PassOptions(tokens=300, facts=1, kept_pairs=40)


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
    words = [" ".join(random.choice(list("abcdef"), 6)) for _ in range(400)]
    (tmp_path / "text.txt").write_text("\n".join(words))
    return [tmp_path / "text.txt"]


def test_questions_are_apart_from_the_texts_and_only_documents_are_answered_about(
    backbone, documents
):
    tokenizer = backbone.tokenizer
    kinds = composers(documents, tokenizer, 130, 1, [Asked()])
    planted, plain, asked, *code = [kind(0, np.random.default_rng(0)) for kind in kinds]
    assert all(len(text.body) <= 130 for text in (planted, plain, asked, *code))
    answer = tokenizer.decode(planted.questions)[-8:]  # the planted fact stands in the text
    assert answer.strip(".") in tokenizer.decode(planted.body)
    assert set(tokenizer.decode(asked.body)) == {"x"}
    assert tokenizer.decode(asked.questions) == "Which letter? x."
    assert not plain.questions and not any(text.questions for text in code)
    assert [text.document for text in (planted, plain, asked, *code)] == [
        True,
        True,
        False,
        *[True] * len(code),
    ]


def test_targets_are_means_of_two_logarithms_with_one_mean_for_every_text(
    backbone, documents, tmp_path
):
    model, tokenizer = backbone.model, backbone.tokenizer
    (tmp_path / "passes").mkdir()
    files = PassFiles(tmp_path / "passes")
    given = (model, tokenizer, documents, OPTIONS, 4, 7, lambda done: None, files, [Asked()])
    found = collect_repeated(*given)
    by_text = found.wanted.unflatten(2, (4, -1)).mean(3)
    torch.testing.assert_close(by_text, found.wanted.mean(2, keepdim=True).expand_as(by_text))
    assert found.inputs.shape == (2, 2, 160, 16) and found.fitted == 160

    # The second text, a plain document, with everything computed again.
    random = np.random.default_rng(7)
    length = (300 - len(encode(REQUEST, tokenizer))) // 2
    kinds = composers(documents, tokenizer, length, 1, [Asked()])
    for kind in kinds[:2]:
        text = kind(0, random)
        chosen = random.permutation(len(text.body))[:40]
    places = torch.tensor(sorted(chosen.tolist()))
    before, asked = framed(tokenizer, REQUESTS[0])
    cache = read_text(model, before + text.body)
    said = own_answers(model, tokenizer, cache, asked, 7 + 1)
    later = [torch.tensor([encode(REQUEST, tokenizer) + text.body]), said]
    paid = [largest_paid(model, cache, one)[..., len(before) + places] for one in later]
    wanted = torch.stack([of.clamp(min=1e-6).log() for of in paid]).mean(0)
    wanted = wanted - wanted.mean(2, keepdim=True) + found.wanted.mean(2, keepdim=True)
    torch.testing.assert_close(found.wanted[..., 40:80], wanted)
    values = torch.stack([of.values[0][:, len(before) + places] for of in cache.layers])
    torch.testing.assert_close(found.inputs[:, :, 40:80, 8:].float(), values, rtol=1e-3, atol=1e-3)


def test_what_was_watched_before_is_not_watched_again(backbone, documents, tmp_path, monkeypatch):
    (tmp_path / "passes").mkdir()
    files = PassFiles(tmp_path / "passes")
    given = (backbone.model, backbone.tokenizer, documents, OPTIONS, 2, 7, lambda done: None, files)
    first = collect_repeated(*given)
    monkeypatch.setattr(backbone.model, "forward", None)
    again = collect_repeated(*given)
    assert torch.equal(first.wanted, again.wanted) and torch.equal(first.inputs, again.inputs)
