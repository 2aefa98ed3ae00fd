"""What the runtime reads of `generation_config.json`: the tokens that end an answer.

The other settings that a sampler could take from it are range-checked all the same, because a file
with impossible ones is damaged, and other programs read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions

_IDS = ("eos_token_id", "bos_token_id", "pad_token_id")
_MOST_IDS = 1_000
SAMPLING = {"temperature": float, "top_k": int, "top_p": float, "repetition_penalty": float}
"""What a sampler can take from it, by name, and the kind of number that it is."""


def stop_ids(path: Path, fields: Mapping[str, Any], vocabulary: int | None) -> frozenset[int]:
    """The tokens that end an answer.

    Args:
        path: the file, for errors.
        fields: its contents.
        vocabulary: V of the model; None where it isn't known.

    Raises:
        EdgeInfiniteError: a token is outside the vocabulary, or a setting out of range.
    """
    try:
        return checked_stop_ids(fields, vocabulary)
    except EdgeInfiniteError as error:
        raise EdgeInfiniteError(f"{path}: {error}; export the artifact again") from error


def checked_stop_ids(fields: Mapping[str, Any], vocabulary: int | None) -> frozenset[int]:
    """As `stop_ids`; the error names the setting alone."""
    ids = {name: _ids(name, fields.get(name), vocabulary) for name in _IDS}
    given: dict[str, Any] = {}
    for name, kind in SAMPLING.items():
        value = fields.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, kind)):
            raise EdgeInfiniteError(f"{name} is {value!r:.80}, not a number")
        given[name] = value
    try:
        SamplingOptions(**given)
    except OverflowError as error:
        raise EdgeInfiniteError(str(error)) from error
    return ids["eos_token_id"]


def _ids(name: str, value: Any, vocabulary: int | None) -> frozenset[int]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if len(ids) > _MOST_IDS or not all(type(one) is int for one in ids):
        raise EdgeInfiniteError(f"{name} is {value!r:.80}, not a token id or a list of them")
    for one in ids:
        least = 0 if name == "eos_token_id" else -1  # which some checkpoints write for "none"
        if one < least or (vocabulary is not None and one >= vocabulary):
            raise EdgeInfiniteError(f"{name} is {one}, outside the vocabulary of {vocabulary}")
    return frozenset(ids)
