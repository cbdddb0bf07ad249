"""Files without a batch axis, such as ncnn's, with one in front: of one element."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from ...errors import ZerostrideError
from ..flow.input_sizes import named_inputs, sized
from ..format_table import FORMATS, lowered, module_of
from ..formats.ranks import ranked
from ..ir.graph import Graph, Node, Value
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
    shapes = dict(zip((value.name for value in ours.inputs), named_inputs(ours), strict=True))
    wanted = {other: shapes[name] for name, other in names.items()}
    numbers = {
        name: shape[1:]
        for name, shape in wanted.items()
        if shape and all(isinstance(size, int) for size in shape[1:])
    }
    with suppress(ZerostrideError):  # the file has other sizes, which is said later
        theirs = sized(theirs, None, numbers)
    graph = in_onnx_ops(theirs)
    ranks = {name: None if shape is None else len(shape) for name, shape in wanted.items()}
    for value in ours.outputs:
        ranks[outputs[value.name]] = None if value.shape is None else len(value.shape)
    lacking = {
        id(value)
        for value in (*graph.inputs, *graph.outputs)
        if value.shape is not None and ranks.get(value.name) == len(value.shape) + 1
    }

    def change(value: Value, _: int) -> Value:
        inside = id(value) in lacking
        return replace(value, name=f"{value.name}/without batch") if inside else value

    inner = graph.with_values(change)
    ends = [
        [_with_axis(old) if id(old) in lacking else new for old, new in zip(*both, strict=True)]
        for both in ((graph.inputs, inner.inputs), (graph.outputs, inner.outputs))
    ]
    before = [
        _node("Squeeze", *p) for p in zip(ends[0], inner.inputs, strict=True) if p[0] is not p[1]
    ]
    after = [
        _node("Unsqueeze", *p) for p in zip(inner.outputs, ends[1], strict=True) if p[0] is not p[1]
    ]
    return replace(
        inner,
        nodes=(*before, *inner.nodes, *after),
        inputs=tuple(ends[0]),
        outputs=tuple(ends[1]),
        format="onnx",
    )


def _batchless(graph: Graph) -> bool:
    return FORMATS[graph.format].engine in BATCHLESS


def _with_axis(value: Value) -> Value:
    assert value.shape is not None
    shape = (1, *value.shape)
    return replace(value, shape=shape, declared=shape)


def _node(op: str, value: Value, result: Value) -> Node:
    return Node(result.name, op, "", _VERSION, (value,), (result,), {"axes": (0,)})
