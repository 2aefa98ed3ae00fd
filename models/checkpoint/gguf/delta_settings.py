"""What the configuration of models with gated delta rules needs, see `family_settings`."""

from __future__ import annotations

from typing import Any

from edgeinfinite.models.checkpoint.gguf.family_settings import FULL, Ropes
from edgeinfinite.models.checkpoint.gguf.header import Header

_EPSILON = 1e-6
"""Of the delta rule's queries and keys in transformers; llama.cpp takes the norms'."""


def qwen3_5(header: Header, settings: dict[str, Any], ropes: Ropes) -> dict[str, Any]:
    """Qwen3.5: delta rules in most layers, RoPE for a part of each head of the others."""
    found = settings["rms_norm_eps"]
    if abs(found - _EPSILON) > 1e-3 * _EPSILON:
        raise header.refuse(
            "attention.layer_norm_rms_epsilon",
            f"is {found:g}: the delta rule with another than {_EPSILON:g} isn't read",
        )
    keys, heads = header.positive("ssm.group_count"), header.positive("ssm.time_step_rank")
    size, kernel = header.positive("ssm.state_size"), header.whole("ssm.conv_kernel")
    if heads % keys:
        raise header.refuse("ssm.group_count", f"is {keys}, of {heads} heads")
    header.must_be("ssm.inner_size", size * heads, f"{heads} heads have {size} dimensions each")
    if kernel < 2:
        raise header.refuse("ssm.conv_kernel", f"is {kernel}; it must be 2 or more")
    _check_sections(header, ropes)
    return {
        "linear_num_key_heads": keys,
        "linear_num_value_heads": heads,
        "linear_key_head_dim": size,
        "linear_value_head_dim": size,
        "linear_conv_kernel_dim": kernel,
        "layer_types": _types(header, settings["num_hidden_layers"]),
    }


def _types(header: Header, layers: int) -> list[str]:
    """Which layers attend: as listed, or one of so many."""
    key, every = "attention.recurrent_layers", header.positive("full_attention_interval", 4)
    others = [(layer + 1) % every != 0 for layer in range(layers)]
    if header.has(key):
        listed = header.value(key)
        others = listed if isinstance(listed, list) else [listed] * header.blocks
        if len(others) != header.blocks or not all(isinstance(entry, bool) for entry in others):
            raise header.refuse(key, f"doesn't say which of {header.blocks} blocks attend")
    if all(others[:layers]):
        raise header.refuse(key, "says that no layer attends")
    return [header.row.other_type if entry else FULL for entry in others[:layers]]


def _check_sections(header: Header, ropes: Ropes) -> None:
    """Refuses angles that are of no grid: llama.cpp gives them position 0.

    A text has one position in all three grids, so it doesn't matter which an angle is of.
    """
    key = "rope.dimension_sections"
    sections = header.value(key)
    if not (
        isinstance(sections, list)
        and len(sections) == 4
        and all(isinstance(entry, int) and entry >= 0 for entry in sections)
        and sum(sections)
    ):
        raise header.refuse(key, f"is {sections}, not four whole numbers")
    for angle in range(ropes[FULL].turned // 2):
        place = angle % sum(sections)
        if place >= 3 * sections[place % 3]:
            raise header.refuse(key, f"is {sections}: angle {angle} has no position")
