"""Ops that a converter lacks, as other ops: they compute the same by ONNX's own reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

import zerostride as zs
from models.prepared_models import Array, compared, random, saved
from zerostride.models.formats.onnx.prepared import reads_rows, rewritten, with_shapes
from zerostride.runtimes.convert.prepare import prepared


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
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    data=st.data(),
    op=st.sampled_from(["Mean", "Sum", "L1", "L2", "LogSum", "LogSumExp", "Prod", "SumSquare"]),
    keep=st.booleans(),
)
def test_reductions_over_one_axis(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[int],
    data: st.DataObject,
    op: str,
    keep: bool,
) -> None:
    folder = tmp_path_factory.mktemp("models")
    x = random(*shape)
    axes = np.array([data.draw(st.integers(-len(shape), len(shape) - 1))])
    node = helper.make_node(f"Reduce{op}", ["x", "axes"], ["y"], keepdims=int(keep))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], {"axes": axes})
    goal = folder / "new.onnx"
    compared(path, {"x": x}, {f"Reduce{op}", "ReduceSum"}, goal)
    kept = onnx.load(goal).graph
    numbers = {tensor.name: tensor for tensor in kept.initializer}
    (one,) = [node for node in kept.node if node.op_type.startswith("Reduce")]
    assert list(numbers[one.input[1]].dims) == [2]


def test_lines_and_matrices_in_the_form_of_images(tmp_path: Path) -> None:
    x = random(2, 3, 5)
    constants = {name: np.abs(random(3)) + k for k, name in enumerate("abcd")}
    nodes = [
        helper.make_node("InstanceNormalization", ["x", "a", "b"], ["i"]),
        helper.make_node("ReduceMax", ["i", "last"], ["m"], keepdims=0),
        helper.make_node("BatchNormalization", ["m", "a", "b", "c", "d"], ["y"], epsilon=0.1),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], constants | {"last": np.array([2])})
    ops = {"InstanceNormalization", "BatchNormalization"}
    assert "BatchNormalization" not in compared(path, {"x": x}, ops, tmp_path / "new.onnx")


@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (3,)])
def test_a_line_of_bias(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = random(2, 4)
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], beta=2.0)
    path = saved(
        tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"w": random(4, 3), "c": random(*shape)}
    )
    if shape == (1, 3):
        compared(path, {"x": x}, {"Gemm"}, tmp_path / "new.onnx")
    else:
        with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
        assert not rewritten(tmp_path / "new.onnx", frozenset({"Gemm"}))


@pytest.mark.parametrize(("op", "bound"), [("Max", -np.inf), ("Min", np.inf), ("Max", 0.0)])
def test_bounds_that_no_number_passes(tmp_path: Path, op: str, bound: float) -> None:
    x = random(2, 3)
    node = helper.make_node(op, ["x", "bound"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"bound": np.float32(bound)})
    if bound:
        assert compared(path, {"x": x}, {op}, tmp_path / "new.onnx") == {"Identity"}
    else:
        with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
        assert not rewritten(tmp_path / "new.onnx", frozenset({op}))


@pytest.mark.parametrize(("bound", "drops"), [(20, True), (17, True), (10, False)])
def test_softplus_of_large_numbers(tmp_path: Path, bound: float, drops: bool) -> None:
    x = np.linspace(-30, 60, 91, dtype=np.float32)
    nodes = [
        helper.make_node("Softplus", ["x"], ["s"]),
        helper.make_node("Greater", ["x", "bound"], ["g"]),
        helper.make_node("Where", ["g", "x", "s"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], {"bound": np.float32(bound)})
    if drops:
        assert "Where" not in compared(path, {"x": x}, {"Where"}, tmp_path / "new.onnx")
    else:
        with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
        assert not rewritten(tmp_path / "new.onnx", frozenset({"Where"}))


@settings(deadline=None, max_examples=40)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    parts=st.integers(1, 2),
    inverse=st.booleans(),
    data=st.data(),
)
def test_transforms_along_any_axis(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[int],
    parts: int,
    inverse: bool,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = random(*shape, parts)
    node = helper.make_node("DFT", ["x"], ["y"], axis=axis, inverse=int(inverse))
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"])
    numbers = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    waves = (np.fft.ifft if inverse else np.fft.fft)(numbers, axis=axis)
    expected = np.stack([waves.real, waves.imag], axis=-1)
    assert "DFT" not in compared(path, {"x": x}, {"DFT"}, folder / "new.onnx", expected)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 1), (2, 3, 4, 1), (3, 4, 2), (4, 1)])
@pytest.mark.parametrize("version", [17, 19, 20])
def test_transforms_along_the_axis_that_the_op_set_means(
    tmp_path: Path, version: int, shape: tuple[int, ...]
) -> None:
    x, axis = random(*shape), 1 if version < 20 else len(shape) - 2
    node = helper.make_node("DFT", ["x"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], version=version)
    if axis == len(shape) - 1:  # the parts of a number are no axis
        with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
        assert not rewritten(tmp_path / "new.onnx", frozenset({"DFT"}))
    else:  # by onnx's reference
        assert "DFT" not in compared(path, {"x": x}, {"DFT"}, tmp_path / "new.onnx")


def test_external_numbers_come_inside(tmp_path: Path) -> None:
    x, k = random(2, 3), random(3, 4)
    node = helper.make_node("MatMul", ["x", "k"], ["y"])
    path, goal = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"k": k}), tmp_path / "n.onnx"
    data = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
    onnx.save(onnx.load(path), path, **data)
    with_shapes(path, goal, {"x": x.shape})
    (tmp_path / "m.data").unlink()
    (kept,) = onnx.load(goal).graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(kept), k)
    with pytest.raises(zs.ModelError, match=r"m\.data"):
        with_shapes(path, goal, {"x": x.shape})


@pytest.mark.parametrize(
    ("lacking", "passes"),
    [({"STFT", "Where", "ReduceMax"}, 1), ({"STFT", "Where"}, 0), ({"IsNaN", "Where"}, 0)],
)
def test_shapes_are_inferred_for_ops_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: set[str], passes: int
) -> None:
    x, infer, calls = random(2, 3), onnx.shape_inference.infer_shapes, []
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"])
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})

    def counted(model: onnx.ModelProto, **options: bool) -> onnx.ModelProto:
        calls.append(model)
        return infer(model, **options)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", counted)
    rewritten(tmp_path / "new.onnx", frozenset(lacking))
    assert len(calls) == passes


def test_old_op_sets_become_newer(tmp_path: Path) -> None:
    x = random(1, 4, 6)
    node = helper.make_node("ReduceMax", ["x"], ["y"], axes=[-1], keepdims=0)
    values = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b", "c"])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "m", [values], [result])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6),
        tmp_path / "m.onnx",
    )
    left = compared(tmp_path / "m.onnx", {"x": x}, {"ReduceMax"}, tmp_path / "new.onnx")
    assert "MaxPool" in left


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


def test_error_function(tmp_path: Path) -> None:
    x = np.concatenate([np.linspace(-6, 6, 4001), [0, 1e-30, 30, -30]]).astype(np.float32)
    path = saved(tmp_path / "m.onnx", [helper.make_node("Erf", ["x"], ["y"])], {"x": x}, ["y"])
    assert "Erf" not in compared(path, {"x": x}, {"Erf"}, tmp_path / "new.onnx")


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
    else:  # IsNaN comes before Where in the graph, and is lacking, too
        ops = {"IsNaN", "Where"}
        assert not compared(path, {"x": x}, ops, tmp_path / "new.onnx") & {*ops, "Equal"}


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


def test_a_model_that_cannot_be_written_so_is_refused(tmp_path: Path) -> None:
    x = random(1, 8)
    constants = {"step": np.array(0), "length": np.array(4)}
    node = helper.make_node("STFT", ["x", "step", "", "length"], ["y"])
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], constants)
    with pytest.raises(zs.ModelError, match=r"m\.onnx: it cannot be written with other ops: Zero"):
        prepared("pnnx", "", path, tmp_path / "new.onnx", {"x": x}, 60)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], constants | {"step": np.array(2)})
    assert prepared("pnnx", "", path, tmp_path / "new.onnx", {"x": x}, 60).ops == ("STFT",)


def test_a_product_with_a_bias_has_no_reshapes_for_onnx2tf(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime would make a Gemm of both")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    x, constants = random(2, 4, 4), {"w": random(4, 4), "b": random(4)}
    path, goal = (
        saved(tmp_path / "m.onnx", nodes, {"x": x}, ["y"], constants),
        tmp_path / "new.onnx",
    )
    for again, product in ((False, "Gemm"), (True, "MatMul")):
        prepared("onnx2tf", "", path, goal, {"x": x}, 60, again)
        assert product in {node.op_type for node in onnx.load(goal).graph.node}
