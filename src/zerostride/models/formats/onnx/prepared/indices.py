"""Places that are counted from an axis's end, as places from its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .layouts import gather_nd
from .rewriting import Rewriting, attributes_of

if TYPE_CHECKING:
    import onnx

#: ONNX's number of the type.
_INT32 = 6


def elements_from_start(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A place below 0 of GatherElements or ScatterElements is that many from the axis's end."""
    shape = graph.shape(node.input[0])
    return shape is not None and _from_start(graph, node, shape[attributes_of(node).get("axis", 0)])


def gather_nd_from_start(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Constant places of GatherND are rows; of others, those below 0 are counted from the end."""
    if gather_nd(graph, node):
        return True
    shape, places = graph.shape(node.input[0]), graph.shape(node.input[1])
    if shape is None or places is None:
        return False
    first = attributes_of(node).get("batch_dims", 0)
    return _from_start(graph, node, shape[first : first + places[-1]])


def _from_start(graph: Rewriting, node: onnx.NodeProto, sizes: int | tuple[int, ...]) -> bool:
    """Repeats the node with places from the start.

    Args:
        graph: what writes it.
        node: its second operand has the places.
        sizes: of the axis, or of the axes that the last axis of the places counts along.
    """
    name = node.input[1]
    places, maker = graph.array(name), graph.makers.get(name)
    if places is not None:
        if (places >= 0).all():
            return False
        moved = graph.constant((places + np.where(places < 0, sizes, 0)).astype(places.dtype))
    else:
        if maker is not None and maker.op_type == "Where":
            return False  # most often what this function wrote
        kind = np.int32 if graph.types.get(name) == _INT32 else np.int64
        below = graph.add("Less", name, graph.constant(kind(0)))
        moved = graph.add("Add", name, graph.constant(np.array(sizes, kind)))
        moved = graph.add("Where", below, moved, name)
    graph.repeat(node, [node.input[0], moved, *node.input[2:]])
    return True


__all__ = ["elements_from_start", "gather_nd_from_start"]
