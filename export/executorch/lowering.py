"""Lowers exported programs to one `.pte`: XNNPACK takes what it can, weights are stored once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from executorch import exir
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge_transform_and_lower,
)
from executorch.exir.passes import MemoryPlanningPass
from torch.export import ExportedProgram

from edgeinfinite.artifact.tensors import COMPRESS
from edgeinfinite.export.executorch.edge import COMPILE_CONFIG, to_edge, unknown_operators
from edgeinfinite.export.executorch.partitioner import StagePartitioner
from edgeinfinite.export.executorch.passes.graph_tools import finish, replace
from edgeinfinite.export.executorch.passes.in_place_caches import in_place_caches
from edgeinfinite.export.executorch.passes.without_assertions import without_assertions
from edgeinfinite.export.executorch.sharing import share_segments
from edgeinfinite.export.executorch.shortcuts import known_delegates, no_linears_to_find
from edgeinfinite.export.executorch.slices import inferred_sizes

_LOG = logging.getLogger(__name__)


def lower(programs: dict[str, ExportedProgram]) -> EdgeProgramManager:
    """Lowers all methods together, so that a weight that two of them use is stored once.

    Args:
        programs: after `passes.run_passes`, by method.
    """
    large = [program for name, program in programs.items() if name != COMPRESS]
    unknown = set().union(*map(unknown_operators, large))
    if not unknown:
        edges = {name: _edge(program) for name, program in programs.items()}
        partitioner = StagePartitioner()
        for program in edges.values():
            partitioner.separate_constants(program)
        manager = EdgeProgramManager(edges, compile_config=COMPILE_CONFIG)
        with no_linears_to_find(), inferred_sizes():
            manager = manager.to_backend(partitioner)
    else:
        _LOG.warning("lowering the long way, for %s", ", ".join(sorted(unknown)))
        manager = to_edge_transform_and_lower(
            programs, partitioner=[XnnpackPartitioner()], compile_config=COMPILE_CONFIG
        )
    for name in programs:
        program = manager.exported_program(name)
        without_assertions(program)
        in_place_caches(program)
    return manager


def _edge(program: ExportedProgram) -> ExportedProgram:
    """Uses our table, or ExecuTorch itself for a `compress_memory` that has other operators."""
    if not unknown_operators(program):
        return to_edge(program)
    edge = exir.to_edge(program, compile_config=COMPILE_CONFIG).exported_program()
    for node in list(edge.graph.nodes):
        if "_clone_dim_order" in str(node.target):  # the dialect's tensors are contiguous already
            replace(node, node.args[0])
    finish(edge)
    return edge


def write_program(manager: EdgeProgramManager, path: Path) -> Any:
    """Plans memory and writes the program.

    The plan has no memory for inputs, because the runtime uses the caller's.

    Returns:
        ExecuTorch's manager of the program, for the report.
    """
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False),
        extract_delegate_segments=True,
    )
    with known_delegates():
        program = manager.to_executorch(config)
    with path.open("wb") as file:
        program.write_to_file(file)
    share_segments(path)
    return program
