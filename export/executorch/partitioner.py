"""Which operators go to XNNPACK together: as few partitions as the order of the graph allows.

ExecuTorch's partitioner merges partitions pair by pair and searches the graph for cycles each time,
which for 30 layers takes longer than all the rest. Here every node gets a stage: how many times a
chain of operators up to it has come back to XNNPACK from an operator that isn't XNNPACK's. What is
of the same stage is one partition. No cycle can arise, and no division has fewer parts.
"""

from __future__ import annotations

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram
from torch.fx import Node

from edgeinfinite.export.executorch.passes.graph_tools import constant, is_constant, value_of


class StagePartitioner(Partitioner):
    """What XNNPACK's own partitioner would take, divided into stages."""

    def __init__(self) -> None:
        super().__init__()
        self._rules = XnnpackPartitioner()
        # Named so, the back end runs one of its 17 passes. Each traces the whole partition again,
        # and none of them has anything to do in a graph made of XNNPACK's own operators.
        spec = CompileSpec("dqlinear_partitioner", b"")
        self._spec = DelegationSpec(self._rules.delegation_spec.backend_id, [spec])

    def separate_constants(self, program: ExportedProgram) -> None:
        """Gives a constant that several stages read a twin in each; call it before lowering.

        XNNPACK wants its constants to itself. The file holds the data of all twins once.
        """
        stages = self._stages(program)
        for node in list(program.graph.nodes):
            if not is_constant(program, node):
                continue
            users: dict[int | None, list[Node]] = {}
            for user in node.users:
                users.setdefault(stages.get(user), []).append(user)
            for stage, readers in list(users.items())[1:]:
                twin = constant(program, f"{node.name}_{stage}", value_of(program, node))
                for reader in readers:
                    reader.replace_input_with(node, twin)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tags every node that XNNPACK takes with its stage."""
        tags = {}
        for node, stage in self._stages(exported_program).items():
            node.meta["delegation_tag"] = f"stage{stage}"
            tags[f"stage{stage}"] = self._spec
        tag_constant_data(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def _stages(self, program: ExportedProgram) -> dict[Node, int]:
        groups = self._rules.get_matched_nodes_from_configs(program)
        taken = {node for group in groups for node in group if node.op == "call_function"}
        return _latest_stages(program, taken)


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
    """For the nodes taken: the stage of the first one that needs the result.

    So what depends on inputs alone doesn't make a partition of its own in front of the others.
    """
    earliest = _earliest_stages(program, taken)
    latest: dict[Node, int] = {}
    for node in reversed(program.graph.nodes):
        if node in taken:
            needed = [latest.get(user, earliest.get(user)) for user in node.users]
            stages = [stage for stage in needed if stage is not None]
            latest[node] = min(stages, default=earliest[node])
    return latest
