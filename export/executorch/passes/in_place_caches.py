"""Lets `llama::update_cache` write into the caller's tensors, without copies; runs after lowering.

PyTorch exports programs without side effects: a cache that is written becomes a new tensor, which
is copied back into the input at the end. That is 60 copies of a whole cache per call. The operator
itself writes in place, so the input replaces the new tensor and the copies are removed. Attention
may read a cache before or after the new rows are written, because it masks slots from `length` on.
"""

from __future__ import annotations

import operator

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind
from torch.fx import Node

_FUNCTIONAL = torch.ops.higher_order.auto_functionalized_v2


def in_place_caches(program: ExportedProgram) -> int:
    """Calls the operators on the inputs themselves and drops the `USER_INPUT_MUTATION` outputs.

    Args:
        program: lowered; changed in place.

    Returns:
        How many caches are written in place.
    """
    graph = program.graph
    written = 0
    for node in list(graph.nodes):
        if node.target is _FUNCTIONAL:
            _call_in_place(node)
            written += 1
    _drop_mutation_outputs(program)
    for node in reversed(list(graph.nodes)):
        if not node.users and "copy" in str(node.target) and node.op == "call_function":
            graph.erase_node(node)
    graph.lint()
    program.graph_module.recompile()
    return written


def _call_in_place(node: Node) -> None:
    """update_cache(value, cache, start) on the cache that the functional form names as its base."""
    target = node.args[0]
    arguments = dict(node.kwargs)
    bases: list[Node] = arguments.pop("_all_bases")
    cache = bases[arguments.pop("_cache_base_index")]
    with node.graph.inserting_before(node):
        call = node.graph.call_function(target, (arguments["value"], cache, arguments["start_pos"]))
    call.meta = dict(node.meta) | {"val": node.meta["val"][0]}
    for user in list(node.users):
        assert user.target is operator.getitem
        if user.args[1] == 0:
            user.replace_all_uses_with(call)
        else:
            user.replace_all_uses_with(cache)
        node.graph.erase_node(user)
    node.graph.erase_node(node)


def _drop_mutation_outputs(program: ExportedProgram) -> None:
    output = next(iter(reversed(program.graph.nodes)))
    specs = program.graph_signature.output_specs
    kept = [i for i, s in enumerate(specs) if s.kind != OutputKind.USER_INPUT_MUTATION]
    output.args = (tuple(output.args[0][i] for i in kept),)
    program._graph_signature = ExportGraphSignature(
        program.graph_signature.input_specs, [specs[i] for i in kept]
    )
