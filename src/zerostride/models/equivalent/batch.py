"""Files without a batch axis, such as ncnn's, with one in front: of one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...errors import ZerostrideError
from ..flow.input_sizes import named_inputs, sized
from ..format_table import FORMATS, lowered, module_of
from ..formats.ranks import ranked
from ..ir.graph import FileShape, Graph, Node, Value
from ..transport.batch import BATCHLESS

#: An op set in which Squeeze and Unsqueeze have their axes as an attribute.
_VERSION = 11


def in_onnx_ops(graph: Graph) -> Graph:
    """A graph of any format in ONNX's ops, as far as they exist."""
    if graph.format == "onnx":
        return graph
    # Nodes are lowered by their operands' ranks; the tensors between them need sizes, too.
    return lowered(ranked(graph, module_of(graph).lower))


def with_batch_axes(
    theirs: Graph, ours: Graph, names: Mapping[str, str], outputs: Mapping[str, str]
) -> Graph:
    """A graph with the axis of one element in front that the other has and it lacks.

    It is in ONNX's ops.

    Args:
        theirs: the graph; those of formats with a batch axis stay as they are.
        ours: the other graph.
        names, outputs: the names of its inputs and outputs, by the other's.
    """
    if not _batchless(theirs) or _batchless(ours):
        return theirs
    ends = zip(ours.inputs, named_inputs(ours), strict=True)
    inputs = {names[value.name]: shape for value, shape in ends if value.name in names}
    results = {outputs[value.name]: value.shape for value in ours.outputs}
    graph = in_onnx_ops(_of_sizes(theirs, inputs))
    lacking = _lacking(graph, {**inputs, **results})
    inner = _inner(graph, lacking)
    outer_inputs, squeezes = _inputs(graph, inner, lacking)
    outer_outputs, unsqueezes = _outputs(graph, inner, lacking)
    return replace(
        inner,
        nodes=(*squeezes, *inner.nodes, *unsqueezes),
        inputs=tuple(outer_inputs),
        outputs=tuple(outer_outputs),
        format="onnx",
    )


def _batchless(graph: Graph) -> bool:
    return FORMATS[graph.format].engine in BATCHLESS


def _of_sizes(graph: Graph, shapes: Mapping[str, FileShape]) -> Graph:
    """The graph with inputs of these shapes, without their batch axes, as far as it takes them."""
    numbers = {
        name: shape[1:]
        for name, shape in shapes.items()
        if shape and all(isinstance(size, int) for size in shape[1:])
    }
    with suppress(ZerostrideError):  # the file has other sizes, which is said later
        return sized(graph, None, numbers)
    return graph


def _lacking(graph: Graph, shapes: Mapping[str, FileShape]) -> frozenset[int]:
    """The inputs and outputs that have one axis less than these shapes, by identity."""
    ranks = {name: len(shape) for name, shape in shapes.items() if shape is not None}
    return frozenset(
        id(value)
        for value in (*graph.inputs, *graph.outputs)
        if value.shape is not None and ranks.get(value.name) == len(value.shape) + 1
    )


def _inner(graph: Graph, lacking: frozenset[int]) -> Graph:
    """The graph with other names for these tensors: those with a batch axis take theirs."""

    def change(value: Value, _: int) -> Value:
        inside = id(value) in lacking
        return replace(value, name=f"{value.name}/without batch") if inside else value

    return graph.with_values(change)


def _inputs(
    graph: Graph, inner: Graph, lacking: frozenset[int]
) -> tuple[Sequence[Value], Sequence[Node]]:
    """The inputs with a batch axis, and the nodes that remove it."""
    pairs = [
        (_with_axis(value) if id(value) in lacking else inside, inside)
        for value, inside in zip(graph.inputs, inner.inputs, strict=True)
    ]
    nodes = [_node("Squeeze", *pair) for pair in pairs if pair[0] is not pair[1]]
    return [outer for outer, _ in pairs], nodes


def _outputs(
    graph: Graph, inner: Graph, lacking: frozenset[int]
) -> tuple[Sequence[Value], Sequence[Node]]:
    """The outputs with a batch axis, and the nodes that add it."""
    pairs = [
        (inside, _with_axis(value) if id(value) in lacking else inside)
        for value, inside in zip(graph.outputs, inner.outputs, strict=True)
    ]
    nodes = [_node("Unsqueeze", *pair) for pair in pairs if pair[0] is not pair[1]]
    return [outer for _, outer in pairs], nodes


def _with_axis(value: Value) -> Value:
    assert value.shape is not None
    shape = (1, *value.shape)
    return replace(value, shape=shape, declared=shape)


def _node(op: str, value: Value, result: Value) -> Node:
    return Node(result.name, op, "", _VERSION, (value,), (result,), {"axes": (0,)})


__all__ = ["in_onnx_ops", "with_batch_axes"]
