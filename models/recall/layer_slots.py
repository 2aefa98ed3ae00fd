"""Recall slots by head or by layer: what retrieves gets more, with the same total bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

OTHERS_SHARE = 0.5
"""Slots of the other heads or layers as a share of the average. They act as a longer window, which
ordinary text needs. If a third of the layers retrieve, those get twice the average
(experiments/recall.md)."""

COPYING_SHARE = 1 / 6
"""Share of all heads that copy: the first of the retrieval heads. A model that repeats a text looks
for nearly every token with them, and for few with any other head (experiments/recall.md)."""

MOST_COPYING = 3840
"""A copying head gets up to this many slots before the streaming heads get more than their share.
With more, facts are drowned out as with full attention (experiments/recall.md)."""

MOST_RETRIEVAL = 2048
"""A retrieval layer gets twice the average up to this many slots: with more, recall of facts gets
worse (experiments/recall.md)."""

LEAST_RETRIEVAL = (6, 5)
"""Slots that a retrieval layer always gets, as a fraction of the average: on ordinary text it needs
to look further back than others. At 1,920 slots, 16/15 costs text 0.001 nats per token more, and
19/15 costs facts planted in 4,000 tokens 0.05 nats per token more (experiments/recall.md)."""


def most_slots_of_retrieval(average: int) -> int:
    """The largest G of a retrieval layer, for a given average G; not rounded to a multiple."""
    numerator, denominator = LEAST_RETRIEVAL
    return max(MOST_RETRIEVAL, average * numerator // denominator)


def slots_by_layer(
    retrieval: Sequence[int], layers: int, average: int, step: int, most: int
) -> tuple[int, ...]:
    """G of every layer; their mean is `average`, or less if `most` limits it.

    Args:
        retrieval: layers with retrieval heads, the most important first; the first ones get the
            remainder.
        layers: L.
        average: G that the layers have on average, a multiple of `step`.
        step: the segment length N; every G is a multiple of it.
        most: the largest G of any layer, limited by recall quality and by the backbone's positions.
    """
    others = [layer for layer in range(layers) if layer not in retrieval]
    stages = ((retrieval, most), (others, most))
    return _divided([1] * layers, stages, average, step, average * layers)


Cache = tuple[int, ...]
"""Slots, layer, and KV heads of one cache, as in `GeometryOptions.recall_slots`."""


def slots_by_head(
    retrieval: Sequence[tuple[int, int]],
    layers: int,
    kv_heads: int,
    average: int,
    step: int,
    most: int,
    total: int | None = None,
) -> tuple[Cache, ...]:
    """The caches of every layer.

    The retrieval heads get slots first, up to `most_slots_of_retrieval`, those of them that copy
    before the others; then the copying heads up to `MOST_COPYING`; then the streaming heads. An
    attention operator has as many slots for each of its heads, and a cache more costs a token time.
    So a layer has at most two caches.

    Args:
        retrieval: layer and KV head of each retrieval head, the most important first.
        layers, kv_heads: L and K.
        average: G that the heads have on average, a multiple of `step`; they have less if `most`
            limits it, or if less is left over than a cache with several heads takes.
        step, most: as for `slots_by_layer`.
        total: slots of all heads together; None takes the average in each.
    """
    copying = set(retrieval[: max(1, round(COPYING_SHARE * layers * kv_heads))])
    caches = _grouped(set(retrieval), copying, layers, kv_heads)
    retrieves = [i for i, (layer, heads) in enumerate(caches) if _any(layer, heads, retrieval)]
    copies = [i for i in retrieves if (caches[i][0], caches[i][1][0]) in copying]
    every = range(len(caches))
    useful = min(most, most_slots_of_retrieval(average))
    stages = (
        (copies, useful),
        (retrieves, useful),
        (copies, min(most, MOST_COPYING)),
        ([cache for cache in every if cache not in retrieves], useful),
        (every, most),
    )
    total = average * layers * kv_heads if total is None else total
    slots = _divided([len(heads) for _, heads in caches], stages, average, step, total)
    return _merged([(g, layer, *heads) for g, (layer, heads) in zip(slots, caches, strict=True)])


def _any(layer: int, heads: Sequence[int], named: Collection[tuple[int, int]]) -> bool:
    return any((layer, head) in named for head in heads)


def _grouped(
    retrieval: Collection[tuple[int, int]],
    copying: Collection[tuple[int, int]],
    layers: int,
    kv_heads: int,
) -> list[tuple[int, tuple[int, ...]]]:
    """Layer and KV heads of each cache: a layer's copying heads apart, else its retrieval heads."""
    caches = []
    for layer in range(layers):
        every = range(kv_heads)
        apart = copying if _any(layer, every, copying) else retrieval
        groups = (
            tuple(head for head in every if ((layer, head) in apart) == kind)
            for kind in (True, False)
        )
        caches += sorted((layer, heads) for heads in groups if heads)
    return caches


def _merged(caches: Sequence[Cache]) -> tuple[Cache, ...]:
    """Makes one cache of those of a layer that have as many slots."""
    merged: dict[tuple[int, int], list[int]] = {}
    for slots, layer, *heads in caches:
        merged.setdefault((layer, slots), []).extend(heads)
    return tuple((slots, layer, *sorted(heads)) for (layer, slots), heads in merged.items())


def _divided(
    weights: Sequence[int],
    stages: Sequence[tuple[Sequence[int], int]],
    average: int,
    step: int,
    total: int,
) -> tuple[int, ...]:
    """Slots of caches; those of a cache count as often as its weight says.

    Args:
        weights: of the caches.
        stages: one after the other, which caches get more, in turn, and up to how many.
        average, step: see `slots_by_layer`; each cache has at least `OTHERS_SHARE` of the average.
        total: what all have together.
    """
    largest = max(most for _, most in stages)
    steps = [min(int(OTHERS_SHARE * average), largest) // step] * len(weights)
    left = total // step - steps[0] * sum(weights)
    for group, most in stages:
        for cache in _in_turn(group, steps, most // step):
            if weights[cache] > left:
                break
            steps[cache] += 1
            left -= weights[cache]
    return tuple(step * number for number in steps)


def _in_turn(group: Sequence[int], steps: Sequence[int], most: int) -> Iterator[int]:
    """Round after round the caches of a group that have less than `most` steps by then."""
    while growing := [cache for cache in group if steps[cache] < most]:
        yield from growing
