"""Computes the methods of a written program, instruction by instruction, with PyTorch.

Kernels are PyTorch's operators of the same names; `xnnpack.XnnpackGraph` is for XNNPACK's parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from executorch.exir import schema
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.tensor import scalar_type_table

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.executorch.exact.xnnpack import UnknownPart, XnnpackGraph

_DTYPES = {number: dtype for dtype, number in scalar_type_table.items()}


class ExactProgram:
    """A program's methods.

    Args:
        path: the `.pte`.

    Raises:
        EdgeInfiniteError: it isn't one that this version's ExecuTorch reads.
    """

    def __init__(self, path: Path) -> None:
        try:
            file = deserialize_pte_binary(path.read_bytes())
        except Exception as error:  # ExecuTorch's reader raises whatever the bytes lead it to
            raise EdgeInfiniteError(f"{path} can't be read: {error}; export it again") from error
        data = file.named_data
        self.named = (
            {}
            if data is None
            else {key: data.buffers[entry.buffer_index] for key, entry in data.pte_data.items()}
        )
        self.program = file.program
        self._plans = {plan.name: plan for plan in self.program.execution_plan}

    def method(self, name: str) -> ExactMethod:
        """One of its methods."""
        return ExactMethod(self, self._plans[name])


class ExactMethod:
    """One method; `call` is that of ExecuTorch's runtime."""

    def __init__(self, owner: ExactProgram, plan: schema.ExecutionPlan) -> None:
        program = owner.program
        self._plan = plan
        self._operators = [_operator(one.name, one.overload) for one in plan.operators]
        self.delegates = [
            XnnpackGraph(
                bytes(program.backend_delegate_data[one.processed.index].data), owner.named
            )
            for one in plan.delegates
        ]
        self.fixed = {
            number: value
            for number, one in enumerate(plan.values)
            for value in [_fixed(one.val, owner)]
            if value is not None
        }

    def call(self, inputs: Sequence[Any], clone_outputs: bool = True) -> list[torch.Tensor]:
        """Computes the method.

        Args:
            inputs: tensors; caches are changed in place.
            clone_outputs: as of ExecuTorch's; the outputs are new tensors anyway.
        """
        values = dict(self.fixed)
        values.update(zip(self._plan.inputs, inputs, strict=True))
        for chain in self._plan.chains:
            for instruction in chain.instructions:
                self._compute(instruction.instr_args, values)
        return [values[number] for number in self._plan.outputs]

    def _compute(self, step: Any, values: dict[int, Any]) -> None:
        if isinstance(step, schema.DelegateCall):
            given = [values.get(number) for number in step.args]
            for place, result in self.delegates[step.delegate_index](given).items():
                values[step.args[place]] = result
        elif isinstance(step, schema.KernelCall):
            results = self._operators[step.op_index](
                [self._value(number, values) for number in step.args]
            )
            for place, result in results.items():
                values[step.args[place]] = result
        elif not isinstance(step, schema.FreeCall):
            raise UnknownPart(type(step).__name__)

    def _value(self, number: int, values: dict[int, Any]) -> Any:
        """An argument: a tensor, a number, a list of them or None; of an output its type.

        Where an output goes nothing stands yet, as each value is computed once.
        """
        if number in values:
            return values[number]
        value = self._plan.values[number].val
        if isinstance(value, schema.IntList):
            return [values[item] for item in value.items]
        if isinstance(value, schema.TensorList):  # also the one that several outputs go to
            return [values.get(item) for item in value.items]
        if isinstance(value, schema.OptionalTensorList):
            return [None if item < 0 else values[item] for item in value.items]
        if isinstance(value, schema.Tensor):
            return _DTYPES[value.scalar_type]
        return None


Kernel = Callable[[list[Any]], dict[int, Any]]
"""Takes an instruction's arguments; returns its results by place."""


def _operator(name: str, overload: str) -> Kernel:
    full = f"{name}.{overload}"
    if full in _OWN:
        return _OWN[full]
    space, _, short = name.partition("::")
    try:
        operator = getattr(getattr(torch.ops, space), short)
        chosen = getattr(operator, overload or "default")
    except AttributeError:
        raise UnknownPart(full) from None
    arguments = list(enumerate(chosen._schema.arguments))
    outs = [place for place, one in arguments if one.is_out]

    def kernel(given: list[Any]) -> dict[int, Any]:
        positional = [given[place] for place, one in arguments if not one.kwarg_only]
        named = {one.name: given[place] for place, one in arguments if one.kwarg_only}
        for place in outs:
            named[arguments[place][1].name] = torch.empty(0, dtype=given[place])
        result = chosen(*positional, **named)
        if not outs:
            return {len(arguments): result}
        return dict(zip(outs, result if len(outs) > 1 else [result], strict=True))

    return kernel


def _fixed(value: Any, owner: ExactProgram) -> Any:
    """A number, or a constant tensor; None for all that is computed."""
    for kind, field in (
        (schema.Int, "int_val"),
        (schema.Bool, "bool_val"),
        (schema.Double, "double_val"),
        (schema.String, "string_val"),
    ):
        if isinstance(value, kind):
            found = getattr(value, field)
            return float(found) if kind is schema.Double else found
    if isinstance(value, schema.BoolList | schema.DoubleList):
        return list(value.items)
    if not isinstance(value, schema.Tensor) or value.allocation_info is not None:
        return None
    extra = value.extra_tensor_info
    if extra is not None and extra.fully_qualified_name in owner.named:
        raw = owner.named[extra.fully_qualified_name]
    elif value.data_buffer_idx:
        raw = owner.program.constant_buffer[value.data_buffer_idx].storage
    else:
        return None
    flat = torch.frombuffer(bytearray(raw), dtype=_DTYPES[value.scalar_type])
    sizes = list(value.sizes)
    return flat[: torch.Size(sizes).numel()].reshape(sizes)


def _update_cache(given: list[Any]) -> dict[int, Any]:
    """`llama::update_cache(value, cache, start_pos)`, caches `[B, C, K, D]`."""
    value, cache, start = given[:3]
    cache[:, start : start + value.shape[1]] = value
    return {}


def _embedding_byte(given: list[Any]) -> dict[int, Any]:
    """Rows of 8 bits: scales a row or a group of it."""
    weight, scales, zeros, _, _, indices = given[:6]
    rows, scale = weight[indices].float(), scales[indices].float()
    scale = scale.reshape(*indices.shape, -1, 1)
    rows = rows.reshape(*indices.shape, scale.shape[-2], -1)
    if zeros is not None:
        rows = rows - zeros[indices].float().reshape(scale.shape)
    return {6: (rows * scale).flatten(-2)}


def _gated_delta_rule(given: list[Any]) -> dict[int, Any]:
    """ExecuTorch's own kernel: it wants outputs of the right sizes, which its twin makes."""
    result, state = torch.ops.llama.channelwise_gated_delta_rule(*given[:6])
    return {6: result, 7: state}


def _to_dim_order_copy(given: list[Any]) -> dict[int, Any]:
    return {3: given[0].to(given[3], copy=True)}


_OWN: dict[str, Kernel] = {
    "llama::channelwise_gated_delta_rule.out": _gated_delta_rule,
    "llama::update_cache.out": _update_cache,
    "quantized_decomposed::embedding_byte.out": _embedding_byte,
    "dim_order_ops::_to_dim_order_copy.out": _to_dim_order_copy,
}
