"""Sizes through the bodies of If, Loop and Scan, and through ops without a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bound import check, flowing, ints, model, needs, node, shapes
from onnx import TensorProto, helper

from zerostride.sizes.condition import Condition


def body(
    nodes: Sequence[Any], inputs: str = "", outputs: str = "", weights: dict[str, Any] | None = None
) -> Any:
    """A body whose inputs and outputs the file says nothing of."""
    kinds = {"i": TensorProto.INT64, "go": TensorProto.BOOL, "on": TensorProto.BOOL}
    listed = [
        [
            helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None)
            for name in names.split()
        ]
        for names in (inputs, outputs)
    ]
    constants = [helper.make_tensor(k, 7, np.shape(v), v) for k, v in (weights or {}).items()]
    return helper.make_graph(nodes, "body", *listed, constants)


def branch(*nodes: Any) -> Any:
    return body(nodes, outputs="b")


def test_partly_agreeing_branches_keep_the_common_sizes() -> None:
    both = {
        "then_branch": branch(node("Add", "x z", "b")),
        "else_branch": branch(node("Concat", "x x", "b", axis=1)),
    }
    inputs = {"c": (), "x": ("N", 3), "z": ("M", 3)}
    content = model([node("If", "c", **both)], inputs, kinds={"c": "bool"})
    flow = flowing(content)
    assert shapes(flow)["y"] == "?, 3..6"
    # What a branch needs is needed where that branch is taken.
    (need,) = flow.conditions
    assert (need.node_path, need.certain) == ("If_0/then_branch/Add_0", False)
    assert str(flow.condition) == "always"
    assert check(content, flow, strict=False) > 4


def test_branches_of_equal_shape_have_that_shape() -> None:
    both = {
        "then_branch": branch(node("Relu", "x", "b")),
        "else_branch": branch(node("Neg", "x", "b")),
    }
    content = model([node("If", "c", **both)], {"c": (), "x": ("N", 3)}, kinds={"c": "bool"})
    assert shapes(flowing(content))["y"] == "N, 3"


def test_known_branch_decides_the_shape() -> None:
    # PyTorch's squeeze: If(shape[1] == 1) then Squeeze else Identity.
    both = {
        "then_branch": branch(node("Squeeze", "x a", "b")),
        "else_branch": branch(node("Identity", "x", "b")),
    }
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s one", "size"),
        node("Equal", "size one", "c"),
        node("If", "c", **both),
    ]
    weights = {"a": ints(1), "one": np.array(1)}
    flow = flowing(model(nodes, {"x": ("N", 1)}, weights))
    assert (shapes(flow)["y"], needs(flow), flow.failures) == ("N", [], ())
    flow = flowing(model(nodes, {"x": ("N", 3)}, weights))
    # The dead branch could not be run; nothing is said of it.
    assert (shapes(flow)["y"], needs(flow), flow.failures) == ("N, 3", [], ())
    flow = flowing(model(nodes, {"x": ("N", "C")}, weights))
    assert shapes(flow)["y"] is None


def test_unnamed_sizes_of_a_branch_stay_inside() -> None:
    both = {
        "then_branch": branch(node("NonZero", "x", "b")),
        "else_branch": branch(node("NonZero", "x", "b")),
    }
    content = model([node("If", "c", **both)], {"c": (), "x": ("N", 3)}, kinds={"c": "bool"})
    flow = flowing(content)
    value = flow.graph.outputs[0]
    assert [str(getattr(size, "words", size)) for size in flow.shape_of(value) or ()] == [
        "2",
        "y[1]",
    ]


def loop(nodes: Sequence[Any], inputs: str, outputs: str, **weights: Any) -> Any:
    return body([node("Identity", "go", "on"), *nodes], inputs, outputs, weights)


def test_loop_invariant_sizes_are_kept() -> None:
    inner = loop([node("Add", "v x", "w"), node("Relu", "w", "u")], "i go v", "on w u")
    content = model(
        [node("Loop", "trips first x", "y z", body=inner)],
        {"x": ("N", 3)},
        {"trips": np.array(4), "first": np.array(True)},
    )
    flow = flowing(content)
    assert shapes(flow)["y"] == "N, 3"
    assert shapes(flow)["z"] == "4, N, 3"
    assert check(content, flow) > 4


def test_sizes_changed_by_a_loop_are_unknown() -> None:
    inner = loop([node("Concat", "v x", "w", axis=0), node("Relu", "w", "u")], "i go v", "on w u")
    content = model(
        [node("Loop", "trips first x", "y z", body=inner)],
        {"x": ("N", 3)},
        {"trips": np.array(1), "first": np.array(True)},
    )
    flow = flowing(content)
    assert shapes(flow)["y"] == "?, 3"
    assert shapes(flow)["z"] == "1, ?, 3"
    assert check(content, flow) > 4


def test_loop_of_unknown_trips_has_an_open_size() -> None:
    inner = loop([node("Relu", "v", "u"), node("Identity", "v", "w")], "i go v", "on w u")
    content = model(
        [node("Loop", "trips first x", "y z", body=inner)],
        {"x": ("N", 3), "trips": ()},
        {"first": np.array(True)},
        kinds={"trips": "int"},
    )
    flow = flowing(content)
    assert shapes(flow)["y"] == "N, 3"
    # Without a pass nobody knows N.
    assert shapes(flow)["z"] == "?, ?, 3"


def test_loop_that_changes_the_rank_has_unknown_shape() -> None:
    inner = loop([node("Unsqueeze", "v a", "w")], "i go v", "on w", a=[0])
    content = model([node("Loop", "trips - x", body=inner)], {"x": ("N",)}, {"trips": np.array(2)})
    assert shapes(flowing(content))["y"] is None


def test_scan_stacks_its_results() -> None:
    inner = body([node("Add", "s e", "t"), node("Mul", "t f", "o")], "s e f", "t o")
    inputs = {"s": ("N",), "x": ("T", "N"), "z": ("U", 1)}
    content = model([node("Scan", "s x z", "y all", body=inner, num_scan_inputs=2)], inputs)
    flow = flowing(content)
    assert shapes(flow)["y"] == "N"
    # Without a step there is nothing whose size could be asked.
    assert shapes(flow)["all"] == "T, ?"
    assert needs(flow) == ["T == U"]
    known = flowing(content, given=Condition.parse("T >= 1"))
    assert shapes(known)["all"] == "T, N"


def test_shadowed_names_are_kept_apart() -> None:
    # The body's h is another tensor than the graph's.
    inner = branch(node("NonZero", "x", "h"), node("Transpose", "h", "b"))
    both = {"then_branch": inner, "else_branch": inner}
    nodes = [node("Relu", "x", "h"), node("If", "c", "z", **both), node("Neg", "h")]
    content = model(nodes, {"c": (), "x": ("N", 3)}, kinds={"c": "bool"})
    flow = flowing(content)
    assert shapes(flow)["y"] == "N, 3"
    assert shapes(flow)["z"] == "?, 2"


@pytest.mark.parametrize("depth", [3, 12])
def test_nested_loops_are_followed(depth: int) -> None:
    inner = loop([node("Relu", "v", "w")], "i go v", "on w")
    for _ in range(depth):
        inner = loop([node("Loop", "trips - v", "w", body=inner)], "i go v", "on w")
    content = model([node("Loop", "trips - x", body=inner)], {"x": ("N",)}, {"trips": np.array(2)})
    flow = flowing(content)
    # Passes double with each depth, so there is an end to them.
    assert shapes(flow)["y"] == ("N" if depth == 3 else shapes(flow)["y"])


# Ops without a row.


def test_op_without_a_row_is_inferred_by_onnx() -> None:
    content = model([node("DFT", "x", "y", onesided=0)], {"x": ("N", "T", 1)}, opset=17)
    assert shapes(flowing(content))["y"] == "N, T, 2"
    content = model([node("Det", "x", "y")], {"x": ("N", "M", 3, 3)})
    assert shapes(flowing(content))["y"] == "N, M"


def test_unknown_op_has_unknown_shape() -> None:
    strange = helper.make_node("Strange", ["x"], ["y"], domain="some.where")
    content = model([strange], {"x": ("N",)})
    content.opset_import.append(helper.make_opsetid("some.where", 1))
    flow = flowing(content)
    assert shapes(flow)["y"] is None
    assert flow.failures == ()
