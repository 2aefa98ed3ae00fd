"""How a model turns its keys with the position, learned from keys that it made itself.

Models of transformers turn halves of a head into each other, or neighbouring dimensions, all or
some of them, in either direction. Some multiply each channel afterwards, by the weight of a norm:
the norm's divisor doesn't change when a vector turns. All of them move a key k at position p by s:

    k(p - s) = w · R(-s) (k(p) / w)

Whatever else depends on the position is refused. Angles come from the model's own embedding
(`angles.py`); which pairs they turn, the direction and w from keys at many positions
(`key_probe.py`). What is learned from some tokens must hold for others.

Letters: n tokens, P positions, K KV heads, D head dimension, R rotated dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.recall.angles import Angles, angles_of, check_linear, kinds_of
from edgeinfinite.models.recall.key_probe import Seen, keys_at
from edgeinfinite.models.recall.rotary import Layout, RotaryTable
from edgeinfinite.models.weights.row_modules import compute_dtype

_MOST_ERROR = 1e-5
"""How exactly moved keys must be those that the model makes at the new position, in float32."""

_TOKENS, _LEARNED_FROM = 5, 3
_POSITIONS = (0, 1, 2, 3, 7, 11, 30, 100, 300, 1000, 3000, 10_000)
_MOST_GAIN = 1e4


@dataclass(frozen=True, eq=False)
class Movement:
    """How one layer turns its keys.

    Args:
        kind: which of the embedding's angles, see `kinds_of`.
        layout: which dimensions turn into each other; None if the layer has no RoPE.
        backwards: whether they turn the other way.
        gain: as in `RotaryTable`.
    """

    kind: str | None = None
    layout: Layout | None = None
    backwards: bool = False
    gain: torch.Tensor | None = None

    def turned(self, angles: Angles) -> Angles:
        """The embedding's angles of this kind in the layer's direction."""
        return Angles(angles.cos, -angles.sin) if self.backwards else angles


def rotary_tables(model: PreTrainedModel, positions: int) -> list[RotaryTable]:
    """One table per layer, from the model's own rotary embedding.

    Layers that turn alike share the table's tensors. How they turn is measured once a model.

    Args:
        model: a RoPE decoder that `attach` supports.
        positions: P, the cache's capacity.

    Raises:
        EdgeInfiniteError: the keys of some layer can't be moved by rotation.
    """
    movements = _movements(model, positions)
    every = torch.arange(positions, device=model.device)
    angles: dict[tuple[str | None, bool], Angles] = {}
    tables = []
    for found in movements:
        if found.layout is None:
            tables.append(RotaryTable(None, None))
            continue
        like = found.kind, found.backwards
        if like not in angles:
            angles[like] = found.turned(angles_of(model, found.kind, every))
            check_linear(model, angles[like])
        tables.append(RotaryTable(*angles[like], found.layout, found.gain))
    return tables


def measure_movements(model: PreTrainedModel, positions: int) -> list[Movement]:
    """Learns how every layer turns its keys, and stores it on the model.

    Args:
        model: a RoPE decoder that `attach` supports.
        positions: P; keys may stand at 0, ..., P - 1.

    Raises:
        EdgeInfiniteError: see `rotary_tables`; names the layer and what it does otherwise.
    """
    places = _places(positions)
    layers = keys_at(model, _TOKENS, places)
    limit = _limit(model)
    turns: dict[str | None, Angles] = {}
    found = []
    for layer, (seen, kind) in enumerate(zip(layers, kinds_of(model), strict=True)):
        movement: Movement | None = Movement()
        if _differs(seen.keys, seen.keys[:, :1]) > limit:
            if kind not in turns:  # an embedding may not know the types of layers without RoPE
                turns[kind] = angles_of(model, kind, torch.tensor(places, device=model.device))
            movement = _learned(seen.keys, kind, turns[kind], limit)
        if movement is None or _differs(seen.values, seen.values[:, :1]) > limit:
            raise _refusal(model, layer, seen, limit)
        found.append(movement)
    model.__dict__["edgeinfinite_movements"] = (positions, found)
    return found


def _movements(model: PreTrainedModel, positions: int) -> list[Movement]:
    """What was measured for as many positions or more; else it is measured now."""
    known: tuple[int, list[Movement]] | None = model.__dict__.get("edgeinfinite_movements")
    if known is None or known[0] < positions:
        return measure_movements(model, positions)
    return known[1]


def _places(positions: int) -> list[int]:
    """Some of 0, ..., `positions` - 1; the first and the last are among them."""
    last = positions - 1
    return sorted({*(place for place in _POSITIONS if place < last), max(last - 1, 0), last})


def _limit(model: PreTrainedModel) -> float:
    """The relative error that a moved key may have."""
    dtype = compute_dtype(model)
    return _MOST_ERROR if dtype == torch.float32 else 16 * torch.finfo(dtype).eps


def _learned(keys: torch.Tensor, kind: str | None, angles: Angles, limit: float) -> Movement | None:
    """The simplest movement that makes keys `[n, P, K, D]` of those at the first position."""
    for candidate in _candidates(keys[:_LEARNED_FROM], kind, angles):
        table = RotaryTable(*candidate.turned(angles), candidate.layout, candidate.gain)
        if _error(keys, table) <= limit:
            return candidate
    return None


def _candidates(keys: torch.Tensor, kind: str | None, angles: Angles) -> Iterator[Movement]:
    """Movements to try, the most common first."""
    half, dim = angles.cos.shape[-1], keys.shape[-1]
    starts = dict.fromkeys((0, dim - 2 * half)) if 2 * half <= dim else ()
    layouts = [Layout(start, apart) for start in starts for apart in (False, True)]
    for layout in layouts:
        for backwards in (False, True):
            yield Movement(kind, layout, backwards)
    for layout in layouts:
        ratio = _ratio(keys, layout, angles)
        if bool((ratio.abs().log() < torch.tensor(_MOST_GAIN).log()).all()):
            backwards = bool((ratio < 0).all())
            ratio = -ratio if backwards else ratio
            gain = torch.ones(dim, device=keys.device)
            first, second = layout.of(half)
            gain[first] = ratio.abs().sqrt() * ratio.sign()
            gain[second] = 1 / ratio.abs().sqrt()
            yield Movement(kind, layout, backwards, gain)


def _ratio(keys: torch.Tensor, layout: Layout, angles: Angles) -> torch.Tensor:
    """What both dimensions of a pair were multiplied with, first by second `[R / 2]`.

    With a and b before the turn and r the ratio, a key at an angle has the first dimension
    a cos - r b sin and the second b cos + (a / r) sin. Least squares give r and 1 / r.
    """
    a, b = (keys[:, :1][..., part].double() for part in layout.of(angles.cos.shape[-1]))
    first, second = (keys[..., part].double() for part in layout.of(angles.cos.shape[-1]))
    cos, sin = (of[:, None, :].double() for of in angles)
    every = (0, 1, 2)
    of_first = ((a * cos - first) * b * sin).sum(every) / (b * sin).square().sum(every)
    of_second = ((second - b * cos) * a * sin).sum(every) / (a * sin).square().sum(every)
    ratio = of_first.sign() * (of_first / of_second).abs().sqrt()
    turned = angles.sin.abs().amax(0) > 0  # a pair that never turns has any ratio
    return torch.where(turned, ratio, torch.ones_like(ratio)).float()


def _error(keys: torch.Tensor, table: RotaryTable) -> float:
    """The largest relative error of keys turned back to position 0; `[n, P, K, D]`."""
    rows = torch.arange(keys.shape[1], device=keys.device)
    back = table.shift_back(keys.transpose(1, 2), rows).transpose(1, 2)
    return _differs(back, keys[:, :1])


def _differs(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest distance of vectors `[n, P, K, D]`, relative to the length of those wanted."""
    length = wanted.norm(dim=-1).clamp(min=torch.finfo(torch.float32).tiny)
    error = ((found - wanted).norm(dim=-1) / length).max()
    return float(error.nan_to_num(nan=float("inf")))


def _refusal(model: PreTrainedModel, layer: int, seen: Seen, limit: float) -> EdgeInfiniteError:
    lengths = seen.keys.norm(dim=-1, keepdim=True)
    if _differs(seen.values, seen.values[:, :1]) > limit:
        reason = "values depend on the position"
    elif _differs(lengths, lengths[:, :1]) > limit:
        reason = (
            "keys change their length with the position, and no weight of a channel explains it"
        )
    else:
        reason = "keys don't turn by the angles of its rotary embedding"
    return EdgeInfiniteError(
        f"{type(model).__name__} isn't supported under --policy carry, which moves keys to other "
        f"positions: in layer {layer} {reason}; use --policy reencode"
    )
