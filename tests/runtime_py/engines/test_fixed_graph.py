"""What the host does around graphs of fixed shape."""

from __future__ import annotations

import numpy as np

from edgeinfinite.runtime_py.engines.fixed_graph import scaled_memory


def test_scaling_the_memory_changes_no_retrieval_and_keeps_float16s_range() -> None:
    random = np.random.default_rng(0)
    features = random.uniform(0.01, 30, (2, 3, 500, 8)).astype(np.float32)
    values = random.standard_normal((2, 3, 500, 8)).astype(np.float32)
    memory = 1e6 * features.swapaxes(2, 3) @ values  # as after a text of 500 million tokens
    norm = 1e6 * features.sum(2)
    query = random.uniform(0.01, 30, (2, 3, 4, 8)).astype(np.float32)

    def retrieved(memory: np.ndarray, norm: np.ndarray) -> np.ndarray:
        return (query @ memory) / (query @ norm[..., np.newaxis])

    scaled = scaled_memory(memory, norm)
    np.testing.assert_allclose(retrieved(*scaled), retrieved(memory, norm), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scaled[1].sum(-1), 1.0, rtol=1e-5)
    assert max(np.abs(part).max() for part in scaled) < 10


def test_an_empty_memory_divides_by_no_zero() -> None:
    memory, norm = scaled_memory(np.zeros((1, 2, 4, 4)), np.zeros((1, 2, 4)))
    assert not memory.any() and (norm == 0.25).all()
