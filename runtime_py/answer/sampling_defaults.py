"""How `generate`, `chat` and `serve` sample unless the user says otherwise.

A small model that always takes the likeliest token falls into loops. So they take what the
checkpoint's authors recommend, or values that were measured to answer from what was read, and to
end. An answer that still repeats itself ends in any case. `--greedy` is for answers that are to be
compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgeinfinite.runtime_py.answer.generation_config import SAMPLING
from edgeinfinite.runtime_py.answer.repetition import RepetitionDetection

_ENDS = {"repetition_detection": RepetitionDetection()}

DEFAULTS: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.9,
    "repetition_penalty": 1.1,
} | _ENDS
"""For a checkpoint whose generation config doesn't say how to sample; measured on questions about
paragraphs and on free prompts (experiments/sampling.md)."""


def conversation_sampling(artifact: Path) -> dict[str, Any]:
    """Keyword arguments for `SamplingOptions`, for a conversation with this artifact.

    A generation config that says anything about sampling decides alone. What it leaves out is off,
    as it is in transformers; one that says `do_sample: false` is greedy. Whatever it says, an
    answer that repeats itself ends.

    Args:
        artifact: its folder, from which the tokenizer was already loaded: `load_tokenizer` has
            checked the file.
    """
    path = artifact / "generation_config.json"
    fields = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    named = {name: fields[name] for name in SAMPLING if fields.get(name) is not None}
    if fields.get("do_sample") is False:
        return named | {"temperature": 0.0} | _ENDS
    if not named and not fields.get("do_sample"):
        return dict(DEFAULTS)
    return {"temperature": 1.0} | named | _ENDS
