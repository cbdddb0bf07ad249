"""The flow of sizes through nodes that a format's rows replace."""

from __future__ import annotations

from zerostride.models.flow import flow
from zerostride.models.ir.graph import Graph, Node, Value


def test_facts_of_operands_that_a_row_drops_do_not_reach_other_tensors() -> None:
    """Facts are kept by identity, so a dropped operand must outlive the constants of later rows."""
    data = Value("x", (3,))
    other, target = Value("other", (7, 9)), Value("target", None)
    shape_of = Node("shape", "Shape", "", 21, (other,), (target,))
    sizes = [(k % 5 + 1, 3) for k in range(400)]
    originals = tuple(
        Node(f"n{k}", "Any", "made", 1, (data, target), (Value(f"y{k}", None),))
        for k in range(len(sizes))
    )

    def lower(node: Node) -> tuple[Node, ...]:
        shape = sizes[int(node.name[1:])]
        constant = Value("", (2,), True, shape, dtype="int64")  # in place of the target
        return (Node(node.name, "Expand", "", 21, (node.inputs[0], constant), node.outputs),)

    graph = Graph("made", "onnx", 21, (data, other), (shape_of, *originals))
    facts = flow(graph, lower=lower).facts
    assert [facts[id(node.outputs[0])].shape for node in originals] == sizes
