"""Executed graphs: every op of the table, rules of old op sets, bodies, refusals, limits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from onnx import TensorProto, helper

from zerostride.errors import ModelError, ZerostrideError
from zerostride.models.execute import execute, not_executed
from zerostride.models.execute import run as walk
from zerostride.models.onnx_ops.kernels import call

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def count(*shape: int) -> Any:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def test_chain_of_nodes_is_executed(read: Any) -> None:
    nodes = [
        small.node("Add", "x c", "h", name="add"),
        small.node("Transpose", "h", "t", name="turn", perm=[1, 0]),
        small.node("Mul", "t t", name="square"),
    ]
    graph = read(small.model(nodes, {"x": (2, 3)}, {"c": np.array([1, 2, 3], np.float32)}))
    outputs = execute(graph, {"x": count(2, 3)})
    expected = (count(2, 3) + np.array([1, 2, 3], np.float32)).T ** 2
    assert list(outputs) == ["y"]
    np.testing.assert_array_equal(outputs["y"], expected)
    # What lies between is to be had by its name, and nothing else is computed.
    np.testing.assert_array_equal(execute(graph, {"x": count(2, 3)}, ["t"])["t"], (
        count(2, 3) + np.array([1, 2, 3], np.float32)).T)  # fmt: skip


def test_old_op_sets_use_their_own_rule(read: Any) -> None:
    node = small.node("Add", "x b", broadcast=1, axis=0)
    graph = read(small.model([node], {"x": (3, 3), "b": (3,)}, opset=6))
    outputs = execute(graph, {"x": np.zeros((3, 3), np.float32), "b": count(3)})
    np.testing.assert_array_equal(outputs["y"], np.repeat(count(3)[:, None], 3, 1))


def test_axes_may_be_an_attribute_or_an_operand(read: Any) -> None:
    x = count(2, 3, 4)
    old = small.model([small.node("ReduceSum", "x", axes=[1], keepdims=0)], {"x": (2, 3, 4)},
                      opset=11)  # fmt: skip
    new = small.model(
        [small.node("ReduceSum", "x a", keepdims=0)], {"x": (2, 3, 4)}, {"a": np.array([1])}
    )
    for content in (old, new):
        np.testing.assert_array_equal(execute(read(content), {"x": x})["y"], x.sum(1))


def test_softmax_of_old_op_sets_covers_all_later_axes(read: Any) -> None:
    x = count(2, 3, 4)
    graph = read(small.model([small.node("Softmax", "x", axis=1)], {"x": (2, 3, 4)}, opset=12))
    output = execute(graph, {"x": x})["y"]
    np.testing.assert_allclose(output.sum((1, 2)), 1, rtol=1e-6)


def test_integers_divide_towards_zero(read: Any) -> None:
    info = [helper.make_tensor_value_info(name, INT64, (4,)) for name in "ab"]
    out = helper.make_tensor_value_info("y", INT64, None)
    for op, attributes, expected in (
        ("Div", {}, [-3, -3, 3, 0]),
        ("Mod", {}, [1, -1, 1, 0]),
        ("Mod", {"fmod": 1}, [-1, 1, 1, 0]),
    ):
        node = helper.make_node(op, ["a", "b"], ["y"], **attributes)
        graph = read(helper.make_model(helper.make_graph([node], "g", info, [out])))
        given = {"a": np.array([-7, 7, 7, 0]), "b": np.array([2, -2, 2, 5])}
        assert execute(graph, given)["y"].tolist() == expected
        with pytest.raises(ModelError, match="divided by zero"):
            execute(graph, {"a": np.arange(4), "b": np.arange(4)})


def test_symbol_has_one_value(read: Any) -> None:
    graph = read(small.model([small.node("Add", "x z")], {"x": ("N", 3), "z": ("N", 1)}))
    execute(graph, {"x": count(2, 3), "z": count(2, 1)})
    with pytest.raises(ZerostrideError, match="calls N, is 4, but 2 in 'x'"):
        execute(graph, {"x": count(2, 3), "z": count(4, 1)})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"not given: x \(2,3\) float32"),
        ({"x": count(2, 3), "xx": 1}, "no input 'xx'; did you mean 'x'"),
        ({"x": count(3, 2)}, "axis 0 is 2 in the model"),
        ({"x": count(6)}, "of rank 1; the model wants"),
        ({"x": np.zeros((2, 3))}, "is float64; the model wants float32"),
        ({"x": [["a"]]}, "the model wants float32"),
        ({"x": [[1], [2, 3]]}, "is not an array"),
        ({"x": np.array([{}])}, "element type object"),
    ],
)
def test_wrong_inputs_are_refused(read: Any, given: Any, words: str) -> None:
    graph = read(small.model([small.node("Add", "x x")], {"x": (2, 3)}))
    with pytest.raises(ZerostrideError, match=words):
        execute(graph, given)


def test_numbers_are_converted_to_the_models_type(read: Any) -> None:
    graph = read(small.model([small.node("Add", "x x")], {"x": (2,)}))
    output = execute(graph, {"x": [1, 2]})["y"]
    assert (output.dtype, output.tolist()) == (np.float32, [2.0, 4.0])
    integers = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT8, (1,))],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
    )
    with pytest.raises(ZerostrideError, match="int8 does not hold"):
        execute(read(helper.make_model(integers)), {"x": [300]})


def test_unsupported_ops_are_named_before_execution(read: Any) -> None:
    nodes = [
        small.node("Reshape", "x s", "r", name="would_fail"),
        small.node("NonMaxSuppression", "r r", "h", name="boxes"),
        small.node("Optional", "h", "y", name="cells"),
        small.node("Optional", "x", "unused", name="nobody_reads_it"),
    ]
    graph = read(small.model(nodes, {"x": (2, 3)}, {"s": np.array([7])}))
    with pytest.raises(ModelError) as caught:
        execute(graph, {"x": count(2, 3)})
    assert "2 of its nodes" in str(caught.value)
    assert "NonMaxSuppression: boxes; Optional: cells" in str(caught.value)
    assert [one.op for one in not_executed(graph)] == ["NonMaxSuppression", "Optional"]
    # An output that needs none of them is computed all the same.
    assert not not_executed(graph, ["x"])


def test_error_names_node_and_operands(read: Any) -> None:
    graph = read(small.model([small.node("Add", "x z", name="sum")], {"x": None, "z": None}))
    with pytest.raises(ModelError, match=r"node 'sum' \(Add\).*x \(2, 3\) float32, z \(4,\)"):
        execute(graph, {"x": count(2, 3), "z": count(4)})
    graph = read(small.model([small.node("Add", "x z")], {"x": (1,)}, {"z": np.array([1])}))
    with pytest.raises(ModelError, match="one element type"):
        execute(graph, {"x": count(1)})


@pytest.mark.parametrize(
    ("op", "more"),
    [("Expand", {}), ("ConstantOfShape", {}), ("Tile", {}), ("Pad", {"mode": "constant"})],
)
def test_created_tensors_are_bounded(read: Any, op: str, more: Any) -> None:
    huge = {"n": np.array([2**40] if op != "Pad" else [0, 2**40])}
    operands = "n" if op == "ConstantOfShape" else "x n"
    content = small.model([small.node(op, operands, **more)], {"x": (1,)}, huge)
    with pytest.raises(ModelError, match="bytes; at most"):
        execute(read(content), {"x": count(1)})


def test_broadcast_is_bounded(read: Any) -> None:
    graph = read(small.model([small.node("Add", "x z")], {"x": (2**17, 1), "z": (2**17,)}))
    with pytest.raises(ModelError, match="bytes; at most"):
        execute(graph, {"x": np.zeros((2**17, 1), np.float32), "z": np.zeros(2**17, np.float32)})


def _body(nodes: Any, inputs: Any, outputs: Any) -> Any:
    return helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in inputs],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs],
    )


def test_branches_are_executed(read: Any) -> None:
    then = _body([helper.make_node("Add", ["x", "c"], ["t"])], [], [("t", FLOAT)])
    other = _body([helper.make_node("Neg", ["x"], ["e"])], [], [("e", FLOAT)])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other)
    content = small.model([node], {"x": (3,)}, {"c": np.ones(3, np.float32)})
    content.graph.input.append(helper.make_tensor_value_info("flag", BOOL, ()))
    graph = read(content)
    x = count(3)
    np.testing.assert_array_equal(execute(graph, {"x": x, "flag": True})["y"], x + 1)
    np.testing.assert_array_equal(execute(graph, {"x": x, "flag": False})["y"], -x)


def _loop(turns: Any) -> Any:
    nodes = [
        helper.make_node("Add", ["s", "x"], ["s2"]),
        helper.make_node("Identity", ["go"], ["go2"]),
        helper.make_node("Identity", ["s2"], ["scan"]),
    ]
    inputs = [("i", INT64, ()), ("go", BOOL, ()), ("s", FLOAT, (2,))]
    body = _body(nodes, inputs, [("go2", BOOL), ("s2", FLOAT), ("scan", FLOAT)])
    node = helper.make_node("Loop", ["n", "", "z"], ["last", "y"], body=body)
    weights = {"n": np.array(turns), "z": np.zeros(2, np.float32)}
    return small.model([node], {"x": (2,)}, weights, outputs=("last", "y"))


def test_loops_are_executed(read: Any) -> None:
    outputs = execute(read(_loop(3)), {"x": count(2)})
    np.testing.assert_array_equal(outputs["last"], count(2) * 3)
    np.testing.assert_array_equal(outputs["y"], [count(2), count(2) * 2, count(2) * 3])


def test_endless_loop_reaches_the_limit(read: Any, monkeypatch: Any) -> None:
    with pytest.raises(ModelError, match="more work than the limit of 50 "):
        execute(read(_loop(2**62)), {"x": count(2)}, limit=50)
    monkeypatch.setattr(walk, "MAX_WORK", 60)
    with pytest.raises(ModelError, match="more work than the limit of 60 "):
        execute(read(_loop(2**62)), {"x": count(2)})


def test_limit_counts_loop_turns_nodes_and_large_results(read: Any) -> None:
    nodes = len(read(_loop(3)).nodes[0].bodies[0].nodes)
    execute(read(_loop(3)), {"x": count(2)}, limit=3 * (1 + nodes))
    with pytest.raises(ModelError, match="more work"):
        execute(read(_loop(3)), {"x": count(2)}, limit=3 * (1 + nodes) - 1)
    large = small.model([small.node("Neg", "x", "y")], {"x": (2**15,)})
    execute(read(large), {"x": count(2**15)}, limit=1)  # outside loops a node is free


#: Models of less than a KB that compute for hours, or fill any memory, if nothing stops them.
_ENDLESS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "tiles": (
        [small.node("Tile", f"t{k} r" if k else "x r", f"t{k + 1}") for k in range(24)]
        + [small.node("Neg", f"t{k + 1}", f"n{k}") for k in range(24)]
        + [small.node("Concat", " ".join(f"n{k}" for k in range(24)), "y", axis=0)],
        {"r": np.array([2])},
    ),
    "expands": (
        [small.node("Expand", "x r", "t")]
        + [small.node("Exp", "t" if k == 0 else f"e{k}", f"e{k + 1}") for k in range(400)]
        + [small.node("Neg", "e400", "y")],
        {"r": np.array([2**17, 2])},
    ),
    "products": (
        [small.node("Expand", "x r", "t"), small.node("MatMul", "t t", "m0")]
        + [small.node("MatMul", f"m{k} t", f"m{k + 1}") for k in range(40)]
        + [small.node("Neg", "m40", "y")],
        {"r": np.array([512, 2]).repeat([2, 0])},
    ),
}


@pytest.mark.parametrize("name", ["tiles", "expands", "products"])
def test_work_without_loops_is_bounded(name: str, read: Any, monkeypatch: Any) -> None:
    nodes, weights = _ENDLESS[name]
    content = small.model(nodes, {"x": (1,) if name == "products" else (2,)}, weights)
    given = {"x": np.full(1 if name == "products" else 2, 0.5, np.float32)}
    with pytest.raises(ModelError, match=r"more work than the limit of 1000 \(--limit"):
        execute(read(content), given, limit=1000)


def test_steps_of_a_recurrent_layer_count_as_turns(read: Any) -> None:
    weights = {"w": (1, 1, 1), "r": (1, 1, 1)}
    content = small.model(
        [small.node("RNN", "x w r", "y", hidden_size=1)], {"x": (20, 1, 1)}, weights
    )
    execute(read(content), {"x": count(20).reshape(20, 1, 1)}, limit=21)
    with pytest.raises(ModelError, match="more work"):
        execute(read(content), {"x": count(20).reshape(20, 1, 1)}, limit=19)


def test_memory_of_live_tensors_is_bounded(read: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(walk, "MAX_ALIVE", 100)
    nodes = [small.node("Neg", "x", f"n{k}") for k in range(4)]
    content = small.model([*nodes, small.node("Sum", "n0 n1 n2 n3")], {"x": (8,)})
    with pytest.raises(ModelError, match="would take 128 bytes; at most 100"):
        execute(read(content), {"x": count(8)})
    chain = [small.node("Neg", f"n{k}" if k else "x", f"n{k + 1}") for k in range(9)]
    execute(read(small.model([*chain, small.node("Neg", "n9")], {"x": (8,)})), {"x": count(8)})


def test_loop_that_collects_too_much_ends_early(read: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(call, "MAX_BYTES", 8 * 50)
    with pytest.raises(ModelError, match="408 bytes; at most 400"):
        execute(read(_loop(2**62)), {"x": count(2)})


def test_values_are_freed_after_their_last_reader(read: Any) -> None:
    names = ["x", *(f"h{k}" for k in range(30)), "y"]
    nodes = [small.node("Neg", a, b) for a, b in pairwise(names)]
    graph = read(small.model(nodes, {"x": (4,)}))
    program = walk.prepare(graph)
    most = 0

    class Counting(dict[int, Any]):
        def __setitem__(self, key: int, value: Any) -> None:
            nonlocal most
            super().__setitem__(key, value)
            most = max(most, len(self))

    walk._Walk(graph, None).run(program, Counting({id(graph.inputs[0]): count(4)}))
    assert most <= 3


def test_results_belong_to_the_caller(read: Any) -> None:
    graph = read(small.model([small.node("Identity", "x")], {"x": (2,)}))
    x = count(2)
    output = execute(graph, {"x": x})["y"]
    output[0] = 9
    assert x[0] == 0
    expand = small.model([small.node("Expand", "x s")], {"x": (1,)}, {"s": np.array([3, 4])})
    output = execute(read(expand), {"x": count(1)})["y"]
    assert output.shape == (3, 4)
    assert output.flags.writeable


def test_missing_constants_are_named(read: Any, tmp_path: Path) -> None:
    content = small.model([small.node("Add", "x c")], {"x": (2,)}, {"c": (2,)})
    tensor = content.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    with pytest.raises(ModelError, match=r"'c' is missing: 'weights.bin'"):
        execute(read(content), {"x": count(2)})


def test_equal_kernels_give_equal_channels(read: Any) -> None:
    """Whatever the processor: a BLAS adds in another order at the edge of a matrix."""
    rng = np.random.default_rng(3)
    x = rng.random((1, 512, 13, 13)).astype(np.float32)
    kernels = np.tile(rng.random((1, 512, 1, 1)).astype(np.float32), (127, 1, 1, 1))
    graph = read(small.model([small.node("Conv", "x w")], {"x": x.shape}, {"w": kernels}))
    y = execute(graph, {"x": x})["y"]
    np.testing.assert_array_equal(y, np.broadcast_to(y[:, :1], y.shape))
