"""Attends to an int8 cache in float32 when many tokens are read at once.

For every new token onnxruntime's GroupQueryAttention takes the bytes of the cache apart anew. One
token waits for less memory that way, 128 tokens take four times as long as with a float16 cache.
So for many tokens the cache becomes float32 once. Its scales s stay where they cost least:

    q · (s_k ∘ codes) = (q ∘ s_k) · codes        p · (codes ∘ s_v) = (p · codes) ∘ s_v

New pairs are rounded as the operator rounds them, and written into the cache in place. A layer
that reads the cache of another (`OnnxState`) has no new pairs; where it reads for the newest token
alone, it stays as it is. Letters: T new tokens, H query heads, K KV heads, G = H / K, C capacity, D
head dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from edgeinfinite.models.int8_cache.scales import LARGEST_CODE, LEAST_CODE

FEW_TOKENS = 8
"""Up to so many are attended by the operator for int8 caches. With 2,000 slots, 9 query and 3 KV
heads it takes 0.13 ms a token, the float32 way 1 ms and 0.025 ms a token."""

_FIRST_SCALES = 12
"""Inputs 12 and 13 of GroupQueryAttention: the scales of K and V, `[1, K, 1, D]`."""

_SINKS = 11
"""Its input of learned sinks, `[H]`."""

_OF_INT8 = ("k_quant", "v_quant", "kv_cache")
"""How the names of its attributes for int8 caches begin."""


def float_prefill_of_int8(model: ir.Model) -> int:
    """Gives every attention over an int8 cache the second way, and an If that chooses.

    Returns:
        In how many layers.
    """
    nodes = [
        node
        for node in model.graph
        if node.op_type == "GroupQueryAttention"
        and "kv_cache_bit_width" in node.attributes
        and not (_writes_nothing(node) and _tokens_of(node) == 1)
    ]
    if nodes:
        shared = _Shared(model.graph, nodes[0])
        for number, node in enumerate(nodes):
            _choose(shared, node, f"int8_{number}")
    return len(nodes)


def keep_few_tokens_way(model: onnx.ModelProto) -> None:
    """Puts the way for few tokens in place of each choice, for a graph that reads one token."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "If":
            nodes.append(node)
            continue
        graph = next(a.g for a in node.attribute if a.name == "else_branch")
        names = dict(zip((v.name for v in graph.output), node.output, strict=True))
        for inner in graph.node:
            inner.name = ""  # unique in the branch alone
            inner.output[:] = [names.get(name, name) for name in inner.output]
            nodes.append(inner)
    used, kept = {value.name for value in model.graph.output}, []
    for node in reversed(nodes):  # what nothing reads any more: whether there are many tokens
        if used.intersection(node.output):
            used.update(node.input)
            kept.append(node)
    constants = [value for value in model.graph.initializer if value.name in used]
    for values, left in ((model.graph.node, kept[::-1]), (model.graph.initializer, constants)):
        del values[:]
        values.extend(left)


class _Shared:
    """What all layers use: constants, T, and whether it is large.

    Args:
        graph: the graph of prefill and decode.
        first: its first attention; what is computed once goes before it.
    """

    def __init__(self, graph: ir.Graph, first: ir.Node) -> None:
        self.graph = graph
        self._constants: dict[str, ir.Value] = {}
        tokens = next(value for value in graph.inputs if value.name == "tokens")
        made = _Nodes("int8")
        span = [ir.AttrInt64("start", 1), ir.AttrInt64("end", 2)]
        self.length = made.add("Shape", [tokens], span, name="length")
        many = made.add("Greater", [self.length, self.constant("few", [FEW_TOKENS])], name="any")
        self.many = made.add("Squeeze", [many], name="many")
        graph.insert_before(first, made.nodes)

    def constant(self, name: str, values: object, dtype: type = np.int64) -> ir.Value:
        """An initializer of the main graph, which all layers share."""
        if name not in self._constants:
            full = f"int8_{name}"
            tensor = ir.tensor(np.array(values, dtype), name=full)
            value = ir.Value(name=full, const_value=tensor)
            value.dtype, value.shape = tensor.dtype, ir.Shape(tensor.shape.numpy())
            self.graph.register_initializer(value)
            self._constants[name] = value
        return self._constants[name]


class _Nodes:
    """Nodes in the order of their making.

    Args:
        prefix: of the names of their outputs.
    """

    def __init__(self, prefix: str) -> None:
        self.nodes: list[ir.Node] = []
        self._prefix = prefix

    def add(
        self,
        operator: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr] = (),
        *,
        name: str,
    ) -> ir.Value:
        """A node of one output."""
        node = ir.Node("", operator, inputs, attributes)
        node.outputs[0].name = f"{self._prefix}_{name}"
        self.nodes.append(node)
        return node.outputs[0]

    def cast(self, value: ir.Value | None, dtype: ir.DataType, *, name: str) -> ir.Value:
        """A Cast."""
        return self.add("Cast", [value], [ir.AttrInt64("to", int(dtype))], name=name)


def _choose(shared: _Shared, node: ir.Node, prefix: str) -> None:
    """Replaces an attention by an If of the two ways."""
    many = _ManyTokens(shared, node, f"{prefix}_many")
    ways = (
        many.reading() if _writes_nothing(node) else many.graph(),
        _few_tokens(node, f"{prefix}_few"),
    )
    branches = [
        ir.AttrGraph(name, way)
        for name, way in zip(("then_branch", "else_branch"), ways, strict=True)
    ]
    outputs = _read_outputs(node)
    choice = ir.Node("", "If", [shared.many], branches, num_outputs=len(outputs))
    for new, old in zip(choice.outputs, outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    shared.graph.insert_before(node, choice)
    for new, old in zip(choice.outputs, outputs, strict=True):
        name = old.name
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name, new.name = f"{prefix}_{name}", name
    shared.graph.remove(node, safe=True)


def _writes_nothing(node: ir.Node) -> bool:
    """Whether an attention reads the cache of another layer: the caches it returns go nowhere."""
    return not any(value.uses() or value.is_graph_output() for value in node.outputs[1:])


def _tokens_of(node: ir.Node) -> object:
    """T of an attention's queries, an int where it is fixed."""
    query = node.inputs[0]
    return None if query is None or query.shape is None else query.shape[1]


def _read_outputs(node: ir.Node) -> Sequence[ir.Value]:
    """What an attention returns and something reads."""
    return node.outputs[:1] if _writes_nothing(node) else node.outputs


def _few_tokens(node: ir.Node, prefix: str) -> ir.Graph:
    """The operator as it is, in a graph of its own."""
    attributes = node.attributes.values()
    same = ir.Node("com.microsoft", node.op_type, node.inputs, attributes, num_outputs=3, version=1)
    for number, output in enumerate(same.outputs):
        output.name = f"{prefix}_{number}"
    return _branch([same], same.outputs[: len(_read_outputs(node))], node, prefix)


class _ManyTokens:
    """The cache as float32, attention to it, and the new pairs as bytes.

    Args:
        shared: what all layers use.
        node: the attention over an int8 cache.
        prefix: of the names of values.
    """

    def __init__(self, shared: _Shared, node: ir.Node, prefix: str) -> None:
        self._shared, self._node, self._prefix = shared, node, prefix
        self._made = _Nodes(prefix)
        self._heads = node.attributes["num_heads"].as_int()
        self._kv_heads = node.attributes["kv_num_heads"].as_int()
        self._scales = node.inputs[_FIRST_SCALES : _FIRST_SCALES + 2]
        scale = self._scales[0]
        assert scale is not None and scale.shape is not None
        self._dim = int(scale.shape.numpy()[3])

    def graph(self) -> ir.Graph:
        """The way as a graph, with the outputs of the attention."""
        made, node = self._made, self._node
        query, key, value, *caches, last, total = node.inputs[:7]
        k_scale, v_scale = self._scales
        new = [self._codes(key, k_scale, "key"), self._codes(value, v_scale, "value")]
        end = made.cast(total, ir.DataType.INT64, name="end")
        start = made.add("Sub", [end, self._shared.length], name="start")
        read = [
            self._as_floats(cache, start, name)
            for cache, name in zip(caches, ("key", "value"), strict=True)
        ]
        given = [self._scaled(query, k_scale, "query"), *new, *read, last, total]
        if node.inputs[_SINKS] is not None:
            given += node.inputs[len(given) : _SINKS + 1]
        result = self._attended(given)
        slots = self._slots(start, end)
        written = [
            self._written(cache, codes, slots, name)
            for cache, codes, name in zip(caches, new, ("key", "value"), strict=True)
        ]
        return _branch(made.nodes, [result, *written], node, self._prefix)

    def reading(self) -> ir.Graph:
        """The way of a layer that reads what another has written: without new pairs."""
        made, node = self._made, self._node
        query, key, value, *caches, last, total = node.inputs[:7]
        end = made.cast(total, ir.DataType.INT64, name="end")
        read = [
            self._as_floats(cache, end, name)
            for cache, name in zip(caches, ("key", "value"), strict=True)
        ]
        given = [self._scaled(query, self._scales[0], "query"), key, value, *read, last, total]
        return _branch(made.nodes, [self._attended(given)], node, self._prefix)

    def _attended(self, given: Sequence[ir.Value | None]) -> ir.Value:
        """Attention to codes as floats, `[1, T, H D]`."""
        made, node = self._made, self._node
        attributes = [a for name, a in node.attributes.items() if not name.startswith(_OF_INT8)]
        attend = ir.Node("com.microsoft", node.op_type, given, attributes, num_outputs=3, version=1)
        for output, name in zip(attend.outputs, ("attended", "keys", "values"), strict=True):
            output.name = f"{self._prefix}_{name}"
        made.nodes.append(attend)
        return self._scaled(attend.outputs[0], self._scales[1], "result")

    def _scaled(self, x: ir.Value | None, scale: ir.Value | None, name: str) -> ir.Value:
        """`[1, T, H D]` times a KV head's scale of each channel."""
        made, kv_heads = self._made, self._kv_heads
        per_head = self._shape("per_head", 0, 0, kv_heads, self._heads // kv_heads, self._dim)
        of_heads = self._shape("of_heads", 1, 1, kv_heads, 1, self._dim)
        packed = self._shape("packed", 0, 0, self._heads * self._dim)
        by_head = made.add("Reshape", [x, per_head], name=f"{name}_by_head")
        steps = made.add("Reshape", [scale, of_heads], name=f"{name}_steps")
        product = made.add("Mul", [by_head, steps], name=f"{name}_scaled")
        return made.add("Reshape", [product, packed], name=name)

    def _codes(self, x: ir.Value | None, scale: ir.Value | None, name: str) -> ir.Value:
        """`[1, T, K D]` as whole numbers that a byte holds, float32."""
        made = self._made
        of_row = self._shape("of_row", 1, 1, self._kv_heads * self._dim)
        steps = made.add("Reshape", [scale, of_row], name=f"{name}_steps")
        quotient = made.add("Div", [x, steps], name=f"{name}_quotient")
        whole = made.add("Round", [quotient], name=f"{name}_whole")
        limits = [
            self._shared.constant(f"code_{limit}", limit, np.float32)
            for limit in (LEAST_CODE, LARGEST_CODE)
        ]
        return made.add("Clip", [whole, *limits], name=name)

    def _as_floats(self, cache: ir.Value | None, used: ir.Value, name: str) -> ir.Value:
        """The codes of the slots in use: most of a large cache is empty in a short text."""
        first, axis = self._shared.constant("zero", [0]), self._shared.constant("axis", [2])
        codes = self._made.add("Slice", [cache, first, used, axis], name=f"{name}_used")
        return self._made.cast(codes, ir.DataType.FLOAT, name=f"{name}_read")

    def _slots(self, start: ir.Value, end: ir.Value) -> ir.Value:
        """Where the new pairs go: `[1, K, T, 3]`, of each KV head the T slots from `start` on."""
        made, shared, kv_heads = self._made, self._shared, self._kv_heads
        first = made.add("Squeeze", [start], name="first")
        behind = made.add("Squeeze", [end], name="behind")
        range_ = made.add("Range", [first, behind, shared.constant("one", 1)], name="range")
        column = shared.constant("column", [1, 1, -1, 1])
        rows = made.add("Reshape", [range_, column], name="rows")
        third = made.add("Mul", [rows, shared.constant("third", [0, 0, 1])], name="third")
        heads = np.array([[[[0, head, 0]] for head in range(kv_heads)]])
        return made.add("Add", [third, shared.constant(f"heads_{kv_heads}", heads)], name="slots")

    def _written(
        self, cache: ir.Value | None, codes: ir.Value, slots: ir.Value, name: str
    ) -> ir.Value:
        """The cache with the codes `[1, T, K D]` of the new pairs; in place, as it is bound."""
        made = self._made
        split = self._shape("split", 0, 0, self._kv_heads, self._dim)
        by_row = made.add("Reshape", [codes, split], name=f"{name}_rows")
        turn = [ir.AttrInt64s("perm", [0, 2, 1, 3])]
        by_head = made.add("Transpose", [by_row], turn, name=f"{name}_by_head")
        byte = made.cast(by_head, ir.DataType.INT8, name=f"{name}_bytes")
        return made.add("ScatterND", [cache, slots, byte], name=f"{name}_written")

    def _shape(self, name: str, *sizes: int) -> ir.Value:
        whose = f"{self._heads}_{self._kv_heads}_{self._dim}"
        return self._shared.constant(f"{name}_{whose}", sizes)


def _branch(
    nodes: Sequence[ir.Node], outputs: Sequence[ir.Value], node: ir.Node, name: str
) -> ir.Graph:
    """A way as a graph; its outputs have the types and shapes of the node's."""
    for index, (output, old) in enumerate(zip(outputs, _read_outputs(node), strict=True)):
        output.name = output.name or f"{name}_{index}"
        output.type, output.shape = old.type, old.shape
    return ir.Graph([], list(outputs), nodes=list(nodes), name=name)
