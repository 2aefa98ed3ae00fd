"""Memory doesn't grow with the text: peaks of fresh processes, as `bench` takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_artifact import tiny_artifact
from transformers import AutoConfig

from edgeinfinite.artifact.manifest import cache_type_of, read_manifest
from edgeinfinite.runtime_py.benchmark.plan import plan_cases, run_case


@pytest.fixture(
    scope="module",
    params=[
        (),
        ("--cache-type", "float16"),
        ("--policy", "carry", "--recall-slots", "32", "--scorer", "untrained"),
    ],
    ids=["reencode", "reencode in float16", "carry"],
)
def artifact(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("memory") / "artifact", *request.param)


def growing_cache_bytes(artifact: Path, tokens: int) -> int:
    """Bytes of keys and values of `tokens` tokens, as a cache without a limit would hold them."""
    config = AutoConfig.from_pretrained(artifact.with_name(artifact.name + "-checkpoint"))
    numbers = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    return tokens * numbers * (2 if cache_type_of(read_manifest(artifact)) == "float16" else 4)


def test_64k_tokens_take_the_memory_of_8k(artifact):
    cases = plan_cases([artifact], [8_192, 65_536], new_tokens=40, threads=1)
    short, long = (run_case(case, time_limit=600) for case in cases)
    assert short.error is None and long.error is None
    assert long.prompt_tokens == 8 * short.prompt_tokens
    assert long.state_bytes == short.state_bytes
    # Not a share of the peak: this process is small, and what allocators keep differs by more than
    # 2 % of it from run to run.
    more = growing_cache_bytes(artifact, long.prompt_tokens - short.prompt_tokens)
    assert long.peak_rss_bytes - short.peak_rss_bytes <= more / 2
