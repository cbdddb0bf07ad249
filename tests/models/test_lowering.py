"""The table that translates a format's nodes to ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zerostride.models.formats.lowering import (
    EVERY,
    FORMULAS,
    NodeWriter,
    NoEquivalent,
    becomes,
    checked,
    choice,
    flag,
    if_given,
    lower_by,
    one,
    real,
    table,
    whole,
)
from zerostride.models.ir.graph import Node, Value

X, Y = Value("x", (2, 3), dtype="float32"), Value("y", (2, 3), dtype="float32")
AXIS = Value("axis", (1,), True, (1,), dtype="int64")


def node(op: str, *inputs: Value | None, **attributes: Any) -> Node:
    return Node("n", op, "made", 1, inputs, (Value("out", None),), attributes, place=(4,))


def picky(w: NodeWriter) -> None:
    if w.rank() != 2:
        raise NoEquivalent


ROWS = table(
    ("Plus Add", becomes("Add", 0, 1)),
    {
        "Abs": "Abs",
        "Swish": "silu",
        "Join": becomes("Concat", EVERY, axis=whole("axis")),
        "Soft": becomes("Softmax", axis=whole("axis", -1)),
        "Leak": becomes("LeakyRelu", alpha=real("slope")),
        "Sum": becomes("CumSum", 0, 1, reverse=flag("backwards")),
        "Pick": checked(picky, becomes("Gather", 0, 1, axis=one(2))),
        "Clip": becomes("Clip", 0, if_given(1)),
        "Way": becomes("DepthToSpace", mode=choice("mode", {"a": "DCR", "b": None}, "b")),
    },
)


def lowered(given: Node) -> list[tuple[str, dict[str, Any]]] | None:
    nodes = lower_by(ROWS.get(given.op), NodeWriter(given))
    if nodes is None:
        return None
    assert nodes[-1].outputs == given.outputs
    assert {(n.name, n.domain, n.place) for n in nodes} == {("n", "", (4,))}
    return [(n.op, dict(n.attributes)) for n in nodes]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (node("Add", X, Y), [("Add", {})]),
        (node("Plus", X, Y), [("Add", {})]),
        (node("Plus", X, None), None),
        (node("Plus", X), None),
        (node("Unknown", X), None),
        (node("Abs", X), [("Abs", {})]),
        (node("Swish", X), [("Sigmoid", {}), ("Mul", {})]),
        (node("Join", X, Y, X, axis=1), [("Concat", {"axis": 1})]),
        (node("Join", X, Y), None),
        (node("Join", X, Y, axis="one"), None),
        (node("Soft", X), [("Softmax", {"axis": -1})]),
        (node("Leak", X, slope=0.5), [("LeakyRelu", {"alpha": 0.5})]),
        (node("Sum", X, AXIS, backwards=True), [("CumSum", {"reverse": 1})]),
        (node("Pick", X, Y, AXIS), [("Gather", {"axis": 1})]),
        (node("Pick", Value("x", (3,)), Y, AXIS), None),
        (node("Pick", X, Y, X), None),
        (node("Clip", X), [("Clip", {})]),
        (node("Way", X, mode="A"), [("DepthToSpace", {"mode": "DCR"})]),
        (node("Way", X), [("DepthToSpace", {})]),
        (node("Way", X, mode="c"), None),
    ],
)
def test_rows(given: Node, written: Any) -> None:
    assert lowered(given) == written


def test_a_node_without_results_has_no_equivalent() -> None:
    bare = Node("n", "Abs", "made", 1, (X,), ())
    assert lower_by("Abs", NodeWriter(bare)) is None


def test_every_formula_ends_in_the_node_s_own_result() -> None:
    for name in FORMULAS:
        given = node("Any", X)
        nodes = lower_by(name, NodeWriter(given))
        assert nodes is not None
        assert nodes[-1].outputs == given.outputs, name


def test_operands_that_a_file_lacks_are_left_out() -> None:
    w = NodeWriter(node("Any"))
    assert [w.optional(position) for position in (-1, 0, 1)] == [None, None, None]
    w = NodeWriter(node("Any", X))
    assert [w.optional(position) for position in (-1, 0, 1)] == [None, X, None]


def test_constants_have_numbers_and_results_have_types() -> None:
    w = NodeWriter(node("Any", X, Y))
    assert w.ints(2, -1).data().tolist() == [2, -1]
    assert w.number(0.1).reals == (float(np.float32(0.1)),)
    assert w.number(3, "int32").data() == np.int32(3)
    assert w.reals(1, 2).data().dtype == np.float32
    assert w.op("Equal", X, Y).dtype == "bool"
    assert w.op("Shape", X).dtype == "int64"
    assert w.op("Cast", X, to=6).dtype == "int32"
    assert w.op("Where", w.op("Less", X, Y), X, Y).dtype == "float32"
    assert w.op("Neg", AXIS).constant
    assert not w.op("Add", X, AXIS).constant


def test_finish_gives_a_result_to_the_node_and_passes_on_an_operand() -> None:
    given = node("Any", X, Y)
    w = NodeWriter(given)
    w.finish(w.op("Add", X, Y))
    assert [(n.op, n.outputs) for n in w.nodes] == [("Add", given.outputs)]
    w = NodeWriter(given)
    w.finish(X)
    assert [(n.op, n.inputs, n.outputs) for n in w.nodes] == [("Identity", (X,), given.outputs)]


def test_blocks_are_reordered() -> None:
    w = NodeWriter(node("Any", X))
    w.blocks(X, 1, 2, (1, 0))
    starts = [n.inputs[1].content for n in w.nodes if n.op == "Slice" and n.inputs[1] is not None]
    assert starts == [(2,), (0,)]
    assert [n.op for n in w.nodes] == ["Slice", "Slice", "Concat"]
