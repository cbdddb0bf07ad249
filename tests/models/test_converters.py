"""Converters: the judged one, the changes of its row, and audits of the engine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ncnn_models
import numpy as np
import pytest
import small
from onnx import TensorProto, helper

import warm
import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.errors import ZerostrideError
from zerostride.models.format_table import FORMATS
from zerostride.models.transport.converters import CONVERTERS, NONE, OP_FOR_OP, chosen

ADD = small.model([small.node("Add", "a b")], {"a": (2, 3), "b": (3,)})


def finding(target: str, via: str | None, content: Any = ADD) -> Any:
    (only,) = small.audit(content, target, via).findings
    return only


def test_every_row_refers_to_known_tables() -> None:
    for name, row in CONVERTERS.items():
        assert row.name == name
        assert row.target in ENGINES
        assert row.reads <= {*FORMATS, "module"}
        assert row.engine is None or row.engine.name == row.target
        assert row.release


def test_default_converter_is_judged_unless_another_is_named() -> None:
    doors = {"tensorrt": "onnx-parser", "mnn": "mnnconvert", "ncnn": "pnnx", "litert": None}
    for target, usual in {**doors, "openvino": "onnx-frontend"}.items():
        report = small.audit(ADD, target)
        assert report.via == usual
        assert f"{report.place}: " in str(report).splitlines()[0]
        assert (" as " in report.place) == (usual is not None)
        assert small.audit(ADD, target, NONE).via is None
        listed = [note for note in report.notes if "--via none" in note]
        assert len(listed) == (usual is not None and target != "openvino")
        again = small.audit(ADD, target, usual)
        assert (again.findings, again.notes) == (report.findings, report.notes)


def test_openvinos_frontend_is_judged_only_where_it_reads() -> None:
    """The op alone lays no axis out, and has no fault of the frontend."""
    shapes = {"x": (2, 3, 4), "c": (3, 4)}
    old = small.model([small.node("Add", "x c", axis=1, broadcast=1)], shapes, opset=6)
    assert finding("openvino", None, old).verdict == "same"
    shifted = small.model([small.node("Expand", "x t")], {"x": ()}, {"t": np.zeros(0, np.int64)})
    assert finding("openvino", None, shifted).verdict == "different"
    assert finding("openvino", NONE, shifted).reason != "wrong_result"


def test_tensorrt_parser_pads_ranks_and_its_network_does_not() -> None:
    assert finding("tensorrt", None).verdict == "same"
    assert finding("tensorrt", NONE).reason == "rank"
    deep = small.model([small.node("Add", "a b")], {"a": (2,) * 9, "b": (2,)})
    assert finding("tensorrt", None, deep).reason == "rank_limit"
    old = small.model([small.node("Add", "a b")], {"a": (2, 3), "b": (2, 3)}, opset=6)
    assert finding("tensorrt", None, old).reason == "no_op"


@pytest.mark.parametrize("op", ["GreaterOrEqual", "Mod", "And"])
def test_parser_composes_ops_that_the_network_lacks(op: str) -> None:
    kind = TensorProto.BOOL if op == "And" else TensorProto.INT32
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in SHAPES.items()]
    out = TensorProto.INT32 if op == "Mod" else TensorProto.BOOL
    graph = helper.make_graph(
        [helper.make_node(op, [*SHAPES], ["y"])],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", out, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    assert finding("tensorrt", None, model).verdict == "same"


SHAPES = {"a": (2, 3), "b": (3,)}


def typed(op: str, dtype: str, constant: bool = False, out: str | None = None) -> Any:
    """A node of two operands of a dtype; the second is a constant or an input."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [helper.make_tensor_value_info("a", kind, SHAPES["a"])]
    constants = []
    if constant:
        constants.append(helper.make_tensor("b", kind, (3,), np.ones(3, dtype)))
    else:
        inputs.append(helper.make_tensor_value_info("b", kind, SHAPES["b"]))
    result = helper.np_dtype_to_tensor_dtype(np.dtype(out or dtype))
    graph = helper.make_graph(
        [helper.make_node(op, [*SHAPES], ["y"])],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", result, None)],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    ("op", "dtype", "constant", "verdict"),
    [
        ("Add", "float64", False, "same"),  # the expressions of MNN read it back as zeros
        ("And", "bool", False, "same"),  # and have no logical_and
        ("Add", "uint8", False, "same_here"),
        ("Add", "uint8", True, "refused"),
        ("Add", "int8", False, "same_here"),
        ("Add", "int8", True, "different"),
        ("Sub", "uint16", False, "same_here"),
        ("Add", "int64", False, "same_here"),
        ("BitwiseAnd", "int32", False, "refused"),
    ],
)
def test_mnnconverts_output_has_the_verdict(
    op: str, dtype: str, constant: bool, verdict: str
) -> None:
    assert finding("mnn", None, typed(op, dtype, constant)).verdict == verdict


def test_converter_reads_its_formats_and_writes_for_its_engine(tmp_path: Path) -> None:
    text = ncnn_models.param(*ncnn_models.inputs((2, 3, 4)), "BinaryOp s 1 1 in0 y 0=0 1=1 2=1")
    file = ncnn_models.write(tmp_path, text)
    assert zs.audit(file, "mnn").via is None
    with pytest.raises(ZerostrideError, match="reads ONNX files and modules of PyTorch, not ncnn"):
        zs.audit(file, "mnn", "mnnconvert")
    with pytest.raises(ZerostrideError, match=r"does not write for ncnn.*none judges op for op"):
        zs.audit(file, "ncnn", "mnnconvert")
    with pytest.raises(ZerostrideError, match="did you mean 'mnnconvert'"):
        zs.audit(file, "mnn", "mnnconverter")
    assert chosen(NONE, "mnn", "onnx") is OP_FOR_OP


def test_command_line_names_the_converter(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(ADD.SerializeToString())
    usual = warm.run(["audit", file, "--target", "tensorrt"])
    assert "as its ONNX parser reads it: " in usual.stdout.splitlines()[0]
    assert "--via none" in usual.stdout
    alone = warm.run(["audit", file, "--target", "tensorrt", "--via", "none"])
    assert (usual.returncode, alone.returncode) == (0, 1)
    assert " as " not in alone.stdout.splitlines()[0]
    assert warm.run(["audit", file, "--target", "tensorrt", "--via", "pnnx"]).returncode == 2
    ported = warm.run(["port", file, "--target", "tensorrt", "--dry-run"])
    assert "nothing to change" in ported.stdout


def test_integer_constant_is_laid_out_from_the_batch_axis() -> None:
    """google-ai-edge/LiteRT#9664: [C] is read as Cx1x1x1, and a float constant is not."""
    assert finding("litert-gpu", None, typed("Add", "float32", constant=True)).verdict == "same"
    wrong = finding("litert-gpu", None, typed("Add", "int32", constant=True))
    assert wrong.verdict == "different"


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
def test_mnnconvert_crashes_on_one_operand(op: str, tmp_path: Path) -> None:
    """Run in tests/conformance/test_mnnconvert.py; two operands are no such matter."""
    alone = small.model([small.node(op, "a")], {"a": (2, 3)})
    judged = finding("mnn", None, alone)
    assert (judged.verdict, judged.reason, judged.op) == ("different", "crash", op)
    assert "one operand" in judged.message
    for target, via in (("mnn", NONE), ("ncnn", NONE), ("openvino", None)):
        assert not small.audit(alone, target, via).findings
    (tmp_path / "m.onnx").write_bytes(alone.SerializeToString())
    (left,) = zs.port(tmp_path / "m.onnx", "mnn", tmp_path / "p.onnx").findings
    assert left.reason == "crash"
    if op in ("Max", "Min", "Sum"):
        pair = small.model([small.node(op, "a b")], {"a": (2, 3), "b": (2, 3)})
        assert finding("mnn", None, pair).verdict == "same"
