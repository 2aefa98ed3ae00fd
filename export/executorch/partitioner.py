"""Groups operators into as few XNNPACK partitions as the order of the graph allows.

ExecuTorch's partitioner merges partitions pair by pair and searches the graph for cycles each time.
For 30 layers this takes longer than all the rest of the export. Here every node gets a stage: how
often a chain of operators up to the node returns to XNNPACK from an operator that isn't XNNPACK's.
All nodes of one stage form one partition. No cycle can arise, and no other division has fewer
partitions.
"""

from __future__ import annotations

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.utils.quant_utils import is_dequant
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import constant, is_constant, value_of
from edgeinfinite.export.executorch.shortcuts import remembered_weights
from edgeinfinite.export.executorch.slices import is_part_of_input


class StagePartitioner(Partitioner):
    """Takes the operators that XNNPACK's own partitioner takes, and divides them into stages."""

    def __init__(self) -> None:
        super().__init__()
        self._rules = XnnpackPartitioner()
        # With this name the back end runs one of its 17 passes. Each pass traces the whole
        # partition again, and none changes a graph of XNNPACK's own operators.
        spec = CompileSpec("dqlinear_partitioner", b"")
        self._spec = DelegationSpec(self._rules.delegation_spec.backend_id, [spec])

    def separate_constants(self, program: ExportedProgram) -> None:
        """Gives every stage its own copy of a weight that several stages read.

        Call it before lowering: XNNPACK's partitions can't share a weight. The file holds the data
        of all copies once.
        """
        stages, weights = self._matched(program)
        for node in weights:
            users: dict[int | None, list[Node]] = {}
            for user in node.users:
                users.setdefault(stages.get(user), []).append(user)
            for stage, readers in list(users.items())[1:]:
                twin = constant(program, f"{node.name}_{stage}", value_of(program, node))
                for reader in readers:
                    reader.replace_input_with(node, twin)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tags every node that XNNPACK takes with its stage, and the weights that it packs.

        Other constants stay in the program and are inputs of XNNPACK's part: when methods share
        packed weights (`runtime_py/engines/xnnpack_options.py`), XNNPACK 1.4 forgets the constants
        that it hasn't packed, and crashes.
        """
        tags = {}
        stages, weights = self._matched(exported_program)
        for node, stage in stages.items():
            node.meta["delegation_tag"] = f"stage{stage}"
            tags[f"stage{stage}"] = self._spec
        for node in weights:
            node.meta["delegation_tag"] = f"stage{stages[next(iter(node.users))]}"
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def _matched(self, program: ExportedProgram) -> tuple[dict[Node, int], list[Node]]:
        """Stages of the operators that XNNPACK takes, and the constants that it packs for them."""
        with remembered_weights(program):
            groups = self._rules.get_matched_nodes_from_configs(program)
            matched = dict.fromkeys(node for group in groups for node in group)
            taken = {node for node in matched if node.op == "call_function"}
            nodes = program.graph.nodes
            taken.update(node for node in nodes if _is_product_with_rows(program, node))
            taken.update(node for node in nodes if is_part_of_input(node))
            weights = [node for node in matched if is_constant(program, node)]
        return _latest_stages(program, taken), weights


def _is_product_with_rows(program: ExportedProgram, node: Node) -> bool:
    """Whether a node is `linear(x, y)` with a computed y: a product with y's rows.

    XNNPACK can run it. Its own partitioner takes it only with an option that turns all weights into
    inputs.
    """
    if node.target is not exir_ops.edge.aten.linear.default or len(node.args) > 2:
        return False
    rows = node.args[1]
    computed = isinstance(rows, Node) and rows.op == "call_function" and not is_dequant(rows)
    return computed and (
        _is_cut_by_tokens(rows)
        or not any(is_constant(program, source) for source in rows.all_input_nodes)
    )


def _is_cut_by_tokens(rows: Node) -> bool:
    """Whether the number of tokens says how much of something is taken."""
    sliced = rows.target is exir_ops.edge.aten.slice_copy.Tensor
    return sliced and any(isinstance(bound, Node) for bound in rows.args[2:])


def _earliest_stages(program: ExportedProgram, taken: set[Node]) -> dict[Node, int]:
    stages: dict[Node, int] = {}
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        before = [other for other in node.all_input_nodes if other in stages]
        stages[node] = max(
            (stages[other] + (node in taken and other not in taken) for other in before), default=0
        )
    return stages


def _latest_stages(program: ExportedProgram, taken: set[Node]) -> dict[Node, int]:
    """Moves each node that XNNPACK takes to the stage of the first node that needs its result.

    So nodes that depend on inputs alone don't make an extra partition in front of the others.
    """
    earliest = _earliest_stages(program, taken)
    latest: dict[Node, int] = {}
    for node in reversed(program.graph.nodes):
        if node in taken:
            needed = [latest.get(user, earliest.get(user)) for user in node.users]
            stages = [stage for stage in needed if stage is not None]
            latest[node] = min(stages, default=earliest[node])
    return _beside_their_rounding(program, latest)


def _beside_their_rounding(program: ExportedProgram, stages: dict[Node, int]) -> dict[Node, int]:
    """Moves layers to the stage in which their shared input is rounded.

    XNNPACK takes a layer with rounded weights only in one part with the rounding of its input, and
    another of the layers may be needed earlier, as V is where only Q and K wait for their angles.
    """
    for node in program.graph.nodes:
        inputs = [source for source in node.all_input_nodes if source in stages]
        rounded = [source for source in inputs if is_dequant(source) and _is_computed(source)]
        if node not in stages or not rounded:
            continue
        stages[node] = min(stages[source] for source in rounded)
        for source in set(inputs) - set(rounded):
            if is_dequant(source):  # its weights
                stages[source] = stages[node]
    return stages


def _is_computed(dequantized: Node) -> bool:
    source = dequantized.args[0]
    return isinstance(source, Node) and source.op == "call_function"
