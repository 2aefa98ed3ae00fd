"""Passes that let XNNPACK take the whole transformers graph. None changes a result."""

from __future__ import annotations

from torch.export import ExportedProgram

from edgeinfinite.export.executorch.passes.elu_as_exp import elu_as_exp
from edgeinfinite.export.executorch.passes.folded_constants import folded_constants
from edgeinfinite.export.executorch.passes.folded_numbers import folded_numbers
from edgeinfinite.export.executorch.passes.gelu_as_sigmoid import gelu_as_sigmoid
from edgeinfinite.export.executorch.passes.graph_tools import finish, tidy
from edgeinfinite.export.executorch.passes.joins_of_few import joins_of_few
from edgeinfinite.export.executorch.passes.last_token_first import last_token_first
from edgeinfinite.export.executorch.passes.layer_norm_as_means import layer_norm_as_means
from edgeinfinite.export.executorch.passes.matmul_as_bmm import matmul_as_bmm
from edgeinfinite.export.executorch.passes.powers_as_roots import powers_as_roots
from edgeinfinite.export.executorch.passes.recurrent_layers import recurrent_layers
from edgeinfinite.export.executorch.passes.reductions_as_products import reductions_as_products
from edgeinfinite.export.executorch.passes.results_of_their_own import results_of_their_own
from edgeinfinite.export.executorch.passes.rotation_as_product import rotation_as_product
from edgeinfinite.export.executorch.passes.shapes_as_views import shapes_as_views
from edgeinfinite.export.executorch.passes.shared_inputs import shared_inputs
from edgeinfinite.export.executorch.passes.short_convolutions import short_convolutions
from edgeinfinite.export.executorch.passes.sort_as_topk import sort_as_topk
from edgeinfinite.export.executorch.passes.streams import streams
from edgeinfinite.export.executorch.passes.unused_constants import unused_constants
from edgeinfinite.export.executorch.passes.without_assertions import without_assertions

PASSES = (
    without_assertions,
    folded_numbers,
    results_of_their_own,
    powers_as_roots,
    streams,
    folded_constants,
    recurrent_layers,
    shared_inputs,
    short_convolutions,
    layer_norm_as_means,
    last_token_first,
    reductions_as_products,
    elu_as_exp,
    gelu_as_sigmoid,
    rotation_as_product,
    matmul_as_bmm,
    shapes_as_views,
    sort_as_topk,
    joins_of_few,
    unused_constants,
)

_OF_SOME = (folded_numbers, powers_as_roots, recurrent_layers, results_of_their_own, streams)
"""Those for layers that few models have: the manifest names them where they found any."""


def run_passes(program: ExportedProgram) -> dict[str, int]:
    """Runs all passes.

    Args:
        program: as `torch.export.export` returns it; changed in place.

    Returns:
        How many places each pass rewrote, by its name.
    """
    found = {}
    for rewrite in PASSES:
        count = rewrite(program)
        if count or rewrite not in _OF_SOME:
            found[rewrite.__name__] = count
        tidy(program)
    finish(program)
    return found
