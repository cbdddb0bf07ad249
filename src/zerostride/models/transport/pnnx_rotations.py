"""Rotations of heads by their positions, which pnnx writes as ncnn's layer RotaryEmbed.

pnnx knows x * cos + turned * sin by the order of the operands, whatever their shapes are. The layer
has a row of angles for each position and none for each head, and turns the rows of three axes; it
checks nothing (run: tests/conformance/test_pnnx_rotations.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..ir.graph import Graph, Node, Value
from .batch import BatchAxes

_OTHERWISE = "write cos * x in place of x * cos, and pnnx leaves the products as they are"


def wrong_rotations(graph: Graph, batch: BatchAxes) -> Iterator[tuple[Node, str]]:
    """Yield each sum that ends a rotation which ncnn computes otherwise, and what is wrong."""
    if not any(node.onnx_op == "Neg" for node in graph.nodes):
        return
    makers = {id(value): node for node in graph.nodes for value in node.outputs}
    readers = Counter(id(value) for node in graph.nodes for value in node.inputs)

    def maker(value: Value | None, op: str) -> Node | None:
        """The node that makes a value for one reader, if it is such an op."""
        node = None if value is None or readers[id(value)] != 1 else makers.get(id(value))
        return node if node is not None and node.onnx_op == op else None

    for node in graph.nodes:
        if node.onnx_op != "Add" or len(node.inputs) != 2:
            continue
        plain, other = (maker(value, "Mul") for value in node.inputs)
        joined = None if other is None else maker(other.inputs[0], "Concat")
        if plain is None or other is None or joined is None or len(joined.inputs) != 2:
            continue
        x, cosines, sines = plain.inputs[0], plain.inputs[1], other.inputs[1]
        negative = maker(joined.inputs[0], "Neg")
        halves = (joined.inputs[1], None if negative is None else negative.inputs[0])
        if x is None or x.shape is None or not _are_halves(halves, x, makers):
            continue
        for angles in (cosines, sines):
            fault = None if angles is None else _fault(x, angles, batch)
            if fault:
                yield node, f"pnnx makes a RotaryEmbed of it, {fault}: {_OTHERWISE}"
                break


def _are_halves(halves: Sequence[Value | None], x: Value, makers: dict[int, Node]) -> bool:
    """Whether two values are cut from a tensor, each with half of its last axis."""
    width = (x.shape or (None,))[-1]
    for half in halves:
        cut = makers.get(id(half))
        if half is None or cut is None or cut.onnx_op not in ("Slice", "Split"):
            return False
        size = (half.shape or (None,))[-1]
        if cut.inputs[0] is not x or not isinstance(size, int) or width != 2 * size:
            return False
    return True


def _fault(x: Value, angles: Value, batch: BatchAxes) -> str:
    """What ncnn's layer does otherwise; "" if it is right, or a size is not known."""
    if x.shape is None or angles.shape is None or len(angles.shape) > len(x.shape):
        return ""
    gone = batch.of(x)
    axes: list[object] = [*x.shape]
    rows: list[object] = [*[1] * (len(axes) - len(angles.shape)), *angles.shape]
    if gone is not None:
        del axes[gone], rows[gone]
    if len(axes) < 2 or None in axes or None in rows:
        return ""
    if len(axes) > 3 and axes[-3] != 1:
        return f"which turns the first of {axes[-3]} heads alone, since the batch axis stays"
    if rows[-2] != axes[-2]:
        return f"which reads angles of {axes[-2]} positions, and {angles.name} has {rows[-2]}"
    if any(size != 1 for size in rows[:-2]):
        return f"which reads the angles of the first head for all, and {angles.name} has more"
    return ""


__all__ = ["wrong_rotations"]
