"""Lowered layers: onnx's reference evaluator computes OpenVINO's results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino_runs
import pytest

from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph, Value

pytest.importorskip("openvino", reason="asks the real OpenVINO")
onnx = pytest.importorskip("onnx", reason="computes the words with onnx's reference evaluator")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from ir_models import Ir  # noqa: E402

PDPD = 'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="1"'
CONV = 'strides="1, 2" pads_begin="1, 0" pads_end="0, 1" dilations="1, 1" auto_pad="explicit"'
POOL = 'kernel="2, 2" strides="1, 2" pads_begin="0, 1" pads_end="0, 0" auto_pad="explicit"'
CEIL = 'kernel="2, 3" strides="2, 2" pads_begin="0, 0" pads_end="0, 0" rounding_type="ceil"'
I64 = 'output_type="i64"'


def masks(begin: str, end: str, new: str, gone: str) -> str:
    """The masks of a StridedSlice, a digit an axis."""
    names = ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    rows = zip(names, (begin, end, new, gone, "0" * len(begin)), strict=True)
    return " ".join(f'{name}_mask="{",".join(mask)}"' for name, mask in rows)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def one(number: int) -> Any:
    return np.array(number, np.int64)


def whole(*shape: int) -> Any:
    """Whole numbers of both signs, none of them 0."""
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) - 5
    return np.where(array == 0, 3, array).astype(np.int32)


def reals(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def truths(*shape: int) -> Any:
    return np.arange(np.prod(shape)).reshape(shape) % 2 == 0


X = (2, 3, 4)
HEADS = (2, 2, 3, 5)
#: Op, operation set, attributes, inputs: a shape is an input of reals, an array a constant, and a
#: tuple ("in", array) an input of these numbers.
CASES: list[tuple[str, str, str, Sequence[Any]]] = [
    ("Add", "opset1", "", [X, (3, 1)]),
    ("Subtract", "opset1", 'auto_broadcast="none"', [X, X]),
    ("Multiply", "opset1", PDPD, [X, (3,)]),
    ("Divide", "opset1", "", [("in", whole(2, 6)), ("in", whole(6))]),
    ("Divide", "opset1", 'm_pythondiv="false"', [("in", whole(2, 6)), ("in", whole(6))]),
    ("Divide", "opset1", "", [X, (4,)]),
    ("Maximum", "opset1", "", [X, (4,)]),
    ("Minimum", "opset1", "", [X, (4,)]),
    ("Mod", "opset1", "", [("in", whole(2, 6)), ("in", whole(6))]),
    ("FloorMod", "opset1", "", [("in", whole(2, 6)), ("in", whole(6))]),
    ("SquaredDifference", "opset1", "", [X, (3, 1)]),
    ("NotEqual", "opset1", "", [("in", whole(2, 6)), ("in", whole(6))]),
    ("GreaterEqual", "opset1", "", [X, (4,)]),
    ("LogicalXor", "opset1", "", [("in", truths(2, 3)), ("in", truths(3))]),
    ("Select", "opset1", "", [("in", truths(3, 1)), X, (4,)]),
    ("PReLU", "opset1", "", [(2, 3, 3), (3,)]),
    ("Broadcast", "opset3", 'mode="explicit"', [(3,), ints(2, 3, 4), ints(1)]),
    ("Broadcast", "opset3", 'mode="bidirectional"', [(3, 1), ints(2, 1, 4)]),
    ("Broadcast", "opset3", 'mode="numpy"', [(3, 1), ints(2, 3, 4)]),
    ("Broadcast", "opset1", "", [(2,), ints(2, 3), ints(0)]),
    ("MatMul", "opset1", 'transpose_a="true" transpose_b="false"', [(2, 4, 3), (4, 5)]),
    ("MatMul", "opset1", 'transpose_a="false" transpose_b="true"', [(2, 3, 4), (4,)]),
    ("ScaledDotProductAttention", "opset13", 'causal="false"', [HEADS, HEADS, HEADS]),
    (
        "ScaledDotProductAttention",
        "opset13",
        'causal="false"',
        [(2, 2, 3, 5), (2, 2, 4, 5), (2, 2, 4, 6), (3, 4), np.array(0.3, np.float32)],
    ),
    (
        "ScaledDotProductAttention",
        "opset13",
        'causal="false"',
        [(2, 2, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5), ("in", np.eye(3, 4) + np.eye(3, 4, 1) > 0)],
    ),
    ("ReLU", "opset1", "", [X]),
    ("SoftMax", "opset1", 'axis="1"', [X]),
    ("SoftMax", "opset8", 'axis="-1"', [X]),
    ("LogSoftmax", "opset5", 'axis="-2"', [X]),
    ("Elu", "opset1", 'alpha="0.5"', [X]),
    ("HSigmoid", "opset5", "", [X]),
    ("Clamp", "opset1", 'min="-2" max="4"', [("in", whole(2, 6))]),
    ("HardSigmoid", "opset1", "", [X, np.array(0.3, np.float32), np.array(0.4, np.float32)]),
    ("HSwish", "opset4", "", [X]),
    ("SoftSign", "opset9", "", [X]),
    ("Gelu", "opset7", 'approximation_mode="tanh"', [X]),
    ("Swish", "opset4", "", [X]),
    ("Swish", "opset4", "", [X, np.array(0.5, np.float32)]),
    ("Clamp", "opset1", 'min="-0.5" max="0.7"', [X]),
    ("Round", "opset5", 'mode="half_to_even"', [X]),
    ("CumSum", "opset3", 'exclusive="true" reverse="true"', [X, one(1)]),
    (
        "MVN",
        "opset6",
        'normalize_variance="true" eps="0.01" eps_mode="inside_sqrt"',
        [X, ints(1, 2)],
    ),
    (
        "MVN",
        "opset6",
        'normalize_variance="true" eps="0.01" eps_mode="outside_sqrt"',
        [X, ints(-1)],
    ),
    ("MVN", "opset6", 'normalize_variance="false" eps="0.01" eps_mode="inside_sqrt"', [X, ints(2)]),
    ("NormalizeL2", "opset1", 'eps="0.1" eps_mode="add"', [X, ints(1)]),
    ("NormalizeL2", "opset1", 'eps="0.1" eps_mode="max"', [X, ints(1)]),
    ("Convert", "opset1", 'destination_type="i32"', [X]),
    ("ShapeOf", "opset3", I64, [X]),
    ("ShapeOf", "opset3", 'output_type="i32"', [X]),
    ("Reshape", "opset1", 'special_zero="true"', [X, ints(0, -1)]),
    ("Reshape", "opset1", 'special_zero="false"', [X, ints(4, -1)]),
    ("Squeeze", "opset1", "", [(2, 1, 3, 1), ints(1)]),
    ("Squeeze", "opset1", "", [(2, 1, 3, 1), one(-1)]),
    ("Unsqueeze", "opset1", "", [X, ints(0, 2)]),
    ("Unsqueeze", "opset1", "", [X, one(-1)]),
    ("Transpose", "opset1", "", [X, ints(2, 0, 1)]),
    ("Concat", "opset1", 'axis="-2"', [X, (2, 1, 4)]),
    ("Slice", "opset8", "", [X, ints(0, -1), ints(2, -9), ints(1, -2), ints(1, 2)]),
    ("Slice", "opset8", "", [X, ints(1), ints(100), ints(1)]),
    (
        "StridedSlice",
        "opset1",
        masks("01", "10", "00", "00"),
        [X, ints(1, 9), ints(9, 2), ints(1, 1)],
    ),
    (
        "StridedSlice",
        "opset1",
        masks("00", "00", "00", "01"),
        [X, ints(0, 1), ints(1, 9), ints(1, 1)],
    ),
    (
        "StridedSlice",
        "opset1",
        masks("00", "00", "00", "01"),
        [X, ints(0, -1), ints(1, 9), ints(1, 1)],
    ),
    (
        "StridedSlice",
        "opset1",
        masks("00", "01", "10", "00"),
        [X, ints(0, 1), ints(1, 9), ints(1, 1)],
    ),
    (
        "StridedSlice",
        "opset1",
        masks("10", "10", "00", "00"),
        [X, ints(0, 2), ints(0, 0), ints(-1, -1)],
    ),
    ("Gather", "opset8", 'batch_dims="0"', [X, ints(2, -1), one(1)]),
    ("Gather", "opset8", 'batch_dims="0"', [X, one(1), one(-1)]),
    ("GatherElements", "opset6", 'axis="1"', [X, np.zeros((2, 2, 4), np.int64)]),
    ("GatherND", "opset8", 'batch_dims="1"', [X, np.array([[0], [2]], np.int64)]),
    ("ScatterNDUpdate", "opset4", "", [X, np.array([[0], [1]], np.int64), (2, 3, 4)]),
    (
        "ScatterElementsUpdate",
        "opset3",
        "",
        [X, np.array([[[1, 0, 2, 0]]], np.int64), (1, 1, 4), one(1)],
    ),
    ("Range", "opset4", I64, [one(2), one(9), one(3)]),
    ("ReduceMean", "opset1", 'keep_dims="true"', [X, ints(0, -1)]),
    ("ReduceSum", "opset1", 'keep_dims="false"', [X, one(1)]),
    ("ReduceMax", "opset1", 'keep_dims="false"', [X, ints(1, 2)]),
    ("ReduceL2", "opset4", 'keep_dims="true"', [X, ints(2)]),
    ("ReduceLogicalAnd", "opset1", 'keep_dims="false"', [("in", truths(2, 3)), ints(1)]),
    ("Pad", "opset1", 'pad_mode="reflect"', [X, ints(0, 1, 2), ints(1, 0, 1)]),
    (
        "Pad",
        "opset1",
        'pad_mode="constant"',
        [X, ints(0, 1, 2), ints(1, 0, 1), np.array(7, np.float32)],
    ),
    ("Tile", "opset1", "", [X, ints(1, 2, 3)]),
    ("NonZero", "opset3", I64, [("in", truths(2, 3))]),
    ("DepthToSpace", "opset1", 'mode="blocks_first" block_size="2"', [(1, 8, 2, 3)]),
    ("DepthToSpace", "opset1", 'mode="depth_first" block_size="2"', [(1, 8, 2, 3)]),
    ("SpaceToDepth", "opset1", 'mode="blocks_first" block_size="2"', [(1, 2, 4, 6)]),
    ("Einsum", "opset7", 'equation="abc,cd->abd"', [X, (4, 5)]),
    ("Convolution", "opset1", CONV, [(2, 3, 5, 6), (4, 3, 3, 2)]),
    ("GroupConvolution", "opset1", CONV, [(2, 4, 5, 6), (2, 3, 2, 3, 2)]),
    (
        "ConvolutionBackpropData",
        "opset1",
        CONV + ' output_padding="0, 1"',
        [(2, 3, 5, 6), (3, 4, 3, 2)],
    ),
    (
        "GroupConvolutionBackpropData",
        "opset1",
        CONV + ' output_padding="0, 0"',
        [(2, 4, 5, 6), (2, 2, 3, 3, 2)],
    ),
    ("MaxPool", "opset1", POOL + ' rounding_type="floor"', [(1, 2, 5, 6)]),
    ("MaxPool", "opset1", CEIL, [(1, 2, 5, 7)]),
    ("AvgPool", "opset1", POOL + ' rounding_type="floor" exclude-pad="true"', [(1, 2, 5, 6)]),
    ("AvgPool", "opset1", POOL + ' rounding_type="floor" exclude-pad="false"', [(1, 2, 5, 6)]),
    (
        "BatchNormInference",
        "opset5",
        'epsilon="0.01"',
        [(2, 3, 4), *[np.array([0.5, 1, 2], np.float32)] * 4],
    ),
    (
        "BatchNormInference",
        "opset1",
        'epsilon="0.01"',
        [
            *[np.array([0.5, 1, 2], np.float32)] * 2,
            (2, 3, 4),
            *[np.array([1, 2, 3], np.float32)] * 2,
        ],
    ),
    (
        "GroupNormalization",
        "opset12",
        'num_groups="2" epsilon="0.01"',
        [(2, 4, 5), *[np.array([0.5, 1, 2, 3], np.float32)] * 2],
    ),
]


def build(case: tuple[str, str, str, Sequence[Any]]) -> tuple[Ir, list[Any]]:
    op, version, data, inputs = case
    model, arrays, ids = Ir(), [], []
    for k, given in enumerate(inputs):
        if isinstance(given, np.ndarray):
            ids.append(model.constant(f"c{k}", given))
            continue
        array = given[1] if given and given[0] == "in" else reals(*given)
        kind = {"f": "f32", "i": "i32", "b": "boolean"}[array.dtype.kind]
        ids.append(model.parameter(f"x{k}", array.shape, kind))
        arrays.append(array)
    model.result(model.layer("op", op, ids, (), data, version))
    return model, arrays


def evaluated(graph: Graph, arrays: Sequence[Any]) -> Any:
    """The only output of a lowered graph, by onnx's reference evaluator, node by node."""
    from onnx.reference import ReferenceEvaluator

    known: dict[int, Any] = {
        id(value): array for value, array in zip(graph.inputs, arrays, strict=True)
    }

    def number(value: Value | None) -> Any:
        if value is None:
            return None
        if id(value) not in known:
            if value.source is None and value.reals is not None:
                known[id(value)] = np.array(value.reals, value.dtype).reshape(value.shape)  # type: ignore[arg-type]
            else:
                known[id(value)] = value.data()
        return known[id(value)]

    for node in graph.nodes:
        assert node.domain == "", node
        given = {f"i{k}": number(v) for k, v in enumerate(node.inputs) if v is not None}
        names = [f"i{k}" if v is not None else "" for k, v in enumerate(node.inputs)]
        outputs = [f"o{k}" for k in range(len(node.outputs))]
        proto = onnx.helper.make_node(node.op, names, outputs, **node.attributes)
        infos = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in given.items()
        ]
        ends = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
        opset = [onnx.helper.make_opsetid("", node.version)]
        model = onnx.helper.make_model(
            onnx.helper.make_graph([proto], "g", infos, ends), opset_imports=opset
        )
        if node.op == "ConvTranspose":  # of groups the evaluator makes too many channels
            model.ir_version = 10  # the newest that the runtime reads
            session = pytest.importorskip("onnxruntime").InferenceSession
            results = session(model.SerializeToString()).run(None, given)
        else:
            results = ReferenceEvaluator(model).run(None, given)
        known.update(
            (id(value), np.asarray(array))
            for value, array in zip(node.outputs, results, strict=True)
        )
    return known[id(graph.outputs[0])]


@pytest.fixture(scope="module")
def core() -> Any:
    return openvino_runs.cpu()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_lowered_nodes_compute_openvinos_result(core: Any, case: Any, tmp_path: Path) -> None:
    model, arrays = build(case)
    path = model.save(tmp_path / "m.xml")
    words = lowered(read_model(path))
    mine = evaluated(words, arrays)
    compiled = core.compile_model(core.read_model(path), "CPU")
    real = np.asarray(compiled(arrays)[0])
    assert mine.shape == real.shape
    np.testing.assert_allclose(
        mine.astype(np.float64), real.astype(np.float64), rtol=2e-4, atol=2e-5
    )


def test_strided_slice_that_removes_and_adds_axes_is_right(core: Any, tmp_path: Path) -> None:
    """x[1, None, 1:3]: OpenVINO's shape is ours, but its CPU plugin reads other memory."""
    bounds = [ints(1, 0, 1), ints(2, 1, 3), ints(1, 1, 1)]
    model, arrays = build(
        ("StridedSlice", "opset1", masks("000", "000", "010", "100"), [X, *bounds])
    )
    path = model.save(tmp_path / "m.xml")
    mine = evaluated(lowered(read_model(path)), arrays)
    assert mine.shape == tuple(core.read_model(path).outputs[0].get_shape())
    np.testing.assert_array_equal(mine, arrays[0][1, None, 1:3])
