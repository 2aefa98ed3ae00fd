"""The comparison of two CPUs finds what differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arm64.compare import EXECUTORCH_LIMITS, beyond_limits, differences, main

TOKENS = np.array([1, 2, 0, 1])


def _record() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "0.logits": random.standard_normal((3, 4)),
        "0.state.k_cache.k_cache_0": random.standard_normal((1, 2, 5, 3)),
        "whole.logits": random.standard_normal((2, 4)),
        "greedy": np.array([3, 1, 2]),
    }


def test_equal_records_differ_in_nothing() -> None:
    found = differences(_record(), _record(), TOKENS)
    assert (found.logits, found.nats, found.loss, found.whole_logits) == (0, 0, 0, 0)
    assert found.state == {"k_cache": 0} and found.greedy == 3


def test_each_difference_is_seen() -> None:
    other = _record()
    other["0.logits"][1] *= 1.1
    other["0.state.k_cache.k_cache_0"][0, 0, 4, 2] = np.nan
    other["whole.logits"][0, 0] += 50  # the text went on with token 0 and then 1
    other["greedy"][1] = 0
    found = differences(_record(), other, TOKENS)
    assert found.logits == pytest.approx(0.1) and found.nats > 0
    assert found.state == {"k_cache": np.inf}
    assert found.loss < 0 and found.greedy == 1


def test_records_of_other_tensors_are_refused() -> None:
    other = _record()
    del other["greedy"]
    with pytest.raises(ValueError, match="only one record has greedy"):
        differences(_record(), other, TOKENS)


def test_what_rounding_does_not_explain_is_beyond_the_limits() -> None:
    record, other = _record(), _record()
    assert beyond_limits(differences(record, record, TOKENS)) == []
    other["0.state.k_cache.k_cache_0"] = other["0.state.k_cache.k_cache_0"] * 1.2
    other["0.logits"] = other["0.logits"] * np.nan
    found = beyond_limits(differences(record, other, TOKENS))
    assert [problem.split()[0] for problem in found] == ["logits", "nats", "k_cache"]


def test_the_exit_status_says_what_is_beyond_a_limit(tmp_path: Path) -> None:
    other = _record()
    other["0.logits"] = other["0.logits"] * 1.5
    np.save(tmp_path / "tokens.npy", TOKENS)
    np.savez(tmp_path / "record.npz", allow_pickle=False, **_record())
    for record, status in ((_record(), None), (other, "int4: logits differ by 0.5")):
        np.savez(tmp_path / "arm64.npz", allow_pickle=False, **record)
        with pytest.raises(SystemExit) as ended:
            main([f"int4={tmp_path}"])
        assert str(ended.value.code).startswith(str(status))


def test_executorch_has_limits_of_its_own() -> None:
    record, other = _record(), _record()
    other["0.state.k_cache.k_cache_0"] = other["0.state.k_cache.k_cache_0"] * 1.08
    found = differences(record, other, TOKENS)
    assert len(beyond_limits(found)) == 1 and beyond_limits(found, EXECUTORCH_LIMITS) == []
