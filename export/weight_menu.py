"""What a back end can do with weights: for `export.mixing` to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from edgeinfinite.export.recipes import WeightFormat
from edgeinfinite.export.scale_type import ScaleType


@dataclass(frozen=True)
class WeightMenu:
    """The formats of a back end's weights, and what speaks for one of them.

    Args:
        formats: what a weight may be rounded to.
        embedding_formats: the same for an embedding, whether it is the LM head's weight or not.
        scale_type: how the scales of groups are stored.
        leading_shares: shares of a weight's inputs that may have 8 bits where the others have 4
            (`leading` of `WeightFormat`).
        offsets_read: bytes that decoding a token reads in the time that the sums for offsets take.
            Weights that read the same inputs share them.
        rounds_by_token: whether a layer's inputs are rounded on one scale a token, so that a large
            channel costs the precision of all others.
        reads_stored: whether a model whose weights are in half precision is quantized
            (`models.row_modules`).
    """

    formats: tuple[WeightFormat, ...]
    embedding_formats: tuple[WeightFormat, ...]
    scale_type: ScaleType
    leading_shares: tuple[float, ...] = ()
    offsets_read: int = 0
    rounds_by_token: bool = False
    reads_stored: bool = False
