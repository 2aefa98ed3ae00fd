"""How a prompt is cut so that its numbers are those of the whole, bit for bit."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from edgeinfinite.models.mini_sequence import apply_mini_sequence
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.mom.row_rounding import chunks, like_many, query_blocks
from tiny import assert_close, random_tokens, tiny_family

LENGTHS = (5, 33, 194, 300, 515, 577, 700, 1_031, 2_048, 2_049, 2_051)
"""One chunk and several, with and without a short rest of a chunk or of a block of queries."""


@pytest.mark.parametrize("size", [1, 7, 64, 512])
def test_chunks_cover_a_prompt_in_order_and_are_hardly_longer_than_asked(size: int) -> None:
    for tokens in (1, 2, 63, 64, 65, 511, 512, 513, 519, 1_024, 1_025, 3_000):
        found = list(chunks(tokens, size))
        assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
        assert found[-1][1] == tokens
        assert max(end - start for start, end in found) <= size * 9 / 8


def test_no_chunk_of_the_usual_size_is_too_short_to_round_like_the_prompt() -> None:
    for tokens in range(512, 1_700):
        assert min(end - start for start, end in chunks(tokens, 512)) >= like_many(tokens)


def test_blocks_of_queries_cover_a_chunk_and_end_where_the_whole_prompts_do() -> None:
    for prompt in (*range(1, 1_400, 3), 2_049, 2_050, 2_051, 2_052):
        start, end = list(chunks(prompt, 512))[-1]
        blocks = list(query_blocks(end - start, prompt, 512))
        seen = {query for first, last in blocks for query in range(first, last)}
        assert seen == set(range(end - start))
        assert blocks[-1][1] == end - start


@functools.cache
def _rounds_alike() -> bool:
    """Whether on this machine a row's rounding doesn't depend on how many other rows there are."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(128, 128), (256, 128), (512, 128), (128, 256)]  # those of the model below
    pairs = [
        (torch.randn(2_048, i, generator=generator), torch.randn(o, i, generator=generator))
        for o, i in shapes
    ]
    few = like_many(2_048)
    products = all(
        torch.equal(functional.linear(rows[-count:], w), functional.linear(rows, w)[-count:])
        for rows, w in pairs
        for count in (few, 33, 512)
    )
    query, key = torch.randn(2, 1, 4, 2_048, 32, generator=generator)
    mask = torch.full((2_048, 2_048), float("-inf")).triu(1)
    whole = functional.scaled_dot_product_attention(query, key, key, is_causal=True)
    return products and all(
        torch.equal(
            functional.scaled_dot_product_attention(
                query[:, :, -n:], key, key, attn_mask=mask[-n:]
            ),
            whole[:, :, -n:],
        )
        for n in (32, 512)
    )


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    """Wide enough for the products that large models have; MKL has others for tiny ones."""
    sizes = {"hidden_size": 128, "intermediate_size": 256, "head_dim": 32, "vocab_size": 512}
    return tiny_family("Llama", num_hidden_layers=2, **sizes)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("length", LENGTHS)
def test_the_logits_are_the_models_bit_for_bit(
    length: int, model: PreTrainedModel, tmp_path: Path
) -> None:
    tokens = torch.tensor([random_tokens(length)])
    with torch.inference_mode():
        expected = model(tokens).logits[:, -1]
        with apply_mini_sequence(model, 512):
            short = model(tokens).logits[:, -1]
    with MomReader(model, folder=tmp_path) as reader:
        read = reader.read(tokens)[:, -1]
    if _rounds_alike():
        assert torch.equal(short, expected)
        assert torch.equal(read, expected)
    assert_close(short, expected)
    assert_close(read, expected)
