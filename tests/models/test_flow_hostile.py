"""Hostile and large models: every node gives a note, never a traceback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bound import far, flowing, ints, model, needs, node, shapes
from onnx import TensorProto, helper

N = {"x": ("N", 3)}
HUGE = 2**62
EMPTY = helper.make_graph([], "b", [], [])


@pytest.mark.parametrize(
    "made",
    [
        # Sizes that multiply beyond 64 bits.
        model([node("Tile", "x r")], N, {"r": ints(HUGE, HUGE)}),
        model([node("Reshape", "x t")], {"x": (HUGE, HUGE, "N")}, {"t": ints(-1)}),
        model([node("Pad", "x p")], N, {"p": ints(far, far, far, far)}),
        model([node("Pad", "x p")], N, {"p": ints(-far, -far, -far, -far)}),
        model([node("ConstantOfShape", "s")], {}, {"s": ints(*[HUGE] * 40)}),
        model([node("Range", "a b c")], {}, {"a": ints(0), "b": ints(far), "c": ints(1)}),
        model([node("OneHot", "x d v")], N, {"d": ints(far), "v": ints(0, 1)}),
        model([node("Unsqueeze", "x a")], N, {"a": ints(*range(64))}),
        model([node("Slice", "x s e a t")], N, {**dict.fromkeys("sea", ints(1)), "t": ints(0)}),
        model([node("Slice", "x s e")], N, {"s": ints(-far), "e": ints(far)}),
        # Attributes that no exporter writes.
        model([node("Transpose", "x", perm=[far, -far])], N),
        model([node("Flatten", "x", axis=far)], N),
        model([node("Concat", "x x", axis=-far)], N),
        model([node("DepthToSpace", "x", blocksize=-2)], {"x": (*"NCHW",)}),
        model([node("DepthToSpace", "x", blocksize=0)], {"x": (*"NCHW",)}),
        model([node("SpaceToDepth", "x", blocksize=far)], {"x": (*"NCHW",)}),
        model([node("MaxPool", "x", kernel_shape=[0, -1])], {"x": (*"NCHW",)}),
        model([node("MaxPool", "x", kernel_shape=[3], strides=[0])], {"x": (*"NCH",)}),
        model([node("MaxPool", "x", kernel_shape=[far], pads=[far, far])], {"x": (*"NCH",)}),
        model([node("Conv", "x w", group=-1)], {"x": (*"NCH",), "w": ("M", "K", 3)}),
        model([node("Conv", "x w", dilations=[far])], {"x": (*"NCH",), "w": ("M", "K", "L")}),
        model([node("Resize", "x - s")], N, {"s": np.array([np.inf, np.nan], np.float32)}),
        model([node("Resize", "x - s")], N, {"s": np.array([1e38, -1], np.float32)}),
        model([node("Split", "x", "y z", num_outputs=-far)], N),
        model([node("TopK", "x k", "y z")], N, {"k": ints(-far)}),
        model([node("LSTM", "x w r", "y", hidden_size=-1)], {"x": (*"TNC",), "w": None, "r": None}),
        model([node("Einsum", "x", equation="...i...->")], N),
        model([node("Einsum", "x", equation="->,")], N),
        model([node("GatherND", "x i", batch_dims=-3)], {"x": (*"NC",), "i": ("N", 1)}),
        model([node("Shape", "x", start=far, end=-far)], N),
        model(
            [node("Scan", "x", "y", num_scan_inputs=far, body=EMPTY)],
            N,
        ),
        model([node("Loop", "x", "y", body=EMPTY)], N),
        model([node("If", "x", "y", then_branch=EMPTY)], N),
        # Fewer operands than the document asks for, and more.
        *(
            model([node(op, "x" if count else "", "y z w")], {"x": shape})
            for op in [
                "Add",
                "Where",
                "Expand",
                "Reshape",
                "Slice",
                "Gather",
                "MatMul",
                "Gemm",
                "Conv",
                "Concat",
                "Split",
                "Pad",
            ]
            for count in (0, 1)
            for shape in (("N",), (), None)
        ),
    ],
)
def test_hostile_nodes_give_valid_sizes(made: Any) -> None:
    found = flowing(made)
    found.counts()
    for value in found.graph.values():
        for size in found.shape_of(value) or ():
            assert not isinstance(size, int) or 0 <= size < 2**63


def test_hostile_names_and_sizes_are_read() -> None:
    shape = ("(" * 500, "N" * 5000, "1 // 0", "-5", "N - 9", "9" * 30, "max(", "or", "a\nb", "0")
    found = flowing(model([node("Relu", "x")], {"x": shape}))
    assert len(found.shape_of(found.graph.outputs[0]) or ()) == len(shape)
    assert "N >= 9" in needs(found)


def test_negative_size_in_the_file_is_unknown() -> None:
    content = model([node("Relu", "x")], {"x": (1, 3)})
    content.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -7
    content.graph.output[0].type.tensor_type.shape.dim.add().dim_value = -1
    content.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 3
    assert shapes(flowing(content))["y"] == "?, 3"


def test_vectors_beyond_the_limit_are_not_followed() -> None:
    nodes = [node("Shape", "s", "t"), node("ConstantOfShape", "t", "y")]
    found = flowing(model(nodes, {"s": (1,) * 70}))
    assert shapes(found)["y"] is None


def test_endlessly_growing_expressions_are_cut() -> None:
    nodes = [node("Shape", "x", "h0")]
    for k in range(40):
        nodes.append(node("Mul", f"h{k} h{k}", f"g{k}"))
        nodes.append(node("Add", f"g{k} one", f"h{k + 1}"))
    nodes.append(node("ConstantOfShape", "h40", "y"))
    found = flowing(model(nodes, {"x": ("N", "M")}, {"one": ints(1)}))
    assert shapes(found)["y"] == "?, ?"


def test_many_broadcast_sizes_are_bounded() -> None:
    inputs = {f"x{k}": (f"N{k}", 3) for k in range(60)}
    nodes = [node("Add", "x0 x1", "h1")]
    nodes += [node("Add", f"h{k - 1} x{k}", f"h{k}") for k in range(2, 60)]
    nodes.append(node("Relu", "h59"))
    found = flowing(model(nodes, inputs))
    assert len(found.shape_of(found.graph.outputs[0]) or ()) == 2
    assert len(found.conditions) >= 10


def test_large_dynamic_model_is_inferred() -> None:
    weights = {
        "i0": np.array(0),
        "i1": np.array(1),
        "a0": ints(0),
        "head": ints(4, 2),
        "w": ints(8),
    }
    nodes, last = [], "x"
    while len(nodes) < 10_000:
        p = f"l{len(nodes)}_"
        nodes += [
            node("MatMul", f"{last} weight", f"{p}q"),
            node("Shape", f"{p}q", f"{p}s"),
            node("Gather", f"{p}s i0", f"{p}b"),
            node("Gather", f"{p}s i1", f"{p}t"),
            node("Unsqueeze", f"{p}b a0", f"{p}b1"),
            node("Unsqueeze", f"{p}t a0", f"{p}t1"),
            node("Concat", f"{p}b1 {p}t1 head", f"{p}target", axis=0),
            node("Reshape", f"{p}q {p}target", f"{p}h"),
            node("Transpose", f"{p}h", f"{p}k", perm=[0, 2, 3, 1]),
            node("Transpose", f"{p}h", f"{p}v", perm=[0, 2, 1, 3]),
            node("MatMul", f"{p}v {p}k", f"{p}a"),
            node("Add", f"{p}a mask", f"{p}m"),
            node("Concat", f"{p}b1 {p}t1 w", f"{p}back", axis=0),
            node("Transpose", f"{p}v", f"{p}u", perm=[0, 2, 1, 3]),
            node("Reshape", f"{p}u {p}back", f"{p}o"),
            node("Add", f"{p}o {last}", f"{p}y"),
        ]
        last = f"{p}y"
    nodes.append(node("Relu", last))
    weights["weight"] = np.ones((8, 8), np.float32)
    inputs = {"x": ("B", "T", 8), "mask": ("B", 1, "T", "S")}
    found = flowing(model(nodes, inputs, weights))
    counts = found.counts()
    assert counts.tensors == counts.ranks > 10_000
    assert counts.sizes == counts.axes
    assert needs(found) == ["S == T or T == 1 or S == 1"]


def test_large_model_of_different_sizes_is_inferred() -> None:
    nodes = [node("Concat", f"h{k} one", f"h{k + 1}", axis=0) for k in range(3000)]
    nodes.append(node("Relu", "h3000"))
    content = model(nodes, {"h0": ("N", 3)}, {"one": np.ones((1, 3), np.float32)})
    assert shapes(flowing(content))["y"] == "N + 3000, 3"


def test_sequences_and_optionals_have_no_shape() -> None:
    sequence = helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)
    content = model([node("SequenceAt", "q i")], {}, {"i": np.array(0)})
    content.graph.input.append(sequence)
    assert shapes(flowing(content))["y"] is None


def test_nested_broadcasts_are_bounded() -> None:
    # Each size is a broadcast of the last one and a new one: cases of cases, without a bound.
    nodes = []
    for k in range(30):
        nodes.append(node("Concat", f"h{k} one", f"c{k}", axis=0))
        nodes.append(node("Add", f"c{k} h0", f"h{k + 1}"))
    nodes.append(node("Relu", "h30"))
    found = flowing(model(nodes, {"h0": ("N", 3)}, {"one": np.ones((1, 3), np.float32)}))
    assert len(found.shape_of(found.graph.outputs[0]) or ()) == 2
    assert any("too many cases" in note for note in found.notes)
