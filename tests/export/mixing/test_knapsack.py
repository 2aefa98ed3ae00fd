"""One choice a weight, within a size or a loss."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.mixing.knapsack import Choice, bytes_read, within_bytes, within_loss

CHOICES = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(
        st.builds(
            Choice,
            st.sampled_from("4568"),
            st.integers(1, 1000),
            st.floats(0, 1),
            st.integers(0, 999),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda choice: choice.format,
    ),
    min_size=1,
)


def totals(mix: dict[str, Choice]) -> tuple[int, float]:
    return sum(c.bytes for c in mix.values()), sum(c.loss for c in mix.values())


@given(CHOICES, st.integers(1, 4000))
def test_a_mix_never_exceeds_its_size_and_loses_no_more_than_the_smallest(choices, size):
    smallest = {name: min(c, key=lambda o: (o.bytes, o.loss)) for name, c in choices.items()}
    if totals(smallest)[0] > size:
        with pytest.raises(EdgeInfiniteError, match="at least"):
            within_bytes(choices, size)
        return
    mix = within_bytes(choices, size)
    assert set(mix) == set(choices)
    assert totals(mix)[0] <= size
    assert totals(mix)[1] <= totals(smallest)[1] + 1e-12


@given(CHOICES, st.integers(1, 4000), st.integers(0, 4000))
def test_a_mix_never_reads_more_than_it_may(choices, size, read):
    try:
        mix = within_bytes(choices, size, read)
    except EdgeInfiniteError:
        smallest = {n: min(c, key=lambda o: (o.bytes, o.loss)) for n, c in choices.items()}
        assert totals(smallest)[0] > size or bytes_read(smallest) > read
        return
    assert bytes_read(mix) <= read and totals(mix)[0] <= size
    assert all(mix[name] in options for name, options in choices.items())


@given(CHOICES)
def test_with_bytes_for_everything_every_weight_gets_its_best_format(choices):
    mix = within_bytes(choices, 10**6)
    assert totals(mix)[1] == pytest.approx(sum(min(o.loss for o in c) for c in choices.values()))


@given(CHOICES, st.floats(0, 4))
def test_a_mix_never_exceeds_its_loss(choices, loss):
    best = sum(min(o.loss for o in c) for c in choices.values())
    assume(abs(best - loss) > 1e-9)  # sums are rounded
    if best > loss:
        with pytest.raises(EdgeInfiniteError, match="the best loses"):
            within_loss(choices, loss)
        return
    assert totals(within_loss(choices, loss))[1] <= loss + 1e-9


def test_it_is_near_the_best_of_all_mixes_that_read_as_little():
    choices = {
        name: [
            Choice("4", 4 * n, 1.0 * s, 4 * n),
            Choice("6", 6 * n, s / 16, 8 * n),
            Choice("8", 8 * n, s / 256, 8 * n),
        ]
        for name, n, s in (
            ("a", 10, 0.5),
            ("b", 20, 0.1),
            ("c", 5, 0.9),
            ("d", 40, 0.05),
            ("e", 8, 0.3),
            ("f", 12, 0.2),
        )
    }
    every = [dict(zip(choices, mix, strict=True)) for mix in product(*choices.values())]
    for size, read in product(range(400, 760, 60), range(400, 760, 60)):
        kept = [totals(m)[1] for m in every if totals(m)[0] <= size and bytes_read(m) <= read]
        assert totals(within_bytes(choices, size, read))[1] <= 1.6 * min(kept)


def test_it_is_near_the_best_of_all_mixes():
    choices = {
        name: [Choice("4", 4 * n, 1.0 * s), Choice("5", 5 * n, s / 4), Choice("8", 8 * n, s / 256)]
        for name, n, s in (("a", 10, 0.5), ("b", 20, 0.1), ("c", 5, 0.9), ("d", 40, 0.05))
    }
    for size in range(310, 600, 20):
        every = [totals(dict(zip(choices, mix, strict=True))) for mix in product(*choices.values())]
        best = min(loss for spent, loss in every if spent <= size)
        assert totals(within_bytes(choices, size))[1] <= 1.6 * best
