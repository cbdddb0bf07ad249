"""Broadcasts in an IR and their rules; the documents' examples as IR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_models import Ir, Sizes, binary, broadcast

import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.errors import BroadcastError
from zerostride.models.findings import Verdict
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino import find_site
from zerostride.models.formats.openvino.opsets import OPS
from zerostride.models.formats.openvino.sites import AXIS, ROWS
from zerostride.models.ir.graph import Node, Value
from zerostride.models.ir.site import Kind, Site

pytest.importorskip("defusedxml", reason="IR files are read with defusedxml")


def site_of(model: Ir, folder: Path) -> Site:
    (node,) = read_model(model.save(folder / "m.xml")).nodes
    site = find_site(node)
    assert site is not None
    return site


def shape_of(model: Ir, folder: Path) -> Any:
    """The planned shape, or the reason of the refusal."""
    site = site_of(model, folder)
    try:
        return site.plan(tuple(part.shape for part in site.operands)).shape  # type: ignore[arg-type,misc]
    except BroadcastError as error:
        return error.reason


#: OpenVINO, "Broadcast Rules For Elementwise Operations": A, B and the result, None if none.
NUMPY: list[tuple[Sizes, Sizes, Sizes | None]] = [
    ((), (), ()),
    ((2, 3), (1,), (2, 3)),
    ((3,), (2, 3), (2, 3)),
    ((2, 3, 5), (), (2, 3, 5)),
    ((2, 1, 5), (1, 4, 5), (2, 4, 5)),
    ((6, 5), (2, 1, 5), (2, 6, 5)),
    ((2, 1, 5), (4, 1), (2, 4, 5)),
    ((3, 2, 1, 4), (5, 4), (3, 2, 5, 4)),
    ((1, 5, 3), (5, 2, 1, 3), (5, 2, 5, 3)),
    ((3,), (2,), None),
    ((3, 1, 5), (4, 4, 5), None),
]
#: The same document's examples of PDPD, with the axis; OpenVINO refuses what it says of (3, 1).
PDPD: list[tuple[Sizes, Sizes, int | None, Sizes | None]] = [
    ((2, 3, 4, 5), (3, 4), 1, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (3, 1), 1, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (4, 5), -1, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (4, 5), 2, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (1, 3), 0, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (), -1, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (5,), -1, (2, 3, 4, 5)),
    ((2, 3, 4, 5), (5,), 3, (2, 3, 4, 5)),
    ((8, 1, 6, 1), (7, 1, 5), 1, None),
    ((2, 3, 4, 5), (2, 3), None, (2, 3, 4, 5)),  # the axis is 0 where the file has none
    ((2, 3), (3, 1), 1, None),  # trailing ones count
]
#: "Bidirectional Broadcast Rules".
BOTH: list[tuple[Sizes, tuple[int, ...], Sizes]] = [
    ((5,), (1,), (5,)),
    ((2, 3), (3,), (2, 3)),
    ((3, 1), (3, 4), (3, 4)),
    ((3, 4), (), (3, 4)),
    ((3, 1), (2, 1, 6), (2, 3, 6)),
]


@pytest.mark.parametrize(("a", "b", "result"), NUMPY)
@pytest.mark.parametrize("data", ['auto_broadcast="numpy"', ""])
def test_documents_numpy_examples_are_planned(
    tmp_path: Path, a: Sizes, b: Sizes, result: Sizes | None, data: str
) -> None:
    shape = shape_of(binary("Add", a, b, data), tmp_path)
    assert shape == result if result is not None else shape == "extent_mismatch"


@pytest.mark.parametrize(("a", "b", "axis", "result"), PDPD)
@pytest.mark.parametrize("version", [10, 11])
def test_documents_pdpd_examples_are_planned(
    tmp_path: Path, a: Sizes, b: Sizes, axis: int | None, result: Sizes | None, version: int
) -> None:
    data = 'auto_broadcast="pdpd"' + ("" if axis is None else f' {AXIS}="{axis}"')
    # What is called axis is ignored.
    shape = shape_of(binary("Subtract", a, b, f'{data} axis="3"', version), tmp_path)
    assert shape == result if result is not None else isinstance(shape, str)


@pytest.mark.parametrize(("data", "target", "result"), BOTH)
def test_documents_bidirectional_examples_are_planned(
    tmp_path: Path, data: Sizes, target: tuple[int, ...], result: Sizes
) -> None:
    assert shape_of(broadcast(data, target, "bidirectional"), tmp_path) == result


def test_modes_none_and_explicit_need_identical_shapes(tmp_path: Path) -> None:
    for mode in ("none", "explicit", "NONE"):
        same = binary("Power", (2, 3), (2, 3), f'auto_broadcast="{mode}"')
        assert shape_of(same, tmp_path) == (2, 3)
        other = binary("Power", (2, 3), (1, 3), f'auto_broadcast="{mode}"')
        assert shape_of(other, tmp_path) == "not_identical"


def test_unknown_mode_or_axis_is_not_judged(tmp_path: Path) -> None:
    for data in ('auto_broadcast="both"', f'auto_broadcast="pdpd" {AXIS}="one"'):
        assert site_of(binary("Add", (2,), (2,), data), tmp_path).kind is Kind.NOT_MODELLED


BROADCASTS: list[tuple[str, str | None, Sizes, tuple[int, ...], tuple[int, ...] | None, Any]] = [
    # Broadcast-3
    ("opset3", "numpy", (16, 1, 1), (1, 16, 50, 50), None, (1, 16, 50, 50)),
    ("opset3", None, (16, 1, 1), (1, 16, 50, 50), None, (1, 16, 50, 50)),
    ("opset3", "explicit", (16,), (1, 16, 50, 50), (1,), (1, 16, 50, 50)),
    ("opset13", "explicit", (50, 50), (1, 50, 50, 16), (1, 2), (1, 50, 50, 16)),
    ("opset3", "none", (16,), (1, 16, 50, 50), (1,), (1, 16, 50, 50)),
    ("opset3", "explicit", (3, 2), (2, 3), (1, 0), "transposes"),
    ("opset3", "explicit", (2, 2), (2, 3), (0, 0), "duplicate_axes"),
    ("opset3", "numpy", (3,), (1,), None, "one_way"),
    # Broadcast-1: without an axes_mapping it is numpy, with one explicit unless it says numpy.
    ("opset1", "explicit", (3,), (2, 3), None, (2, 3)),
    ("opset1", None, (2,), (2, 3), (0,), (2, 3)),
    ("opset2", "numpy", (2,), (2, 3), (0,), "extent_mismatch"),
]


@pytest.mark.parametrize(("version", "mode", "data", "target", "axes", "result"), BROADCASTS)
def test_broadcast_is_read_by_version_and_mode(
    tmp_path: Path,
    version: str,
    mode: str | None,
    data: Sizes,
    target: tuple[int, ...],
    axes: tuple[int, ...] | None,
    result: Any,
) -> None:
    site = site_of(broadcast(data, target, mode, axes, version), tmp_path)
    assert (site.kind, site.stands_for) == (Kind.EXPAND, "Expand")
    shape = shape_of(broadcast(data, target, mode, axes, version), tmp_path)
    assert shape == result if isinstance(result, tuple) else isinstance(shape, str), shape


@pytest.mark.parametrize(
    ("version", "mode", "axes"),
    [
        ("opset3", "explicit", None),
        ("opset3", "numpy", (0,)),
        ("opset3", "pdpd", None),
        ("opset1", "pdpd", (0,)),
        ("opset1", "bidirectional", None),
    ],
)
def test_broadcasts_refused_by_openvino_are_not_judged(
    tmp_path: Path, version: str, mode: str, axes: tuple[int, ...] | None
) -> None:
    assert site_of(broadcast((3,), (2, 3), mode, axes, version), tmp_path).kind is Kind.NOT_MODELLED


def test_select_with_pdpd_aligns_both_operands_with_then(tmp_path: Path) -> None:
    model = Ir()
    given = [
        model.parameter("c", (3, 4), "boolean"),
        model.parameter("then", (2, 3, 4, 5)),
        model.parameter("else", (3, 1)),
    ]
    data = f'auto_broadcast="pdpd" {AXIS}="1"'
    model.result(model.layer("op", "Select", given, (2, 3, 4, 5), data))
    site = site_of(model, tmp_path)
    plan = site.plan(((3, 4), (2, 3, 4, 5), (3, 1)))
    assert plan.aligned == ((1, 3, 4, 1), (2, 3, 4, 5), (1, 3, 1, 1))
    assert site.kind is Kind.WHERE


def test_prelus_slope_is_aligned_with_the_channels(tmp_path: Path) -> None:
    site = site_of(binary("PReLU", (2, 3, 3), (3,)), tmp_path)
    assert site.plan(((2, 3, 3), (3,))).aligned[1] == (1, 3, 1)


def node(op: str, domain: str = "openvino", version: int = 1, inputs: int = 2, **more: Any) -> Node:
    values = tuple(Value(f"x{k}", (2, 3, 4)) for k in range(inputs))
    return Node("n", op, domain, version, values, (Value("y", (2, 3, 4)),), more)


def test_every_op_has_a_row_or_does_not_broadcast() -> None:
    assert set(ROWS) <= OPS
    kinds = {op: find_site(node(op, version=8, inputs=2)) for op in OPS}
    assert all(site is None or site.kind is not Kind.CUSTOM for site in kinds.values())
    assert kinds["Clamp"] is None
    assert kinds["NormalizeL2"] is None
    assert kinds["ScaledDotProductAttention"].kind is Kind.NOT_MODELLED  # type: ignore[union-attr]
    for op in ("Maximum", "LogicalXor", "BitwiseLeftShift", "SquaredDifference", "GreaterEqual"):
        assert kinds[op].kind is Kind.ELEMENTWISE  # type: ignore[union-attr]


def test_other_domains_and_versions_are_custom() -> None:
    for one in (node("Add", "extension"), node("Add", version=17), node("MyOp"), node("Add", "")):
        site = find_site(one)
        assert site is not None
        assert site.kind is (Kind.ELEMENTWISE if one.domain == "" else Kind.CUSTOM)


def test_compounds_have_sites() -> None:
    matmul = find_site(node("MatMul", transpose_a=True))
    assert matmul is not None
    assert matmul.kind is Kind.MATMUL
    assert [part.shape for part in matmul.operands] == [(2,), (2,)]
    vectors = [Value(f"v{k}", (3,)) for k in range(4)]
    data = Value("data", (2, 3, 4))
    new = Node("n", "BatchNormInference", "openvino", 5, (data, *vectors), (data,))
    old = Node(
        "n", "BatchNormInference", "openvino", 1, (*vectors[:2], data, *vectors[2:]), (data,)
    )
    for one in (new, old):
        site = find_site(one)
        assert site is not None
        assert site.kind is Kind.CHANNEL
        assert site.operands[0].tensor is data
        assert site.plan(((2, 3, 4), *[(3,)] * 4)).aligned[1] == (1, 3, 1)
    quantize = find_site(node("FakeQuantize", inputs=5))
    assert quantize is not None
    assert len(quantize.operands) == 5


# Sizes that are not known.


def test_pdpd_of_open_sizes_keeps_them(tmp_path: Path) -> None:
    """A layer that ONNX has no words for is asked of its own rule, its conditions are needs."""
    data = f'auto_broadcast="pdpd" {AXIS}="1"'
    model = Ir()
    x, y = model.parameter("x", ("?", "?", 4)), model.parameter("y", (3, 4))
    total = model.layer("total", "Add", (x, y), ("?", "?", 4), data)
    model.result(model.layer("twice", "Add", (total, total), ("?", "?", 4)))
    graph = read_model(model.save(tmp_path / "m.xml"))
    assert [one.domain for one in lowered(graph).nodes] == ["openvino", ""]
    whole, _, flow = resolved(graph)
    assert flow is not None
    shape, given = whole.nodes[1].outputs[0].shape, whole.inputs[0].shape
    assert shape is not None
    assert given is not None
    assert shape[0] == given[0]  # the very size of the input, not another unknown one
    assert shape[2] == 4
    assert any("x[1]" in str(need.condition) for need in flow.conditions)


def test_no_axis_of_another_extent_than_1_is_dropped(tmp_path: Path) -> None:
    """What nothing is known of is a symbol of its own when it is judged."""
    model = Ir()
    x = model.parameter("x", (2, 3))
    odd = model.layer("odd", "MyOp", (x,), (3, "?"), version="extension")
    model.result(model.layer("total", "Add", (x, odd), (3, "?")))
    graph = read_model(model.save(tmp_path / "m.xml"))
    whole, _, _ = resolved(graph)
    for value in whole.values():
        assert value.shape is not None
        assert None not in value.shape
    report = zs.audit(tmp_path / "m.xml", target="torch")
    assert report.findings[0].reason == "custom_op"
    assert report.findings[1].verdict is not Verdict.SAME or report.findings[1].when is None


def test_constants_of_unknown_sizes_get_symbols() -> None:
    """The hole that was there: a constant's open sizes were left out of its shape."""
    from zerostride.models.ir.graph import Graph
    from zerostride.models.onnx_ops.sites import find_site as onnx_site

    weights = Value("w", (None, 3), constant=True)
    data = Value("x", (5, 3))
    add = Node("add", "Add", "", 21, (data, weights), (Value("y", None),))
    whole, _, _ = resolved(Graph("m.onnx", "onnx", 21, (data,), (add,)))
    site = onnx_site(whole.nodes[0])
    assert site is not None
    assert site.operands[1].shape is not None
    assert len(site.operands[1].shape) == 2
    assert None not in site.operands[1].shape


@pytest.mark.parametrize("size", [4, "?"])
def test_sizes_at_ports_are_not_trusted(tmp_path: Path, size: Any) -> None:
    """A batch changed by hand at the input alone: OpenVINO infers the rest, and so does this."""
    model = Ir()
    x, y = model.parameter("x", (size, 3)), model.parameter("y", (1, 3))
    a = model.layer("a", "ReLU", (x,), (1, 3))
    b = model.layer("b", "Add", (a, y), (1, 3))
    model.result(model.layer("c", "MyOp", (b,), (7,), version="extension"))
    whole, _, flow = resolved(read_model(model.save(tmp_path / "m.xml")))
    assert flow is not None
    assert flow.ok
    given = whole.inputs[0].shape
    assert given is not None
    assert [node.outputs[0].shape for node in whole.nodes] == [given, given, (7,)]
    assert given[0] == 4 if size == 4 else not isinstance(given[0], int)


def test_numbers_are_followed_to_a_broadcasts_target(tmp_path: Path) -> None:
    model = Ir()
    x, mask = model.parameter("x", ("?", 5, 8)), model.parameter("mask", (5, 8))
    target = model.layer("shape", "ShapeOf", (x,), (3,), 'output_type="i64"', "opset3", "i64")
    model.result(
        model.layer("op", "Broadcast", (mask, target), ("?", 5, 8), 'mode="numpy"', "opset3")
    )
    whole, _, _ = resolved(read_model(model.save(tmp_path / "m.xml")))
    assert whole.nodes[1].outputs[0].shape == whole.inputs[0].shape


def test_layers_are_lowered_to_onnx_ops(tmp_path: Path) -> None:
    """What ONNX has words for is said in them, and the layer's own values are handed out."""
    model = Ir()
    x = model.parameter("x", (2, 3, 4))
    axes = model.constant("axes", np.array([1], np.int64))
    order = model.constant("order", np.array([2, 0, 1], np.int64))
    a = model.layer("a", "ReduceMean", (x, axes), (2, 1, 4), 'keep_dims="true"')
    b = model.layer("b", "Transpose", (x, order), (4, 2, 3))
    c = model.layer("c", "Subtract", (x, a), (2, 3, 4), 'auto_broadcast="numpy"')
    d = model.layer("d", "SquaredDifference", (x, c), (2, 3, 4))
    pdpd = f'auto_broadcast="pdpd" {AXIS}="1"'
    v = model.parameter("v", (3,))
    e = model.layer("e", "Multiply", (d, v), (2, 3, 4), pdpd)
    f = model.layer("f", "Selu", (e, e, e), (2, 3, 4))
    model.result(b)
    model.result(f)
    graph = read_model(model.save(tmp_path / "m.xml"))
    words = lowered(graph).nodes
    rows = [(one.op, one.domain) for one in words]
    assert rows == [
        ("ReduceMean", ""),
        ("Transpose", ""),
        ("Sub", ""),
        ("Sub", ""),
        ("Mul", ""),
        ("Reshape", ""),
        ("Mul", ""),
        ("Selu", "openvino"),
    ]
    own = [value for one in graph.nodes for value in one.outputs]
    listed = [value for one in words for value in one.outputs]
    assert all(any(value is other for other in listed) for value in own)


def test_ir_is_audited_for_other_engines(tmp_path: Path) -> None:
    data = f'auto_broadcast="pdpd" {AXIS}="1"'
    path = binary("Add", (2, 3, 4, 5), (3, 4), data, result=(2, 3, 4, 5)).save(tmp_path / "m.xml")
    numpy, ncnn, paddle = (zs.audit(path, target=name) for name in ("numpy", "ncnn", "paddle"))
    assert numpy.findings[0].verdict is Verdict.REFUSED
    assert numpy.findings[0].fix is not None
    assert numpy.findings[0].fix.shapes[1] == (3, 4, 1)
    assert not ncnn.ok
    assert paddle.findings[0].source is not None


@pytest.mark.parametrize(("op", "verdict"), [("Add", Verdict.SAME), ("Subtract", Verdict.REFUSED)])
def test_node_keeps_its_rule_on_its_own_engine(tmp_path: Path, op: str, verdict: str) -> None:
    """OpenVINO's CPU plugin takes pdpd for an Add, and rewrites a Subtract into NumPy's rule."""
    data = f'auto_broadcast="pdpd" {AXIS}="1"'
    path = binary(op, (2, 3, 4, 5), (3, 4), data).save(tmp_path / "m.xml")
    (finding,) = zs.audit(path, target="openvino").findings
    assert finding.verdict is verdict
    (elsewhere,) = zs.audit(path, target="numpy").findings
    assert elsewhere.verdict is Verdict.REFUSED


def test_select_with_pdpd_is_not_judged_on_engines_of_pairs(tmp_path: Path) -> None:
    """A campaign met it: NumPy's rule for pairs of its operands raised an error."""
    model = Ir()
    parts = [model.parameter("c", (1, 2, 2), "boolean")]
    parts += [
        model.parameter(name, shape) for name, shape in (("t", (1, 2, 2, 2, 4)), ("e", (1, 2, 2)))
    ]
    data = f'auto_broadcast="pdpd" {AXIS}="0"'
    model.result(model.layer("site", "Select", parts, (1, 2, 2, 2, 4), data))
    path = model.save(tmp_path / "m.xml")
    for target in ENGINES:
        (finding,) = zs.audit(path, target).findings
        assert finding.verdict in ("unknown", "refused", "different"), target
