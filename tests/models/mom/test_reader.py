"""Exact attention with the cache on disk: the model's own logits, for every architecture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from architectures import ARCHITECTURES
from every_decoder import tiny_decoder

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.mom.row_rounding import like_many
from tiny import MORE_FAMILIES, assert_close, random_tokens, tiny_family, tiny_llama


def ids(count: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor([random_tokens(count, seed)])


@pytest.mark.parametrize("name", (*ARCHITECTURES, *MORE_FAMILIES))
@pytest.mark.parametrize(("length", "chunk"), [(29, 8), (16, 16), (31, 7), (5, 64)])
def test_prompt_and_decode_give_the_models_logits(
    name: str, length: int, chunk: int, tmp_path: Path
) -> None:
    model, tokens = tiny_family(name), ids(length + 4)
    with torch.no_grad():
        expected = model(tokens).logits
    with MomReader(model, chunk=chunk, folder=tmp_path) as reader:
        assert_close(reader.read(tokens[:, :length])[:, 0], expected[:, length - 1])
        for at in range(length, length + 4):
            assert_close(reader.read(tokens[:, at : at + 1])[:, 0], expected[:, at])
        assert reader.length == length + 4
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, expected), "the model is as it was"


@pytest.mark.parametrize("name", (*ARCHITECTURES, *MORE_FAMILIES))
def test_turns_of_any_length_and_all_logits_of_a_chunk(name: str, tmp_path: Path) -> None:
    model, tokens = tiny_family(name), ids(40)
    with torch.no_grad():
        expected = model(tokens).logits
    with MomReader(model, chunk=9, folder=tmp_path) as reader:
        reader.read(tokens[:, :20])
        assert_close(reader.read(tokens[:, 20:33])[:, 0], expected[:, 32])
        assert_close(reader.read(tokens[:, 33:40], keep=7), expected[:, 33:40])


def test_a_window_that_stands_only_in_the_mask_holds_in_the_last_layer_too(tmp_path: Path) -> None:
    model, tokens = tiny_decoder("phimoe", windows=True), ids(31)
    with torch.no_grad():
        expected = model(tokens).logits[:, -1]
    assert architecture_of(model).sliding_windows[-1] == 7
    with MomReader(model, chunk=9, folder=tmp_path) as reader:
        assert_close(reader.read(tokens)[:, 0], expected)


def test_half_precision_reads_the_same_as_transformers(tmp_path: Path) -> None:
    model, tokens = tiny_llama().bfloat16(), ids(30)
    with torch.no_grad():
        expected = model(tokens).logits[:, -1].float()
    with MomReader(model, chunk=8, folder=tmp_path) as reader:
        assert_close(reader.read(tokens)[:, 0].float(), expected, 0.02)


def test_rope_that_depends_on_the_prompts_length_is_that_of_the_whole_prompt(
    tmp_path: Path,
) -> None:
    factors = {"long_factor": [2.0, 3.0, 4.0, 5.0], "short_factor": [1.0] * 4}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "factor": 4.0} | factors
    rope["original_max_position_embeddings"] = 16
    model, tokens = tiny_family("Phi3", rope_parameters=rope), ids(30)
    with torch.no_grad():
        expected = model(tokens).logits[:, -1]
    with MomReader(model, chunk=8, folder=tmp_path) as reader:
        assert_close(reader.read(tokens)[:, 0], expected)


def test_a_reading_that_is_stopped_leaves_the_reader_where_it_was(tmp_path: Path) -> None:
    model, tokens = tiny_family("Gemma3"), ids(60)
    with torch.no_grad():
        expected = model(tokens).logits[:, -1]
    with MomReader(model, chunk=8, folder=tmp_path) as reader:
        reader.read(tokens[:, :20])
        for stop in (1, 5, 12, 19):
            chunks = iter(range(stop))

            def stops(_: int, chunks: object = chunks) -> None:
                if next(chunks, None) is None:  # type: ignore[call-overload]
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                reader.read(tokens[:, 20:], before_chunk=stops)
            assert reader.length == 20
        assert_close(reader.read(tokens[:, 20:])[:, 0], expected)


def test_no_activation_is_longer_than_a_chunk_and_the_last_layer_computes_few_rows(
    tmp_path: Path,
) -> None:
    model, seen = tiny_llama(layers=3), []
    with MomReader(model, chunk=64, folder=tmp_path) as reader:
        for layer in model.get_decoder().layers:
            layer.mlp.gate_proj.register_forward_pre_hook(lambda _, x: seen.append(x[0].shape[1]))
        reader.read(ids(150))
    assert seen == [64, 64, 22] * 2 + [like_many(150)] * 3


def test_readers_in_several_threads_share_a_model(tmp_path: Path) -> None:
    model, texts = tiny_llama(), [ids(40, seed) for seed in range(4)]

    def read(text: torch.Tensor) -> torch.Tensor:
        with MomReader(model, chunk=7, folder=tmp_path) as reader:
            reader.read(text[:, :30])
            for at in range(30, 40):
                logits = reader.read(text[:, at : at + 1])
        return logits[:, 0]

    with torch.no_grad():
        expected = [model(text).logits[:, -1] for text in texts]
    with ThreadPoolExecutor(4) as threads:
        for found, logits in zip(threads.map(read, texts), expected, strict=True):
            assert_close(found, logits)


def test_what_it_cannot_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EdgeInfiniteError, match="chunk is 0"):
        MomReader(tiny_llama(), chunk=0, folder=tmp_path)
    with pytest.raises(EdgeInfiniteError, match="more than one chunk"):
        MomReader(tiny_llama(), chunk=4, folder=tmp_path).read(ids(9), keep=9)
    with pytest.raises(EdgeInfiniteError, match=r"Nemotron\w+ isn't supported"):
        MomReader(tiny_family("Nemotron"), folder=tmp_path)
