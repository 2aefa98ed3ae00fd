"""Memory doesn't grow with the text: peaks of fresh processes, as `bench` takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_artifact import tiny_artifact

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


def test_64k_tokens_take_the_memory_of_8k(artifact):
    cases = plan_cases([artifact], [8_192, 65_536], new_tokens=40, threads=1)
    short, long = (run_case(case, time_limit=600) for case in cases)
    assert short.error is None and long.error is None
    assert long.prompt_tokens == 8 * short.prompt_tokens
    assert long.peak_rss_bytes <= 1.02 * short.peak_rss_bytes
    assert long.state_bytes == short.state_bytes
