"""Ops without a broadcast that a converter writes with another meaning.

Run: models of one op, converted by pnnx 20261020 and computed by ncnn (`test_misread_ops`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Graph, Node

#: Reductions whose list of axes pnnx drops. It reads a ReduceProd right, and for the others it
#: writes layers that ncnn lacks.
_REDUCTIONS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMean", "ReduceSum"})


def misread_notes(graph: Graph, converter: str) -> Iterator[str]:
    """Yield a note on each kind of node that a converter misreads.

    Args:
        graph: the model.
        converter: its name.
    """
    if graph.format != "onnx" or converter != "pnnx":
        return
    dropped = [node for node in graph.nodes if _drops_axis(node)]
    if dropped:
        yield _note(dropped, "drops a list of one axis that is an operand, and reduces nothing")
    blocks = [node for node in graph.nodes if node.op == "SpaceToDepth"]
    if blocks:
        yield _note(blocks, "orders the channels as PyTorch's pixel_unshuffle does")


def _drops_axis(node: Node) -> bool:
    if node.op not in _REDUCTIONS or len(node.inputs) < 2:
        return False
    axes = node.inputs[1]
    return axes is not None and axes.shape == (1,)


def _note(nodes: list[Node], fault: str) -> str:
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return (
        f"pnnx misreads {nodes[0].op} {nodes[0].path!r}{more}: it {fault}; zerostride convert "
        "writes another form for it"
    )


__all__ = ["misread_notes"]
