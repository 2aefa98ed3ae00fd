"""What is read for calibration: short stretches, long ones through the session, and going on."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.export.mixing.calibration import CalibrationTexts, calibration_texts, read_texts
from edgeinfinite.export.mixing.curvature import Sums, add_session
from edgeinfinite.models.attach import attach
from edgeinfinite.models.configuration import EdgeInfiniteConfig
from edgeinfinite.models.weights import file_memory
from edgeinfinite.models.weights.file_memory import FileMemory
from tiny import VOCABULARY, tiny_llama

SHORT, LONG = 40, 90
SUBJECT = {"weights_sha256": "of the tiny model"}


def stretches(count: int, length: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(0, VOCABULARY, (count, length), generator=generator).tolist()


TEXTS = CalibrationTexts(stretches(3, SHORT), stretches(2, LONG))


@pytest.fixture(scope="module")
def model():
    lengths = Geometry(segment_length=16, sink_length=4, window_length=8, policy="carry")
    return attach(tiny_llama().requires_grad_(False), EdgeInfiniteConfig(lengths))


def same(one, other) -> bool:
    return set(one) == set(other) and all(
        torch.equal(mine, theirs) if isinstance(mine, torch.Tensor) else mine == theirs
        for name in one
        for mine, theirs in zip(vars(one[name]).values(), vars(other[name]).values(), strict=True)
    )


def test_a_reading_that_was_killed_goes_on_and_gives_the_same(model, tmp_path):
    whole = read_texts(model, TEXTS, lambda *_: None)
    for killed_at in (1, 4):
        kept, seen = tmp_path / f"{killed_at}.statistics", []

        def progress(what: str, done: float, at: int = killed_at, seen: list = seen) -> None:
            seen.append(done)
            if len(seen) == at + 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            read_texts(model, TEXTS, progress, kept=kept, subject=SUBJECT)
        seen.clear()
        resumed = read_texts(
            model, TEXTS, lambda _, done, s=seen: s.append(done), kept=kept, subject=SUBJECT
        )
        assert len(seen) == 5 - killed_at and same(resumed, whole)
        seen.clear()
        again = read_texts(
            model, TEXTS, lambda _, done, s=seen: s.append(done), kept=kept, subject=SUBJECT
        )
        assert not seen and same(again, whole)


def test_statistics_in_files_are_those_in_memory_also_after_going_on(model, tmp_path, monkeypatch):
    monkeypatch.setattr(file_memory, "_SMALL", 0)
    expected = read_texts(model, TEXTS, lambda *_: None)
    memory, kept = FileMemory(tmp_path), tmp_path / "rows.statistics"
    twin = copy.deepcopy(model)
    memory.move(twin)
    for _ in range(2):
        found = read_texts(twin, TEXTS, lambda *_: None, kept=kept, subject=SUBJECT, memory=memory)
        assert same(found, expected)
    assert [file.name for file in tmp_path.iterdir()] == [kept.name]


@pytest.mark.parametrize("damage", ["other subject", "cut off"])
def test_what_is_about_something_else_or_damaged_is_read_anew(model, tmp_path, damage):
    kept: Path = tmp_path / "rows.statistics"
    whole = read_texts(model, TEXTS, lambda *_: None, kept=kept, subject=SUBJECT)
    if damage == "cut off":
        kept.write_bytes(kept.read_bytes()[:1000])
    subject = SUBJECT if damage == "cut off" else {"weights_sha256": "of another"}
    seen: list[float] = []
    again = read_texts(model, TEXTS, lambda _, done: seen.append(done), kept=kept, subject=subject)
    assert len(seen) == 5 and same(again, whole)


def test_layers_over_the_same_input_share_its_sum_also_after_going_on(model, tmp_path):
    kept = tmp_path / "rows.statistics"
    for _ in range(2):
        found = read_texts(model, TEXTS, lambda *_: None, kept=kept, subject=SUBJECT)
        attention = "model.layers.0.self_attn"
        query, key = (found[f"{attention}.{kind}_proj.weight"].inputs for kind in "qk")
        assert query is key and query is not None


def test_a_session_sees_other_inputs_than_full_attention_once_pairs_are_evicted(model):
    """The last layer's inputs depend on what was still in the cache; the first layer's don't."""
    text = stretches(1, LONG)[0]
    sums = Sums()
    add_session(sums, model, text)
    layers = [found for name, found in sums.found.items() if name.endswith("_proj.weight")]
    assert {found.forwards for found in layers} == {LONG} and sums.backwards == 0
    assert sums.found["lm_head.weight"].forwards < LONG  # only some logits are wanted
    session = sums.means()
    full = read_texts(model, CalibrationTexts([text]), lambda *_: None)
    for layer, alike in ((0, True), (1, False)):
        name = f"model.layers.{layer}.self_attn.q_proj.weight"
        one, other = session[name].inputs, full[name].inputs
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4) == alike


def test_a_text_has_as_many_stretches_as_it_holds():
    def tokenizer(text: str, **_: object) -> object:
        return type("Encoding", (), {"input_ids": [1] * len(text)})

    for length, count in ((8 * 512, 8), (12 * 512 + 100, 12), (40 * 512, 24)):
        texts = calibration_texts(tokenizer, "a" * length)  # type: ignore[arg-type]
        assert [len(stretch) for stretch in texts.short] == [512] * count
