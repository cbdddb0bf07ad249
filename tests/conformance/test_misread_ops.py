"""The audit names an op that pnnx misreads, and no other; judged by pnnx's files on ncnn."""

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
