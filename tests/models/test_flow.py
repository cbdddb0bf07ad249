"""Sizes of whole models: exporters' constructions, declared shapes, needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bound import check, far, flowing, ints, model, needs, node, shapes
from onnx import TensorProto, helper

import zerostride as zs
from zerostride.sizes.condition import Condition

SCALARS = {"i0": np.array(0), "i1": np.array(1), "a0": ints(0), "a1": ints(1)}


def ones(shape_name: str, out: str) -> Any:
    return node("ConstantOfShape", shape_name, out, value=helper.make_tensor("v", 7, [1], [1]))


# What exporters write.


def test_split_and_joined_heads_keep_their_sizes() -> None:
    # Shape → Gather → Unsqueeze → Concat → Reshape, as PyTorch's view(B, T, 12, -1).
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s i0", "b"),
        node("Gather", "s i1", "t"),
        node("Unsqueeze", "b a0", "b1"),
        node("Unsqueeze", "t a0", "t1"),
        node("Concat", "b1 t1 h", "target", axis=0),
        node("Reshape", "x target", "heads"),
        node("Transpose", "heads", "turned", perm=[0, 2, 1, 3]),
        node("Transpose", "turned", "back", perm=[0, 2, 1, 3]),
        node("Concat", "b1 t1 m", "whole", axis=0),
        node("Reshape", "back whole", "y"),
    ]
    content = model(nodes, {"x": ("B", "T", 24)}, {**SCALARS, "h": ints(12, 2), "m": ints(-1)})
    flow = flowing(content)
    assert shapes(flow)["turned"] == "B, 12, T, 2"
    assert shapes(flow)["y"] == "B, T, 24"
    assert needs(flow) == ["B*T >= 1"]  # the second Reshape's -1
    assert check(content, flow) > 4


def test_expand_with_minus_one_keeps_the_size() -> None:
    # PyTorch's expand(-1, C, -1): Where(target == -1, 1, target).
    nodes = [
        node("Shape", "z", "s"),
        ones("three", "one"),
        node("Mul", "one minus", "negative"),
        node("Equal", "s negative", "same"),
        node("Where", "same one s", "target"),
        node("Expand", "x target", "y"),
    ]
    weights = {"three": ints(3), "minus": ints(-1)}
    content = model(nodes, {"x": ("N", 1, 4), "z": ("M", "C", 4)}, weights)
    flow = flowing(content)
    assert shapes(flow)["y"] == "bcast(M, N), C, 4"
    assert needs(flow) == ["M == N or N == 1 or M == 1"]
    assert check(content, flow) > 4
    written = model(
        [
            *nodes[1:3],
            node("Equal", "w negative", "same"),
            node("Where", "same one w", "target"),
            nodes[5],
        ],
        {"x": ("N", 1, 4)},
        {**weights, "w": ints(-1, 5, 4)},
    )
    assert shapes(flowing(written))["y"] == "N, 5, 4"


def test_mask_of_past_and_present_has_the_sum() -> None:
    # The causal mask of a decoder: sizes computed from two inputs, and a slice by them.
    nodes = [
        node("Shape", "k", "s", start=1, end=2),
        node("Shape", "x", "t", start=1, end=2),
        node("Add", "s t", "total"),
        node("Concat", "k x", "keys", axis=1),
        node("Slice", "m zero total last", "cut"),
        node("Sub", "total t", "past"),
        node("Slice", "cut past total first", "rows"),
        node("MatMul", "rows keys", "y"),
    ]
    inputs = {"x": ("B", "T", 8), "k": ("B", "past", 8), "m": ("past + T", "past + T")}
    weights = {"zero": ints(0), "last": ints(1), "first": ints(0)}
    content = model(nodes, inputs, weights)
    flow = flowing(content)
    assert shapes(flow)["keys"] == "B, T + past, 8"
    assert shapes(flow)["rows"] == "T, T + past"
    assert shapes(flow)["y"] == "B, T, 8"
    assert needs(flow) == []
    assert check(content, flow) > 4


def test_upsample_to_the_size_of_a_skip_has_its_size() -> None:
    nodes = [
        node("MaxPool", "x", "small", kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", "small", "all"),
        node("Slice", "all zero two", "outer"),
        node("Shape", "x", "wide"),
        node("Slice", "wide two far", "plane"),
        node("Concat", "outer plane", "sizes", axis=0),
        node("Resize", "small - - sizes", "large", mode="nearest"),
        node("Concat", "x large", "y", axis=1),
    ]
    weights = {"zero": ints(0), "two": ints(2), "far": ints(far)}
    flow = flowing(model(nodes, {"x": ("N", 3, "H", "W")}, weights))
    assert shapes(flow)["y"] == "N, 6, H, W"
    assert needs(flow) == ["H >= 2", "W >= 2"]
    scaled = [nodes[0], node("Resize", "small - s", "large", mode="nearest"), nodes[-1]]
    flow = flowing(
        model(scaled, {"x": ("N", 3, "H", "W")}, {"s": np.array([1, 1, 2, 2], np.float32)})
    )
    assert needs(flow)[2:] == ["H % 2 == 0", "W % 2 == 0"]


def test_size_computed_in_floats_is_followed() -> None:
    # floor(float(N) / 2), as old exporters write N // 2; and the same rounded up.
    for op, shape in (("Floor", "N // 2"), ("Ceil", "(N + 1) // 2")):
        nodes = [
            node("Shape", "x", "s"),
            node("Cast", "s", "f", to=TensorProto.FLOAT),
            node("Div", "f two", "half"),
            node(op, "half", "down"),
            node("Cast", "down", "n", to=TensorProto.INT64),
            node("ConstantOfShape", "n", "y"),
        ]
        content = model(nodes, {"x": ("N",)}, {"two": np.array([2], np.float32)})
        flow = flowing(content)
        assert shapes(flow)["y"] == shape
        assert check(content, flow) > 4


def test_integer_division_of_sizes_rounds_to_zero() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Sub", "s five", "less"),
        node("Div", "less two", "half"),
        node("Add", "half five", "n"),
        node("ConstantOfShape", "n", "y"),
    ]
    flow = flowing(model(nodes, {"x": ("N",)}, {"five": ints(5), "two": ints(2)}))
    # (N - 5) / 2 is not known to be 0 or more; (N - 5) // 2 would be wrong of N = 2.
    assert shapes(flow)["y"] == "?"


def test_positions_from_a_range_have_their_size() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s i1", "t"),
        node("Range", "i0 t i1", "positions"),
        node("Unsqueeze", "positions a0", "row"),
        node("Gather", "table row", "y"),
    ]
    inputs = {"x": ("B", "T"), "table": (512, 8)}
    content = model(nodes, inputs, SCALARS)
    assert shapes(flowing(content))["y"] == "1, T, 8"


# Inputs, and sizes put in.


def test_names_in_a_file_are_read_as_sizes() -> None:
    shape = ("past + 1", "batch-size", None, "?", "-1", "unk__7", "2*N", "a b", 3)
    flow = flowing(model([node("Relu", "x")], {"x": shape}))
    # A hyphen between words is no difference; what says nothing is a size without a name.
    assert shapes(flow)["y"] == "past + 1, batch-size, ?, ?, ?, ?, 2*N, a b, 3"
    assert [s.name for s in flow.symbols] == ["past", "batch-size", "N", "a b"]
    names = [str(size.words) for size in flow.shape_of(flow.graph.inputs[0]) or () if size != 3]
    assert names[2:6] == ["x[2]", "x[3]", "x[4]", "x[5]"]


def test_given_sizes_replace_names() -> None:
    content = model([node("Add", "x z")], {"x": ("N", 3), "z": ("M", 3)})
    flow = flowing(content, sizes={"N": 4})
    assert (shapes(flow)["y"], needs(flow)) == ("4, 3", ["M == 4 or M == 1"])
    assert flowing(content, sizes={"N": 4, "M": 3}).failures
    with pytest.raises(zs.ZerostrideError, match="no size is called 'K'"):
        flowing(content, sizes={"K": 4})
    with pytest.raises(zs.ZerostrideError, match="size from 0"):
        flowing(content, sizes={"N": -1})


def test_given_facts_are_not_needs() -> None:
    content = model([node("Add", "x z")], {"x": ("N", 3), "z": ("M", 3)})
    assert needs(flowing(content, given=Condition.parse("N == M"))) == []
    flow = flowing(content, given=Condition.parse("N == M + 1 and M >= 2"))
    assert [str(failure.node_path) for failure in flow.failures] == ["Add_0"]


def test_equal_needs_are_listed_once() -> None:
    nodes = [
        node("Add", "x z", "a"),
        node("Mul", "x z", "b"),
        node("Concat", "x z", "c", axis=1),
        node("Sub", "x z", "y"),
    ]
    flow = flowing(model(nodes, {"x": ("N", 3), "z": ("M", 3)}))
    assert needs(flow) == ["M == N or N == 1 or M == 1", "M == N"]
    assert [need.node_path for need in flow.conditions] == ["Add_0", "Concat_2"]
    assert all(need.certain for need in flow.conditions)
    assert str(flow.condition) == "M == N"  # it implies the other


def test_contradicting_needs_are_an_error() -> None:
    nodes = [
        node("Reshape", "x four", "a"),
        node("Reshape", "x five", "y"),
    ]
    flow = flowing(model(nodes, {"x": ("N",)}, {"four": ints(2, 2), "five": ints(5)}))
    (failure,) = flow.failures
    assert failure.node_path == "Reshape_1"
    assert "contradicts" in failure.words


@pytest.mark.parametrize(
    "content",
    [
        model([node("Add", "x z")], {"x": (2, "N"), "z": (3, "N")}),
        model([node("Reshape", "x t")], {"x": (2, 3)}, {"t": ints(4, -1)}),
        model([node("Reshape", "x t")], {"x": ("N",)}, {"t": ints(-2, -1)}),
        model([node("MatMul", "x z")], {"x": ("N", 3), "z": (4, "M")}),
        model([node("Concat", "x z", axis=0)], {"x": ("N", 3), "z": ("M", 4)}),
        model([node("Squeeze", "x a")], {"x": ("N", 3)}, {"a": ints(1)}),
        model([node("Transpose", "x", perm=[0, 0])], {"x": ("N", 3)}),
        model([node("Softmax", "x", axis=5)], {"x": ("N", 3)}),
    ],
)
def test_nodes_that_fail_for_all_sizes_are_errors(content: Any) -> None:
    flow = flowing(content)
    assert len(flow.failures) == 1
    assert not flow.ok
    # It asserts that the evaluator refuses, too; NumPy computes nothing of empty tensors.
    assert check(content, flow, sizes=(1, 2, 3)) == 0


# What the file says of its own tensors.


def test_declared_shapes_become_needs() -> None:
    nodes = [node("Concat", "x x", "c", axis=0), node("Relu", "c")]
    inputs = {"x": ("N", 3)}
    flow = flowing(model(nodes, inputs, claims={"y": (8, 3)}))
    assert needs(flow) == ["N == 4"]
    assert "the file says" in flow.conditions[0].words
    assert shapes(flow)["y"] == "8, 3"
    flow = flowing(model(nodes, inputs, claims={"y": (7, 3)}))
    assert [failure.op for failure in flow.failures] == ["Relu"]
    flow = flowing(model(nodes, inputs, claims={"y": ("N", 3)}))
    assert needs(flow) == ["N == 0"]
    flow = flowing(model(nodes, inputs, claims={"y": (3,)}))
    assert "rank 1" in flow.failures[0].words


def test_derived_sizes_keep_the_files_names() -> None:
    nodes = [node("Concat", "x x", "c", axis=0), node("Relu", "c", "d"), node("Neg", "z")]
    inputs = {"x": ("N", 3), "z": ("M", 3)}
    flow = flowing(model(nodes, inputs, claims={"c": ("twice", 3), "y": ("twice", 3)}))
    assert {name: str(size) for name, size in flow.names.items()} == {"twice": "2*N"}
    assert needs(flow) == ["M == 2*N"]
    # A tool's own names for what it does not know say nothing.
    flow = flowing(model(nodes, inputs, claims={"c": ("unk__0", 3), "y": ("unk__0", 3)}))
    assert needs(flow) == []


def test_declared_shape_is_used_where_nothing_is_inferred() -> None:
    unknown = helper.make_node("Strange", ["x"], ["h"], domain="some.where")
    content = model([unknown, node("NonZero", "h", "z"), node("Relu", "h")], {"x": ("N",)})
    content.opset_import.append(helper.make_opsetid("some.where", 1))
    content.graph.value_info.extend(
        [
            helper.make_tensor_value_info("h", 1, ("N", "K", None)),
            helper.make_tensor_value_info("z", 7, (3, "found")),
        ]
    )
    flow = flowing(content)
    assert shapes(flow)["y"] == "N, K, ?"
    assert shapes(flow)["z"] == "3, found"
    assert needs(flow) == []


def test_counts_cover_tensors_ranks_axes_and_sizes() -> None:
    nodes = [node("NonZero", "x", "z"), node("Transpose", "z")]
    flow = flowing(model(nodes, {"x": ("N", 3)}))
    counts = flow.counts()
    assert (counts.tensors, counts.ranks, counts.axes, counts.sizes) == (3, 3, 6, 4)
