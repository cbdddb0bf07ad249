"""Ops without a broadcast that a converter or its engine takes for another meaning.

Run: models of one op, converted by pnnx 20261020 and computed by ncnn, and by mnnconvert 3.6.1 and
MNN (`test_misread_ops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...errors import ModelError
from ..ir.graph import Array, Graph, Node

#: Reductions whose list of axes pnnx drops. It reads a ReduceProd right, and for the others it
#: writes layers that ncnn lacks.
_REDUCTIONS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMean", "ReduceSum"})
#: Ops whose second operand has places along axes; MNN reads those of a Gather right.
_PLACES = frozenset({"GatherElements", "GatherND", "ScatterElements"})


class Misread(NamedTuple):
    """A kind of node that a converter misreads.

    Attributes:
        matches: whether a node is one.
        fault: what becomes of it.
    """

    matches: Callable[[Node], bool]
    fault: str


def _numbers(node: Node, index: int) -> Array | None:
    """The whole numbers of a constant operand; a malformed file may have others."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or not value.constant:
        return None
    try:
        array = value.data()
    except ModelError:
        return None
    return array if array.dtype.kind in "iu" else None


def _drops_axis(node: Node) -> bool:
    if node.op not in _REDUCTIONS or len(node.inputs) < 2:
        return False
    axes = node.inputs[1]
    return axes is not None and axes.shape == (1,)


def _counts_from_end(node: Node) -> bool:
    places = _numbers(node, 1) if node.op in _PLACES else None
    return places is not None and bool((places < 0).any())


def _runs_backwards(node: Node) -> bool:
    steps = _numbers(node, 4) if node.op == "Slice" else None
    return steps is not None and bool((steps < 0).any())


def _cuts(node: Node) -> bool:
    pads = _numbers(node, 1) if node.op == "Pad" else None
    return pads is not None and bool((pads < 0).any())


#: Kinds of nodes by converter.
_ROWS: Mapping[str, tuple[Misread, ...]] = MappingProxyType(
    {
        "pnnx": (
            Misread(
                _drops_axis, "drops a list of one axis that is an operand, and reduces nothing"
            ),
            Misread(
                lambda node: node.op == "SpaceToDepth",
                "orders the channels as PyTorch's pixel_unshuffle does",
            ),
            Misread(_runs_backwards, "does not run backwards, and cuts at other places"),
        ),
        "mnnconvert": (
            Misread(_counts_from_end, "does not count places below 0 from the axis's end"),
            Misread(
                _cuts, "does not cut where a margin is below 0, and writes outside of its memory"
            ),
        ),
    }
)


def misread_notes(graph: Graph, converter: str) -> Iterator[str]:
    """Yield a note on each kind of node that a converter misreads.

    Args:
        graph: the model.
        converter: its name.
    """
    for row in _ROWS.get(converter, ()) if graph.format == "onnx" else ():
        nodes = [node for node in graph.nodes if row.matches(node)]
        if nodes:
            more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
            yield (
                f"{converter} misreads {nodes[0].op} {nodes[0].path!r}{more}: it {row.fault}; "
                "zerostride convert tries another form of it"
            )


def misread_words(node: Node, converter: str) -> str:
    """How a converter misreads a node of an ONNX model, in words; "" if it does not."""
    for row in _ROWS.get(converter, ()):
        if row.matches(node):
            return f"{converter} misreads {node.op}: it {row.fault}"
    return ""


__all__ = ["misread_notes", "misread_words"]
