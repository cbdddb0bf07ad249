"""The audit names an op that a converter misreads, and no other; judged by its files' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("pnnx", reason="the converter is an extra")
pytest.importorskip("ncnn", reason="runs what pnnx writes")

from campaigns.models.bisect_graphs import saved  # noqa: E402
from campaigns.real_models.convert import convert  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.models.findings import Outcome  # noqa: E402

pytestmark = pytest.mark.conformance

X = np.random.default_rng(0).uniform(0.5, 1.5, (1, 4, 6, 8)).astype(np.float32)
#: An op, its axes as an operand or an attribute, and its op set.
_REDUCTIONS = ("Mean", "Sum", "Prod", "Max", "L1", "L2", "LogSumExp", "LogSum")
FORMS = [
    *((f"Reduce{op}", axes, True, 18) for op in _REDUCTIONS for axes in ((1,), (3,), (2, 3))),
    ("ReduceMean", (3,), False, 17),
    ("ReduceSum", (3,), True, 13),
    ("SpaceToDepth", (), False, 17),
    ("DepthToSpace", (), False, 17),
]


def model_of(op: str, axes: tuple[int, ...], operand: bool, opset: int) -> onnx.ModelProto:
    constants, attributes = [], {}
    if axes and operand:
        constants = [numpy_helper.from_array(np.array(axes, np.int64), "axes")]
    elif axes:
        attributes = {"axes": axes}
    else:
        attributes = {"blocksize": 2}
    names = ["s", *(c.name for c in constants)]
    nodes = [
        helper.make_node("Relu", ["x"], ["s"], "relu"),
        helper.make_node(op, names, ["r"], "n", **attributes),
        helper.make_node("Sigmoid", ["r"], ["y"], "sigmoid"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", X.shape), ("y", None))
    ]
    graph = helper.make_graph(nodes, "misread", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize(("op", "axes", "operand", "opset"), FORMS)
def test_a_note_says_what_pnnx_misreads(
    tmp_path: Path, op: str, axes: tuple[int, ...], *, operand: bool, opset: int
) -> None:
    file = saved(model_of(op, axes, operand, opset), tmp_path / "m.onnx")
    notes = [note for note in zs.audit(file, target="ncnn").notes if "misreads" in note]
    place = convert(file, "pnnx", ("x=1,4,6,8",), tmp_path / "pnnx")
    if isinstance(place, str):
        assert "ncnn does not load" in place
        assert not notes
        return
    report = zs.verify(file, "ncnn", against=place, inputs={"x": X})
    wrong = report.checks[0].outcome is not Outcome.AGREES
    assert [f"pnnx misreads {op} 'n'" in note for note in notes] == [True] * wrong


#: Places, margins and steps from both ends: an engine, its converter, the op, what it reads beside
#: x, and attributes.
CUBE = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
COLUMN, ENDS = [[[2]], [[0]], [[1]]], [[[-1]], [[0]], [[-2]]]
LINE = np.ones((3, 1, 1), np.float32)
BY_END: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    *(("mnn", "GatherElements", (rows,), {"axis": 1}) for rows in (COLUMN, ENDS)),
    *(("mnn", "ScatterElements", (rows, LINE), {"axis": 1}) for rows in (COLUMN, ENDS)),
    *(("mnn", "GatherND", (rows,), {}) for rows in ([[2], [0]], [[-1], [0]], [[-1, -2]])),
    *(("mnn", "Gather", (rows,), {"axis": 1}) for rows in ([2, 0], [-1, 0, -2])),
    *(("mnn", "Pad", (pads,), {}) for pads in ([0, 1, 0, 0, 0, 2], [0, 1, 0, 0, -1, 0])),
    ("mnn", "Pad", ([0, 1, -1, 0, 0, -1],), {"mode": "edge"}),
    *(("mnn", "Slice", ([3], [-9], [1], [step]), {}) for step in (-1, -2)),
    *(
        ("ncnn", "Slice", (*ends, [1], [step]), {})
        for *ends, step in (([0], [4], 1), ([-1], [-9], -1))
    ),
]


@pytest.mark.parametrize(("engine", "op", "operands", "attributes"), BY_END)
def test_a_note_says_what_is_counted_from_the_wrong_end(
    tmp_path: Path, engine: str, op: str, operands: tuple[Any, ...], attributes: dict[str, Any]
) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(engine, engine), reason="the engine is an extra")
    arrays = [np.array(a, None if isinstance(a, np.ndarray) else np.int64) for a in operands]
    constants = [numpy_helper.from_array(array, f"c{k}") for k, array in enumerate(arrays)]
    nodes = [
        helper.make_node("Relu", ["x"], ["s"], "relu"),
        helper.make_node(op, ["s", *(c.name for c in constants)], ["r"], "n", **attributes),
        helper.make_node("Sigmoid", ["r"], ["y"], "sigmoid"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", CUBE.shape), ("y", None))
    ]
    graph = helper.make_graph(nodes, "ends", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    file = saved(onnx.shape_inference.infer_shapes(model), tmp_path / "m.onnx")
    converter = {"mnn": "mnnconvert", "ncnn": "pnnx"}[engine]
    notes = [note for note in zs.audit(file, target=engine).notes if "misreads" in note]
    place = convert(file, converter, ("x=3,4,5",), tmp_path / converter)
    assert not isinstance(place, str)
    report = zs.verify(file, engine, against=place, inputs={"x": CUBE})
    wrong = report.checks[0].outcome is not Outcome.AGREES
    assert [f"{converter} misreads {op} 'n'" in note for note in notes] == [True] * wrong
    if wrong:
        cause = zs.bisect(file, place, inputs={"x": CUBE}).culprit.cause
        assert f"{converter} misreads {op}" in cause
        assert zs.convert(file, engine, tmp_path / "out", inputs={"x": CUBE}).ok
