"""Parts, rows and orders of axes that a converter lacks, as other ops that compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from models.prepared_models import compared, random, saved
from zerostride.models.formats.onnx.prepared import in_order, rewritten, with_shapes

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=4), data=st.data())
def test_slices_in_steps(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    step = data.draw(st.integers(2, 3))
    shape[axis] *= step
    x = random(*shape)
    start = data.draw(st.integers(0, step - 1))
    bounds = {"a": [start], "b": [2**31], "c": [axis - len(shape)], "d": [step]}
    constants = {name: np.array(bound, np.int64) for name, bound in bounds.items()}
    node = helper.make_node("Slice", ["x", *constants], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], constants)
    assert "Reshape" in compared(path, {"x": x}, {"Slice"}, folder / "new.onnx")


@settings(deadline=None, max_examples=60)
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=4), data=st.data())
def test_constant_rows(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    row = st.integers(-shape[axis], shape[axis] - 1)
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=6) | row))
    if data.draw(st.booleans()):
        rows = np.stack([rows, rows])
    x = random(*shape)
    node = helper.make_node("Gather", ["x", "rows"], ["y"], axis=axis - len(shape))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"rows": rows})
    assert "Gather" not in compared(path, {"x": x}, {"Gather"}, folder / "new.onnx")


def test_many_rows_in_another_order_stay(tmp_path: Path) -> None:
    x = random(40, 3)
    node = helper.make_node("Gather", ["x", "rows"], ["y"])
    rows = np.arange(40)[::-1].copy()
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"rows": rows})
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
    assert not rewritten(tmp_path / "new.onnx", frozenset({"Gather"}))


@settings(deadline=None, max_examples=40)
@given(
    shape=st.lists(st.integers(2, 5), min_size=1, max_size=3),
    mode=st.sampled_from(["edge", "reflect", "wrap"]),
    data=st.data(),
)
def test_margins(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], mode: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    sizes = [data.draw(st.integers(0, n - 1)) for n in [*shape, *shape]]
    sizes[0] = max(sizes[0], 1)
    x = random(*shape)
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"pads": np.array(sizes)})
    pairs = list(zip(sizes[: len(shape)], sizes[len(shape) :], strict=True))
    expected = np.pad(x, pairs, mode=mode)  # type: ignore[call-overload]
    assert "Pad" not in compared(path, {"x": x}, {"Pad"}, folder / "new.onnx", expected)


@settings(deadline=None, max_examples=30)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    copies=st.integers(2, 5),
    data=st.data(),
)
def test_repeated_axis(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], copies: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape[axis] = 1
    x = random(*shape)
    sizes = np.array([copies if k == axis else 1 for k in range(len(shape))])
    node = helper.make_node("Expand", ["x", "sizes"], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"sizes": sizes})
    assert compared(path, {"x": x}, {"Expand"}, folder / "new.onnx") == {"Reshape", "Concat"}


@settings(deadline=None, max_examples=60)
@given(shape=SHAPES, data=st.data())
def test_slices_of_several_axes(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axes = data.draw(st.permutations(range(len(shape))))
    starts = [data.draw(st.integers(-shape[axis], shape[axis] - 1)) for axis in axes]
    ends = [s + data.draw(st.integers(1, 9)) if s >= 0 else 2**40 for s in starts]
    constants = {"a": np.array(starts), "b": np.array(ends), "c": np.array(axes)}
    x = random(*shape)
    node = helper.make_node("Slice", ["x", *constants], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], constants)
    goal = folder / "new.onnx"
    with_shapes(path, goal, {"x": x.shape})
    if rewritten(goal, frozenset({"Slice"})):
        compared(path, {"x": x}, {"Slice"}, goal)
        axes_left = [n for n in onnx.load(goal).graph.node if n.op_type == "Slice"]
        assert all(node.input[1] not in constants for node in axes_left)


@settings(deadline=None, max_examples=80)
@given(shape=st.lists(st.integers(1, 3), min_size=5, max_size=7), data=st.data())
def test_orders_of_many_axes(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    order = data.draw(st.permutations(range(len(shape))))
    x = random(*shape)
    node = helper.make_node("Transpose", ["x"], ["y"], perm=order)
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"])
    goal = folder / "new.onnx"
    compared(path, {"x": x}, {"Transpose"}, goal)
    perms = [list(n.attribute[0].ints) for n in onnx.load(goal).graph.node if n.attribute]
    assert all(len(perm) <= 4 and perm[0] == 0 for perm in perms)


@pytest.mark.parametrize("op", ["SpaceToDepth", "DepthToSpace"])
@pytest.mark.parametrize("size", [2, 3])
def test_blocks_of_images(tmp_path: Path, op: str, size: int) -> None:
    shape = (2, 2 * size**2, 3, 5) if op == "DepthToSpace" else (2, 3, 2 * size, 3 * size)
    x = random(*shape)
    node = helper.make_node(op, ["x"], ["y"], blocksize=size)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"])
    assert op not in compared(path, {"x": x}, {op}, tmp_path / "new.onnx")


def test_blocks_in_another_order_stay(tmp_path: Path) -> None:
    x = random(1, 8, 2, 3)
    node = helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="CRD")
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"])
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
    assert not rewritten(tmp_path / "new.onnx", frozenset({"DepthToSpace"}))


@settings(deadline=None, max_examples=40)
@given(shape=st.lists(st.integers(1, 4), min_size=2, max_size=4), data=st.data())
def test_places_of_leading_axes(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    count = data.draw(st.integers(1, len(shape)))
    place = st.tuples(*(st.integers(-n, n - 1) for n in shape[:count]))
    places = np.array(data.draw(st.lists(place, min_size=1, max_size=5)))
    x = random(*shape)
    node = helper.make_node("GatherND", ["x", "places"], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"places": places})
    compared(path, {"x": x}, {"GatherND"}, folder / "new.onnx")


@pytest.mark.parametrize("axis", [0, -3])
def test_tensors_behind_one_another(tmp_path: Path, axis: int) -> None:
    inputs = {"x": random(2, 3, 4), "y": random(1, 3, 4)}
    node = helper.make_node("Concat", ["x", "y", "x"], ["z"], axis=axis)
    path = saved(tmp_path / "m.onnx", [node], inputs, ["z"])
    assert "Reshape" in compared(path, inputs, {"Concat"}, tmp_path / "new.onnx")


def test_a_reshape_of_a_reshape_is_one(tmp_path: Path) -> None:
    x = random(4, 6)
    nodes = [
        helper.make_node("Reshape", ["x", "five"], ["a"]),
        helper.make_node("Reshape", ["a", "two"], ["y"]),
    ]
    constants = {"five": np.array([1, 2, 2, 3, 2]), "two": np.array([8, 3])}
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], constants)
    compared(path, {"x": x}, {"Reshape"}, tmp_path / "new.onnx")
    assert len(onnx.load(tmp_path / "new.onnx").graph.node) == 1


def test_rows_of_a_table_have_one_sample(tmp_path: Path) -> None:
    ids = np.array([[1, 0, 2, 2]])
    node = helper.make_node("Gather", ["w", "ids"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"ids": ids}, ["y"], {"w": random(3, 5)})
    assert compared(path, {"ids": ids}, {"Gather"}, tmp_path / "new.onnx") == {"Gather", "MaxPool"}


@settings(deadline=None, max_examples=40)
@given(shape=SHAPES, data=st.data())
def test_splits(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    shape[axis] = sum(sizes)
    x = random(*shape)
    names = [f"y{k}" for k in range(len(sizes))]
    node = helper.make_node("Split", ["x", "sizes"], names, axis=axis - len(shape))
    path = saved(folder / "m.onnx", [node], {"x": x}, names, {"sizes": np.array(sizes)})
    assert "Split" not in compared(path, {"x": x}, {"Split"}, folder / "new.onnx")


def test_results_lie_in_the_models_order_of_axes(tmp_path: Path) -> None:
    x = random(1, 4, 6)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["c"]),
        helper.make_node("Split", ["c"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], {"w": random(2, 6, 3)})
    goal = tmp_path / "new.onnx"
    with_shapes(path, goal, {"x": x.shape})
    in_order(goal)
    new = onnx.load(goal)
    assert [node.op_type for node in new.graph.node].count("Reshape") == 6
    assert len({node.name for node in new.graph.node}) == len(new.graph.node)
    np.testing.assert_array_equal(
        ReferenceEvaluator(new).run(None, {"x": x})[0],
        ReferenceEvaluator(str(path)).run(None, {"x": x})[0],
    )


@pytest.mark.parametrize("operand", [(), (4,), (4, 1), (2, 4, 4)])
def test_a_reshape_of_even_axes_is_one_of_operands(
    tmp_path: Path, operand: tuple[int, ...]
) -> None:
    x, constants = random(2, 4, 3), {"w": random(3, 4), "b": random(*operand), "k": random(4, 4, 3)}
    constants |= {"parts": np.array([2, 4, 2, 2]), "rows": np.array([8, 4])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["b", "p"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Reshape", ["r", "parts"], ["y"]),
        helper.make_node("Conv", ["x", "k"], ["even"], pads=[2, 1]),
        helper.make_node("Reshape", ["even", "rows"], ["z"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y", "z"], constants)
    goal = tmp_path / "new.onnx"
    with_shapes(path, goal, {"x": x.shape})
    in_order(goal)
    new = onnx.load(goal)
    (product,) = (node for node in new.graph.node if node.op_type == "MatMul")
    (reader,) = (node for node in new.graph.node if product.output[0] in node.input)
    assert reader.op_type == "Reshape"
    pairs = zip(
        ReferenceEvaluator(new).run(None, {"x": x}),
        ReferenceEvaluator(str(path)).run(None, {"x": x}),
        strict=True,
    )
    for got, want in pairs:
        np.testing.assert_array_equal(got, want)
