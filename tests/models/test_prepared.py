"""Ops that a converter lacks, as other ops: they compute the same by ONNX's own reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import zerostride as zs
from zerostride.models.formats.onnx.prepared import (
    reads_rows,
    rewritten,
    with_functions,
    with_shapes,
)
from zerostride.runtimes.convert.prepare import prepared

Array = np.ndarray[Any, Any]


def saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Array],
    outputs: list[str],
    constants: dict[str, Array] | None = None,
    kinds: dict[str, int] | None = None,
) -> Path:
    """A model whose inputs have open sizes."""
    values = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}{k}" for k in range(array.ndim)],
        )
        for name, array in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), None)
        for name in outputs
    ]
    held = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "m", values, results, held)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path
    )
    return path


def compared(
    path: Path,
    inputs: dict[str, Array],
    lacking: set[str],
    goal: Path,
    expected: Array | None = None,
) -> set[str]:
    """The ops of the rewritten model, which computes what the model computes, or `expected`."""
    with_shapes(path, goal, {name: array.shape for name, array in inputs.items()})
    done = {*with_functions(goal, frozenset(lacking)), *rewritten(goal, frozenset(lacking))}
    new = onnx.load(goal)
    onnx.shape_inference.infer_shapes(new, strict_mode=True)
    with np.errstate(all="ignore"):
        meant = ReferenceEvaluator(str(path)).run(None, inputs) if expected is None else [expected]
        pairs = zip(meant, ReferenceEvaluator(new).run(None, inputs), strict=True)
    for want, got in pairs:
        assert np.shape(want) == np.shape(got)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    assert done
    return {node.op_type for node in new.graph.node}


def random(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("state", [True, False])
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_recurrent_layers(tmp_path: Path, op: str, after: int, state: bool, steps: int) -> None:
    gates = {"LSTM": 4, "GRU": 3}[op]
    constants = {
        "w": random(1, 2 * gates, 3),
        "r": random(1, 2 * gates, 2),
        "b": random(1, 4 * gates),
    }
    inputs = {"x": random(steps, 2, 3)}
    names = ["x", "w", "r", "b", ""]
    if state:
        inputs["h"] = random(1, 2, 2)
        names.append("h")
    attributes = {"linear_before_reset": after} if op == "GRU" else {}
    node = helper.make_node(op, names, ["y", "last"], hidden_size=2, **attributes)
    path = saved(tmp_path / "m.onnx", [node], inputs, ["y", "last"], constants)
    assert op not in compared(path, inputs, {op}, tmp_path / "new.onnx")


@settings(deadline=None, max_examples=40)
@given(
    size=st.integers(1, 12),
    step=st.integers(1, 5),
    more=st.integers(0, 20),
    batch=st.integers(1, 2),
    onesided=st.booleans(),
    window=st.booleans(),
    rank=st.sampled_from([2, 3]),
)
def test_short_time_transform(
    tmp_path_factory: pytest.TempPathFactory,
    size: int, step: int, more: int, batch: int, onesided: bool, window: bool, rank: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("models")
    x = random(batch, size + more).reshape((batch, size + more, 1)[:rank])
    constants = {"step": np.array(step), "window": random(size), "length": np.array(size)}
    names = ["x", "step", "window" if window else "", "length"]
    node = helper.make_node("STFT", names, ["y"], onesided=int(onesided))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], constants)
    frames = sliding_window_view(x.reshape(batch, -1).astype(np.float64), size, axis=1)[:, ::step]
    waves = np.fft.fft(frames * (constants["window"] if window else 1))
    waves = waves[..., : size // 2 + 1] if onesided else waves
    expected = np.stack([waves.real, waves.imag], axis=-1)
    assert "STFT" not in compared(path, {"x": x}, {"STFT"}, folder / "new.onnx", expected)


@settings(deadline=None, max_examples=40)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    data=st.data(),
    op=st.sampled_from(["ReduceMax", "ReduceMin", "ReduceSumSquare"]),
    keep=st.booleans(),
)
def test_reductions(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[int],
    data: st.DataObject,
    op: str,
    keep: bool,
) -> None:
    folder = tmp_path_factory.mktemp("models")
    x = random(*shape)
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = np.arange(first, len(shape)) - data.draw(st.sampled_from([0, len(shape)]))
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=int(keep))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"axes": axes})
    assert op not in compared(path, {"x": x}, {op}, folder / "new.onnx")


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
def test_rows_that_follow_one_another(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    first = data.draw(st.integers(0, shape[axis] - 1))
    count = data.draw(st.integers(1, shape[axis] - first))
    rows = np.arange(first, first + count) if data.draw(st.booleans()) else np.array(first)
    x = random(*shape)
    node = helper.make_node("Gather", ["x", "rows"], ["y"], axis=axis - len(shape))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"rows": rows})
    assert "Gather" not in compared(path, {"x": x}, {"Gather"}, folder / "new.onnx")


def test_rows_in_another_order_stay(tmp_path: Path) -> None:
    x = random(4, 3)
    node = helper.make_node("Gather", ["x", "rows"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"rows": np.array([2, 0])})
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
    assert not rewritten(tmp_path / "new.onnx", frozenset({"Gather"}))


@pytest.mark.parametrize(("size", "onesided"), [(8, 0), (8, 1), (7, 1), (1, 0)])
def test_transform_of_a_line(tmp_path: Path, size: int, onesided: int) -> None:
    x = random(2, size, 1)
    node = helper.make_node("DFT", ["x"], ["y"], axis=1, onesided=onesided)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"])
    assert "DFT" not in compared(path, {"x": x}, {"DFT"}, tmp_path / "new.onnx")


def test_what_is_not_a_number(tmp_path: Path) -> None:
    x = np.array([1, np.nan, np.inf, -np.inf, np.finfo(np.float32).max], np.float32)
    nodes = [helper.make_node(op, ["x"], [op]) for op in ("IsNaN", "IsInf")]
    kinds = dict.fromkeys(("IsNaN", "IsInf"), TensorProto.BOOL)
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["IsNaN", "IsInf"], kinds=kinds)
    assert not compared(path, {"x": x}, {"IsNaN", "IsInf"}, tmp_path / "new.onnx") & {"IsNaN"}


def softmax(mask: Array | None) -> list[onnx.NodeProto]:
    """What PyTorch's exporter writes for a softmax that takes no masked rows."""
    add = [helper.make_node("Add", ["p", "mask"], ["s"])]
    return [
        helper.make_node("MatMul", ["x", "k"], ["p"]),
        *(add if mask is not None else [helper.make_node("Mul", ["p", "scale"], ["s"])]),
        helper.make_node("Softmax", ["s"], ["a"], axis=-1),
        helper.make_node("IsNaN", ["a"], ["n"]),
        helper.make_node("Where", ["n", "zero", "a"], ["y"]),
    ]


@pytest.mark.parametrize(
    ("mask", "drops"),
    [
        (None, True),
        (np.triu(np.full((3, 3), -np.inf, np.float32), 1), True),
        (np.array([[0, 0, 0], [-np.inf] * 3, [0, 0, 0]], np.float32), False),
        (np.array([[0, 0, np.inf]] * 3, np.float32), False),
    ],
)
def test_safe_softmax(tmp_path: Path, mask: Array | None, drops: bool) -> None:
    constants = {"k": random(4, 3), "zero": np.float32(0), "scale": np.float32(0.5)}
    if mask is not None:
        constants["mask"] = mask
    x = random(3, 4)
    path = saved(tmp_path / "m.onnx", softmax(mask), {"x": x}, ["y"], constants)
    if not drops:
        with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
        assert not rewritten(tmp_path / "new.onnx", frozenset({"Where"}))
    else:
        assert "IsNaN" not in compared(path, {"x": x}, {"Where"}, tmp_path / "new.onnx")


def test_ops_that_the_standard_defines_by_others(tmp_path: Path) -> None:
    x = random(2, 4, 3)
    nodes = [
        helper.make_node("Mish", ["x"], ["m"]),
        helper.make_node("Celu", ["m"], ["c"], alpha=2.0),
        helper.make_node("HardSwish", ["c"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"])
    left = compared(path, {"x": x}, {"Mish", "Celu"}, tmp_path / "new.onnx")
    assert not left & {"Mish", "Celu"}
    assert "HardSwish" in left


def test_tables_of_rows(tmp_path: Path) -> None:
    ids = np.array([[1, 0]])
    for constants, attributes, expected in (
        ({"w": random(3, 2)}, {}, True),
        ({"w": random(3, 2)}, {"axis": 1}, False),
        ({"w": random(3)}, {}, False),
    ):
        node = helper.make_node("Gather", ["w", "ids"], ["y"], **attributes)
        path = saved(tmp_path / "m.onnx", [node], {"ids": ids}, ["y"], constants)
        assert reads_rows(path) is expected


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("zero", [True, False])
def test_weights_in_8_bits(tmp_path: Path, axis: int | None, zero: bool) -> None:
    numbers = np.random.default_rng(0)
    count = () if axis is None else (3,) if axis == 0 else (4,)
    constants = {
        "w": numbers.integers(-128, 128, (3, 4)).astype(np.int8),
        "s": numbers.uniform(0.01, 1, count).astype(np.float32),
        "z": numbers.integers(-5, 5, count).astype(np.int8),
    }
    names = ["w", "s", "z"] if zero else ["w", "s"]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["f"], axis=1 if axis is None else axis),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    x = random(2, 3)
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], constants)
    left = compared(path, {"x": x}, {"DequantizeLinear"}, tmp_path / "new.onnx")
    assert "DequantizeLinear" not in left


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
    assert compared(path, {"x": x}, {"Expand"}, folder / "new.onnx") == {"Concat"}


def test_a_model_that_cannot_be_written_so_is_refused(tmp_path: Path) -> None:
    x = random(1, 8)
    constants = {"step": np.array(0), "length": np.array(4)}
    node = helper.make_node("STFT", ["x", "step", "", "length"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], constants)
    with pytest.raises(zs.ModelError, match=r"m\.onnx: it cannot be written with other ops: Zero"):
        prepared("pnnx", "", path, tmp_path / "new.onnx", {"x": x}, 60)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], constants | {"step": np.array(2)})
    assert prepared("pnnx", "", path, tmp_path / "new.onnx", {"x": x}, 60) == ("STFT",)
