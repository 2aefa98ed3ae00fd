"""The angles of a decoder's own rotary embedding, in whatever form it gives them.

Letters: P positions, R rotated dimensions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.call import own_caches
from edgeinfinite.models.rotary_embedding import rotary_embedding

_ALIKE = 1e-6
_STEPS = (1, 7, 100, 1000)
_ROUNDING = 2.0**-22
"""What float32 loses of an angle, for each position: angles are products with the position."""


class Angles(NamedTuple):
    """cos and sin `[P, R / 2]` float32 of each pair of dimensions; position 0 has angle 0."""

    cos: torch.Tensor
    sin: torch.Tensor


def kinds_of(model: PreTrainedModel) -> list[str | None]:
    """Of each layer with a cache, the type by which the rotary embedding tells it, or None."""
    count = len(architecture_of(model).layers)
    if not architecture_of(model).rotary_by_type:
        return [None] * count
    types = model.config.get_text_config().layer_types
    return [types[module.layer_idx] for module in own_caches(model.get_decoder().layers)]


def angles_of(model: PreTrainedModel, kind: str | None, positions: torch.Tensor) -> Angles:
    """The model's own angles, without the factor that some models put on cos and sin.

    Args:
        model: a decoder with `rotary_emb`.
        kind: of `kinds_of`.
        positions: `[P]` int64; the first is 0. Some embeddings choose their frequencies by the
            largest.

    Raises:
        EdgeInfiniteError: the embedding gives something else than angles of pairs.
    """
    cos, sin = _cos_and_sin(model, kind, positions)
    scaling = cos[0, 0]  # cos(0) = 1, so this is the model's own factor
    cos, sin = cos / scaling, sin / scaling
    pairs = _once(cos, sin)
    at_zero = torch.stack((cos[0] - 1, sin[0])).abs().max()
    length = (torch.hypot(cos, sin) - 1).abs().max()
    if pairs is None or max(at_zero, length) > 1e-4:
        raise _unknown(model, "gives no angles of pairs of dimensions")
    return Angles(cos[:, pairs].contiguous(), sin[:, pairs].contiguous())


def check_linear(model: PreTrainedModel, angles: Angles) -> None:
    """Refuses angles that aren't proportional to the position: moving keys relies on it.

    Args:
        model: for the message.
        angles: of positions 0, 1, ..., P - 1.
    """
    turns = torch.complex(*(part.cpu() for part in angles))
    count = len(turns)
    limit = 1e-5 + _ROUNDING * count
    for step in (step for step in _STEPS if step < count):
        off = (turns[step:] * turns[step].conj() - turns[:-step]).abs().max()
        if off > limit:
            raise _unknown(model, "gives angles that aren't proportional to the position")


def check_length(model: PreTrainedModel, positions: int) -> None:
    """Refuses as many positions if the angles of the first depend on how many follow.

    Such an embedding (LongRoPE beyond its original length, dynamic NTK) turns the keys that are
    cached already otherwise than those that follow.

    Raises:
        EdgeInfiniteError: names the number of positions up to which the angles stay.
    """
    layers = zip(architecture_of(model).layers, kinds_of(model), strict=True)
    kinds = dict.fromkeys(kind for layer, kind in layers if layer.rotary)

    def stay(count: int) -> bool:
        every = torch.arange(count, device=model.device)
        return all(
            torch.allclose(part[:few], of_few, atol=_ALIKE, rtol=0)
            for kind in kinds
            for part, of_few in zip(
                _cos_and_sin(model, kind, every),
                _cos_and_sin(model, kind, every[:few]),
                strict=True,
            )
        )

    few = min(positions, 2)
    if stay(positions):
        return
    fits, too_many = few, positions
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if stay(middle) else (fits, middle)
    raise EdgeInfiniteError(
        f"{positions} slots are too many for {type(model).__name__}: beyond {fits} positions its "
        "RoPE takes other frequencies for the whole text, also for what is cached already; choose "
        f"shorter lengths, of at most {fits} slots together"
    )


def _cos_and_sin(
    model: PreTrainedModel, kind: str | None, positions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """`[P, columns]` float32, as the embedding gives them."""
    rotary: Any = rotary_embedding(model.get_decoder())
    like = torch.zeros(1, device=positions.device)
    try:
        with torch.no_grad():
            found = rotary(like, positions.unsqueeze(0), *([] if kind is None else [kind]))
    except (TypeError, RuntimeError, LookupError, ValueError) as error:
        raise _unknown(model, "wants more than positions") from error
    if isinstance(found, torch.Tensor) and found.is_complex():
        found = (found.real, found.imag)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise _unknown(model, "gives something else than cosines and sines")
    parts = [part.float().reshape(-1, *part.shape[-2:]) for part in found]
    if parts[0].shape[1] != len(positions) or any((part != part[:1]).any() for part in parts):
        raise _unknown(model, "gives more than one set of angles")
    return parts[0][0], parts[1][0]


def _once(cos: torch.Tensor, sin: torch.Tensor) -> slice | None:
    """The columns that hold each pair's angle once; None if the columns aren't angles of pairs."""
    columns = cos.shape[-1]
    if columns % 2:
        return slice(columns)
    half = columns // 2
    for one, other in (
        (slice(half), slice(half, columns)),
        (slice(0, columns, 2), slice(1, columns, 2)),
    ):
        if all(torch.allclose(t[:, one], t[:, other], atol=_ALIKE, rtol=0) for t in (cos, sin)):
            return one
    return slice(columns)


def _unknown(model: PreTrainedModel, what: str) -> EdgeInfiniteError:
    name = type(rotary_embedding(model.get_decoder())).__name__
    return EdgeInfiniteError(
        f"{type(model).__name__} isn't supported under --policy carry: {name} {what}; use --policy "
        "reencode"
    )
