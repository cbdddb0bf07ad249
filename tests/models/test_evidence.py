"""The audit finds and the port repairs every collected report, or gives the reason.

`examples/bugs.json` has the reports as shapes. Here is what an audit for the engine in question
says of each, and by which pass a port cures it; `tests/conformance/test_evidence_engines.py` runs
them where the engine installs. What is no broadcast of two shapes, or of no engine of the table, is
listed with the reason.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reported import BUGS, EXAMPLES, NAMED, Named, model

import zerostride as zs
from zerostride.engines import ENGINES

#: The reports, by section; the same list as the one that was collected.
COLLECTED = {
    "A": "Tencent/ncnn#3924 Tencent/ncnn#2837 Tencent/ncnn#4508 Tencent/ncnn#4803 "
    "Tencent/ncnn#4752 Tencent/ncnn#2823 Tencent/ncnn#3516 Tencent/ncnn#4930 "
    "google-ai-edge/LiteRT#8980 tensorflow/tensorflow#61594 tensorflow/tensorflow#60043 "
    "tenstorrent/tt-metal#55351 tenstorrent/tt-metal#15808 PaddlePaddle/Paddle#23913 "
    "pytorch/pytorch#16045 pytorch/pytorch#19699",
    "B": "openvinotoolkit/openvino#33620 openvinotoolkit/openvino#4209 "
    "openvinotoolkit/openvino#33254 microsoft/onnxruntime#15110 opencv/opencv#25470 "
    "opencv/opencv#28183 opencv/opencv#23556 XiaoMi/mace#341 Tencent/TNN#435 "
    "google-ai-edge/LiteRT#9191 huggingface/candle#478 tracel-ai/burn#1499",
    "C": "google-ai-edge/LiteRT#2540 pytorch/executorch#11694 apple/coremltools#2291 "
    "tensorflow/tensorflow#14924 tensorflow/tensorflow#43271 pnnx/pnnx#228",
    "D": "PINTO0309/onnx2tf#698 PINTO0309/onnx2tf#37 PINTO0309/onnx2tf#424 PINTO0309/onnx2tf#18 "
    "apple/coremltools#499",
}

#: Those that a test of their own has, below.
BY_GRAPH = {
    "openvinotoolkit/openvino#4209": "test_pdpd_with_an_axis_is_audited",
    "openvinotoolkit/openvino#33254": "test_target_that_the_data_cannot_reach_is_refused",
    "PINTO0309/onnx2tf#424": "test_normalisation_over_channels_is_audited",
}
#: Those that are no row, and why.
NO_ROW = {
    "opencv/opencv#25470": "the pattern is opencv-23556's",
    "opencv/opencv#28183": "the pattern is opencv-23556's",
    "XiaoMi/mace#341": "MACE is no engine of the table, and the report has neither shapes nor op",
    "Tencent/TNN#435": "TNN is no engine of the table, and the report's model is not public",
    "tracel-ai/burn#1499": "Burn is no engine of the table; the thread could not be read again",
    "PINTO0309/onnx2tf#37": "the operands have one shape in the model; a converter turned only one",
}
#: Rows of `bugs.json` whose target is no engine of the table: the rule that it has instead.
BY_RULE = {"candle-478": "none"}
#: The same where not even a rule says what it does.
NO_ENGINE = {"tt-metal-55351", "tt-metal-15808"}
#: What a converter does that turns maps to another layout: no engine's rule, see below.
LAYOUT = {"onnx2tf-698": "nhwc", "onnx2tf-18": "nhwc", "coremltools-499": "nchw"}


def quiet(function: Any, *arguments: Any, **options: Any) -> Any:
    """A call that says nothing of other releases than the measured ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        return function(*arguments, **options)


def asked(named: Named) -> tuple[Path, dict[str, Any]]:
    """A report's file, and what is asked of it: op for op for ncnn."""
    file, options = model(named)
    return file, options | ({"via": "none"} if named.target == "ncnn" else {})


def test_every_report_is_in_the_table() -> None:
    rows = {reference: bug["id"] for bug in BUGS.values() for reference in bug["references"]}
    for section, references in COLLECTED.items():
        for reference in references.split():
            places = [reference in place for place in (rows, BY_GRAPH, NO_ROW)]
            assert sum(places) == 1, f"section {section}: {reference}"
    assert all(name in globals() for name in BY_GRAPH.values())


def test_every_row_is_judged_once() -> None:
    judged = [*(named.bug for named in NAMED), *BY_RULE, *NO_ENGINE, *LAYOUT]
    assert sorted(judged) == sorted(BUGS)
    assert all(BUGS[bug]["target"] not in ENGINES for bug in (*BY_RULE, *NO_ENGINE))


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.bug)
def test_audit_finds_the_reported_bug(named: Named) -> None:
    file, options = asked(named)
    (finding,) = quiet(zs.audit, file, named.target, **options).findings
    assert (finding.verdict, finding.reason) == (named.verdict, named.reason)
    # Either what is wrong is said with the engine's name, or what older releases did is a note.
    assert (
        finding.verdict == "same" or named.target in finding.message or "batch" in finding.message
    )


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.bug)
def test_port_repairs_the_reported_bug(named: Named, tmp_path: Path) -> None:
    file, options = asked(named)
    goal = tmp_path / file.name
    report = quiet(zs.port, file, named.target, goal, **options)
    assert [change.by for change in report.changes] == ([named.cured] if named.cured else [])
    if named.cured is None:
        (finding,) = report.findings
        assert (finding.verdict, finding.reason) == (named.verdict, named.reason)
        assert any(note.startswith("not ported: ") for note in finding.notes)
        return
    assert report.ok
    again = quiet(zs.audit, goal, named.target, **options)
    assert again.ok
    assert [finding.verdict for finding in again.findings].count("same") == len(again.findings)


@pytest.mark.parametrize("bug", BY_RULE)
def test_engine_without_a_row_has_the_rule_of_a_document(bug: str) -> None:
    shapes = [tuple(shape) for shape in BUGS[bug]["shapes"]]
    with pytest.raises(zs.BroadcastError) as raised:
        zs.plan(*shapes, rule=BY_RULE[bug])
    # The user saw both shapes and not what to do.
    assert raised.value.hint
    assert all(str(shape[-1]) in str(raised.value) for shape in shapes)


# Graphs.

_PDPD = """<?xml version="1.0"?>
<net name="pdpd" version="11"><layers>
<layer id="0" name="a" type="Parameter" version="opset1"><data shape="1,3,224,224"
element_type="f32"/><output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>224</dim>
<dim>224</dim></port></output></layer>
<layer id="1" name="b" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="2" name="sum" type="Add" version="opset1"><data auto_broadcast="pdpd"
auto_broadcast.auto_broadcast_axis="1"/><input><port id="0"><dim>1</dim><dim>3</dim><dim>224</dim>
<dim>224</dim></port><port id="1"><dim>3</dim></port></input><output><port id="2"
precision="FP32"><dim>1</dim><dim>3</dim><dim>224</dim><dim>224</dim></port></output></layer>
<layer id="3" name="y" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>3</dim>
<dim>224</dim><dim>224</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>
"""


def test_pdpd_with_an_axis_is_audited(tmp_path: Path) -> None:
    """openvino#4209: (1,3,224,224) + (3,) at axis 1; one release took it, and the next did not."""
    file = tmp_path / "pdpd.xml"
    file.write_text(_PDPD)
    (here,) = quiet(zs.audit, file, "paddle").findings
    assert here.verdict == "same"
    assert here.source.aligned[1] == (1, 3, 1, 1)
    (finding,) = quiet(zs.audit, file, "onnxruntime").findings
    assert (finding.verdict, finding.reason) == ("refused", "extent_mismatch")
    assert finding.fix is not None
    assert finding.fix.shapes[1] == (3, 1, 1)
    report = quiet(zs.port, file, "onnxruntime", tmp_path / "ported.xml")
    assert report.ok
    assert len(report.changes) == 1


def test_target_that_the_data_cannot_reach_is_refused(tmp_path: Path) -> None:
    """openvino#33254: (52,1,33,1) is not broadcast to (2,52,33,1); which axis, nobody said."""
    onnx = pytest.importorskip("onnx", reason="the model is made with the onnx package")
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("Expand", ["data", "target"], ["y"], name="expand")],
        "g",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [52, 1, 33, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([2, 52, 33, 1]), "target")],
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(file))
    (finding,) = quiet(zs.audit, file, "openvino").findings
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert isinstance(finding.source, zs.BroadcastError)
    assert finding.source.axis == 0
    assert "52 against 2" in finding.message
    with pytest.raises(zs.BroadcastError, match="52 against 2"):
        zs.plan_to((52, 1, 33, 1), (2, 52, 33, 1), engine="openvino")


def test_normalisation_over_channels_is_audited(tmp_path: Path) -> None:
    """onnx2tf#424: a scale of (32,) is on axis 1 of (1,32,40960), and not on the last."""
    onnx = pytest.importorskip("onnx", reason="the model is made with the onnx package")
    from onnx import TensorProto, helper, numpy_helper

    ones = np.ones(32, np.float32)
    graph = helper.make_graph(
        [helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["y"], name="norm")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 40960])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(ones, "scale"), numpy_helper.from_array(ones, "bias")],
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(file))
    (finding,) = quiet(zs.audit, file, "openvino").findings
    assert isinstance(finding.source, zs.Plan)
    assert finding.source.aligned[1:] == ((1, 32, 1), (1, 32, 1))
    # What the converter wrote is refused by the rule of every engine that it could be meant for.
    for engine in ("tensorflow", "litert", "numpy"):
        with pytest.raises(zs.BroadcastError):
            zs.plan((32,), (1, 32, 40960), engine=engine)


# D: layouts. A converter that turns maps has to turn what is broadcast to them, as its plan says.

_TURNS = {"nhwc": (0, 2, 3, 1), "nchw": (0, 3, 1, 2)}


@pytest.mark.parametrize("bug", LAYOUT)
def test_constants_layout_change_is_in_its_plan(bug: str) -> None:
    shapes = [tuple(shape) for shape in BUGS[bug]["shapes"]]
    turn = _TURNS[LAYOUT[bug]]
    plan = zs.plan(*shapes)
    turned = [tuple(aligned[axis] for axis in turn) for aligned in plan.aligned]
    wanted = zs.plan(*turned)
    assert wanted.shape == tuple(plan.shape[axis] for axis in turn)
    assert wanted.aligned == tuple(turned)
    # By value: turning the result is turning what was aligned.
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(size=shape).astype(np.float32) for shape in shapes]
    rows = [
        array.reshape(row).transpose(turn) for array, row in zip(arrays, plan.aligned, strict=True)
    ]
    np.testing.assert_array_equal((arrays[0] + arrays[1]).transpose(turn), rows[0] + rows[1])
    # As the reports had it: one of the two turned, the other left as the model has it.
    whole = max(range(2), key=lambda k: len(shapes[k]))
    left = [turned[k] if k == whole else shapes[k] for k in range(2)]
    for engine in ("tensorflow", "coreml", "litert"):
        try:
            result = zs.plan(*left, engine=engine)
        except zs.BroadcastError:
            continue
        assert result != wanted


@pytest.mark.parametrize(
    ("bug", "becomes"), [("onnx2tf-698", (1, 1, 512)), ("onnx2tf-18", (1, 1, 3))]
)
def test_audit_names_the_channels_last_shape_of_an_operand(
    bug: str, becomes: tuple[int, ...]
) -> None:
    file = EXAMPLES / "bugs" / f"{bug}.onnx"
    same, moved = quiet(zs.audit, file, "tensorflow", layout="nhwc").findings
    assert same.verdict == "same"
    assert (moved.verdict, moved.reason) == ("different", "layout")
    assert moved.fix is not None
    assert moved.fix.shapes[0] == becomes
    assert "reshape" in moved.message
