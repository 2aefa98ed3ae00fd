"""llama.cpp itself as the judge: `make test-llama-cpp`. It takes minutes.

EDGEINFINITE_FUZZ=N tries N values of each key of each architecture, not 3.
"""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest
import torch

pytest.importorskip("gguf")
pytest.importorskip("llama_cpp")

import tiny_gguf
from gguf import Keys
from gguf_cases import CONTEXT, EVERY, LIMIT
from gguf_peer import difference, peer_logits

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone

pytestmark = [pytest.mark.llama_cpp, pytest.mark.slow]

VALUES = int(os.environ.get("EDGEINFINITE_FUZZ", "3"))


def ours(path, ids, places):
    with torch.no_grad():
        return load_backbone(str(path)).model(torch.from_numpy(ids)[None]).logits[0, places].numpy()


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.label)
def test_logits_are_those_of_llama_cpp(case, tmp_path):
    path = case.write(tmp_path)
    wanted = peer_logits(path, case.ids, case.places, case.context)
    assert wanted is not None, "llama.cpp refuses the file"
    assert difference(ours(path, case.ids, case.places), wanted).max() < LIMIT


def known_keys() -> list[str]:
    """Every key that gguf's package knows, without the architecture's name."""
    groups = [group for group in vars(Keys).values() if isinstance(group, type)]
    texts = [text for group in groups for text in vars(group).values() if isinstance(text, str)]
    return sorted({text[7:] for text in texts if text.startswith("{arch}.")})


def values(key: str, architecture: str) -> list[object]:
    """Plausible other values of a key."""
    random = np.random.default_rng(zlib.crc32(f"{architecture}.{key}".encode()))
    base = tiny_gguf.keys_of(architecture).get(key)
    found: list[object] = [2, 0.7, True, False, 0, 1, "linear", [1, 0], 40, 1.0]
    if isinstance(base, int):
        found = [base * 2, max(1, base // 2), base + 1, *found]
    elif isinstance(base, float):
        found = [base * 3, base / 2, *found]
    return found[:2] + [found[index] for index in random.permutation(range(2, len(found)))]


@pytest.mark.parametrize("architecture", tiny_gguf.ARCHITECTURES)
def test_a_changed_key_moves_both_or_neither_or_is_refused(architecture, tmp_path):
    ids, places = np.random.default_rng(3).integers(3, tiny_gguf.VOCABULARY, 100), [0, 64, 99]
    refused = same = 0
    for key in known_keys():
        for value in values(key, architecture)[:VALUES]:
            path = tiny_gguf.write(tmp_path / "changed.gguf", architecture, keys={key: value})
            try:
                found = ours(path, ids, places)
            except EdgeInfiniteError as error:
                assert str(error).startswith("model changed.gguf: "), error
                refused += 1
                continue
            wanted = peer_logits(path, ids, places, CONTEXT)
            if wanted is None:  # llama.cpp is stricter, or aborts
                continue
            assert difference(found, wanted).max() < LIMIT, (key, value)
            same += 1
    assert refused > 50
    assert same > 5
