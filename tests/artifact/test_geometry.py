"""The geometry as the manifest and session files hold it, with and without sliding windows."""

from __future__ import annotations

import msgspec
import pytest

from edgeinfinite.artifact.geometry import Geometry
from edgeinfinite.errors import EdgeInfiniteError

WINDOWS = (512, 0, 512, 0)


def hybrid(slots: int | tuple[int, ...] = 256, windows: tuple[int, ...] = WINDOWS) -> Geometry:
    return Geometry(128, 64, 448, "carry", slots, windows)


def test_where_no_layer_slides_the_manifest_doesnt_mention_it():
    plain = Geometry(128, 64, 448, "carry", 256)
    assert b"sliding" not in msgspec.json.encode(plain) and "sliding_windows" not in plain.to_dict()
    assert hybrid(windows=(0, 0, 0, 0)) == hybrid(windows=()) == plain


@pytest.mark.parametrize("geometry", [hybrid(), hybrid((0, 128, 0, 256)), Geometry()])
def test_it_is_read_as_it_was_written(geometry):
    assert msgspec.json.decode(msgspec.json.encode(geometry), type=Geometry) == geometry
    assert Geometry.from_dict(geometry.to_dict()) == geometry


def test_recall_slots_are_those_of_the_layers_that_see_everything():
    geometry = hybrid((128, 128, 0, 384))
    assert geometry.recall_slots == (0, 128, 0, 384)
    assert [geometry.slots_of(layer) for layer in range(4)] == [0, 128, 0, 384]
    assert (geometry.average_slots, geometry.most_slots, geometry.longest_layer) == (256, 384, 3)
    assert geometry.capacities(4) == [639, 768, 639, 1024]
    assert hybrid((0, 256, 0, 256)) == hybrid()
    assert (hybrid().longest_layer, hybrid().varies) == (1, False)


def test_windows_that_no_backbone_has_are_refused():
    with pytest.raises(EdgeInfiniteError, match="one must see everything"):
        hybrid(windows=(512, 512))
    with pytest.raises(EdgeInfiniteError, match="whole number"):
        hybrid(windows=(-1, 0))
    with pytest.raises(EdgeInfiniteError, match="doesn't know layers with sliding windows"):
        Geometry(sliding_windows=WINDOWS)
    with pytest.raises(EdgeInfiniteError, match="for 4 layers, the model has 5"):
        hybrid().capacities(5)
    with pytest.raises(EdgeInfiniteError, match="recall slots are given for 2 layers"):
        hybrid((128, 256))
