"""float16 must hold what a backbone computes."""

from __future__ import annotations

import pytest

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.onnx.qnn.magnitudes import check_magnitudes, largest_activation
from tiny import tiny_llama


def test_an_ordinary_model_passes_and_one_beyond_float16_is_refused_by_its_module() -> None:
    model = tiny_llama()
    check_magnitudes(model)
    model.model.layers[1].mlp.down_proj.weight.data *= 1e6
    largest, where = largest_activation(model)
    assert largest > 65_504 and where.startswith("model.")
    with pytest.raises(EdgeInfiniteError, match=r"float16, which holds 65,504; use --target cpu"):
        check_magnitudes(model)
