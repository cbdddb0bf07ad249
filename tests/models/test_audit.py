"""The audit: verdict and reason for each kind of broadcast; fixes and counter-examples hold."""

from __future__ import annotations

import importlib.util
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper

import zerostride as zs
from work import calls_of
from zerostride.core.plan import Plan
from zerostride.engines import ENGINES, find_engine
from zerostride.errors import Reason
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Finding, Verdict
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.onnx_ops.sites import find_site
from zerostride.models.transport.ways import transport

EXAMPLES = Path(__file__).parents[2] / "examples"
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
MODELS = [*sorted(EXAMPLES.rglob("*.onnx")), *LIGHT]


def counter() -> Any:
    """examples/count_broadcasts.py, which knows nothing of zerostride."""
    spec = importlib.util.spec_from_file_location("counter", EXAMPLES / "count_broadcasts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["counter"] = module
    spec.loader.exec_module(module)
    return module


def judged(*given: Any, target: str = "ncnn", **more: Any) -> Finding:
    """The finding of a model of one node, for ncnn op for op."""
    if target == "ncnn":
        more["options"] = {"via": "none", **more.get("options", {})}
    return small.site(*given, target=target, **more)


# Counts, and time.


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_independently_counted_site_has_a_finding(path: Path) -> None:
    counted = counter().count_file(path)
    report = small.audit(path.read_bytes(), "ncnn", "none")
    custom = [finding for finding in report.findings if finding.reason == "custom_op"]
    assert len(report.findings) - len(custom) == len(counted.sites)
    assert len(custom) == len(counted.custom)
    ops: dict[str, int] = {}
    for finding in report.findings:
        if finding.reason != "custom_op":
            ops[finding.op] = ops.get(finding.op, 0) + 1
    assert ops == dict(counted.by_op())


def test_light_models_exist() -> None:
    assert len(LIGHT) > 5


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_work_of_an_audit_is_bounded(path: Path) -> None:
    graph, engine = read_onnx(path), find_engine("ncnn")
    # A call takes some 0.3 microseconds.
    assert calls_of(lambda: audit_graph(graph, engine)) < 2_000_000


def test_work_is_linear_in_nodes() -> None:
    def work(count: int) -> int:
        nodes = [small.node("Add", f"t{k} c", f"t{k + 1}", name=f"add{k}") for k in range(count)]
        content = small.model(nodes, {"t0": (1, 8, 8, 8)}, {"c": (8,)}, outputs=[f"t{count}"])
        graph = read_bytes(content)
        return calls_of(lambda: audit_graph(graph, find_engine("ncnn")))

    work(10)
    assert work(1000) < 12 * work(100)


def read_bytes(content: onnx.ModelProto) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "m.onnx")
        file.write_bytes(content.SerializeToString())
        return read_onnx(file)


# Verdicts and reasons. x is an input; the others are weights.


def weights(*shapes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"w{k}": shape for k, shape in enumerate(shapes)}


NO_BATCH = {"options": {"batch_axis": -1}}
ROWS: list[tuple[str, str, tuple[int, ...], list[tuple[int, ...]], str, str, dict[str, Any]]] = [
    # op, target, x, weights, verdict, reason, attributes
    ("Add", "ncnn", (1, 3, 4, 5), [(1, 3, 1, 1)], "same", "same_plan", {}),
    ("Add", "ncnn", (1, 3, 4, 5), [(3, 1, 1)], "same", "same_plan", {}),
    ("Add", "ncnn", (1, 3, 4, 5), [(5,)], "same_here", "size_trap", {}),
    ("Add", "ncnn", (1, 5, 4, 5), [(5,)], "different", "other_alignment", {}),
    ("Add", "ncnn", (1, 5, 4, 3), [(4, 3)], "different", "silent", {}),
    ("Add", "ncnn", (1, 5, 4, 3), [(2, 1, 1, 1)], "different", "batch_broadcast", {}),
    ("Add", "ncnn", (2, 2, 3, 4, 5), [(5,)], "refused", "rank_limit", {}),
    ("Add", "numpy", (3, 4), [(3,)], "refused", "invalid_source", {}),
    ("Add", "openvino", (2, 1) * 6 + (2,), [(2,)], "refused", "crash", {}),
    ("Add", "mnn", (1,) * 10, [(2,)], "different", "silent", {}),
    ("Max", "ncnn", (1, 5, 4, 3), [(5, 1, 1), (4, 1)], "different", "silent", {}),
    ("Max", "ncnn", (1, 5, 4, 3), [(3,), (1,)], "same_here", "size_trap", {}),
    ("Max", "ncnn", (1, 5, 4, 5), [(1,), (5,)], "different", "other_alignment", {}),
    ("Max", "numpy", (1, 5, 4, 5), [(1,), (5,)], "same", "same_plan", {}),
    ("Greater", "ncnn", (1, 3, 4), [(1, 3, 1)], "refused", "no_op", {}),
    ("PRelu", "torch", (2, 3, 4), [(3, 1)], "refused", "operand_count", {}),
    ("PRelu", "openvino", (2, 3, 3), [(3,)], "different", "other_alignment", {}),
    ("PRelu", "ncnn", (1, 3, 4, 4), [(3, 1, 1)], "same", "same_plan", {}),
    ("PRelu", "ncnn", (1, 3, 3, 3), [(3,)], "different", "other_alignment", {}),
    ("PRelu", "onnxruntime", (2, 3, 4), [(4,)], "same", "same_plan", {}),
    ("Clip", "ncnn", (1, 3, 4), [(), ()], "same", "same_plan", {}),
    ("Clip", "ncnn", (1, 3, 4), [(1,), ()], "same", "same_plan", {}),
    ("Clip", "onnxruntime", (3,), [(3,), ()], "refused", "invalid_source", {}),
    ("Gemm", "mnn", (3, 4), [(4, 3), (3, 1)], "different", "other_alignment", {}),
    ("Gemm", "mnn", (2, 4), [(4, 3), (2, 1)], "same_here", "size_trap", {}),
    ("Gemm", "ncnn", (2, 4), [(4, 3), (3,)], "same", "same_plan", {}),
    ("Gemm", "ncnn", (1, 4), [(4, 3), (1, 3)], "same", "same_plan", {}),
    ("Gemm", "paddle", (2, 4), [(4, 3), ()], "refused", "rank", {}),
    ("Gemm", "torch", (2, 4), [(4, 3), ()], "same", "same_plan", {}),
    ("MatMul", "ncnn", (1, 2, 3, 4), [(2, 4, 5)], "same", "same_plan", {}),
    ("MatMul", "ncnn", (2, 2, 2, 3, 4), [(4, 5)], "refused", "rank_limit", {}),
    ("MatMul", "mnn", (2, 2, 4), [(2, 1, 4, 3)], "different", "silent", {}),
    ("MatMul", "mnn", (3, 2, 4), [(2, 1, 4, 3)], "same_here", "size_trap", {}),
    ("MatMul", "tensorflow", (2, 3, 4), [(4,)], "refused", "rank", {}),
    ("DequantizeLinear", "torch", (2, 3, 4), [(3,)], "same", "same_plan", {}),
    (
        "BatchNormalization",
        "tensorflow",
        (2, 3, 3, 3),
        [(3,)] * 4,
        "different",
        "other_alignment",
        {},
    ),
    (
        "BatchNormalization",
        "tensorflow",
        (2, 3, 4, 4),
        [(3,)] * 4,
        "refused",
        "extent_mismatch",
        {},
    ),
    ("BatchNormalization", "ncnn", (1, 3, 4, 4), [(3,)] * 4, "same", "same_plan", {}),
    ("BatchNormalization", "ncnn", (2, 3, 4, 4), [(3,)] * 4, "same", "same_plan", {}),
    ("BatchNormalization", "ncnn", (2, 3, 4, 4), [(3,)] * 4, "different", "silent", NO_BATCH),
    (
        "BatchNormalization",
        "ncnn",
        (3, 3, 4, 4),
        [(3,)] * 4,
        "different",
        "other_alignment",
        NO_BATCH,
    ),
    ("InstanceNormalization", "numpy", (1, 3, 4, 4), [(3,)] * 2, "refused", "extent_mismatch", {}),
    ("InstanceNormalization", "ncnn", (1, 3, 4), [(3,)] * 2, "different", "silent", {}),
    ("InstanceNormalization", "torch", (1, 3, 4), [(3,)] * 2, "same", "same_plan", {}),
    ("GroupNormalization", "mnn", (1, 4, 4), [(4,)] * 2, "refused", "no_op", {"num_groups": 2}),
    ("LayerNormalization", "torch", (2, 3, 4), [(4,)] * 2, "same", "same_plan", {}),
    ("LayerNormalization", "torch", (2, 3, 4), [(1, 4)] * 2, "refused", "rank", {"axis": 2}),
    ("LayerNormalization", "ncnn", (1, 3, 4), [(3, 4)] * 2, "different", "silent", {"axis": 1}),
    ("LayerNormalization", "ncnn", (1, 2, 3, 4), [(3, 4)] * 2, "same", "same_plan", {"axis": 2}),
    ("LayerNormalization", "openvino", (2, 3, 4), [(4,)] * 2, "refused", "rank", {"axis": 1}),
    ("LayerNormalization", "onnxruntime", (2, 3, 4), [(4,)] * 2, "same", "same_plan", {"axis": 1}),
    ("QuantizeLinear", "onnxruntime", (2, 3), [(3,)], "same", "same_plan", {"axis": -1}),
    ("QuantizeLinear", "numpy", (2, 3), [(3,)], "refused", "no_op", {}),
    ("QuantizeLinear", "ncnn", (1, 3), [(3,)], "refused", "no_op", {}),
    ("LayerNormalization", "litert", (2, 3), [(3,), (3,)], "same", "same_plan", {}),
    ("LayerNormalization", "tosa", (2, 3), [(3,), (3,)], "refused", "rank", {}),
    ("RMSNormalization", "litert-gpu", (2, 3), [(3,)], "refused", "no_op", {}),
    ("RMSNormalization", "paddle", (2, 3), [(3,)], "refused", "no_op", {}),
    (
        "GroupNormalization",
        "jax",
        (1, 4, 3),
        [(4,), (4,)],
        "refused",
        "extent_mismatch",
        {"num_groups": 2},
    ),
    ("QuantizeLinear", "tensorflow", (2, 3, 4), [(3,)], "same", "same_plan", {}),
    ("QuantizeLinear", "paddle", (2, 3, 4), [(4,)], "refused", "axis_range", {"axis": 2}),
    ("QuantizeLinear", "litert", (2, 3, 4), [(3,)], "refused", "rank", {}),
    ("QuantizeLinear", "onnxruntime", (2, 3), [(2,)], "refused", "invalid_source", {}),
    (
        "Einsum",
        "torch",
        (2, 3),
        [(2, 3)],
        "unknown",
        "not_modelled",
        {"equation": "...j,...j->...j"},
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}-{row[3]}")
def test_site_has_its_verdict_and_reason(row: Any) -> None:
    op, target, x, others, verdict, reason, attributes = row
    opset = 23 if op == "RMSNormalization" else 21
    finding = judged(op, {"x": x}, weights(*others), target=target, opset=opset, **attributes)
    assert (finding.verdict, finding.reason) == (verdict, reason), finding.message
    assert finding.message
    check(finding, target)


def check(finding: Finding, target: str) -> None:
    """What holds of every finding: source, target, fix and counter-example fit its verdict."""
    if finding.verdict is Verdict.SAME:
        assert finding.fix is None
        assert finding.witness is None
    if finding.verdict is Verdict.SAME_HERE:
        assert isinstance(finding.target, Plan)
        # Numbers that do not fit in a narrower dtype have no counter-example of shapes.
        assert (finding.witness is None) == (finding.reason == "narrowed")
    if finding.reason in ("other_alignment", "silent"):
        assert finding.target != finding.source
        assert finding.witness is not None
    if finding.verdict is Verdict.UNKNOWN:
        # An op of a learnt engine that was not understood has a refusal that says so.
        unknown = finding.target
        assert unknown is None or (
            isinstance(unknown, zs.BroadcastError) and unknown.reason is Reason.NOT_UNDERSTOOD
        )


def test_where_is_judged_per_engine() -> None:
    nodes = [
        small.node("Greater", "x c", "m", name="m"),
        small.node("Where", "m x c", name="site"),
    ]
    content = small.model(nodes, {"x": (2, 3)}, {"c": (3,)})
    for target in ("onnxruntime", "torch", "openvino", "numpy"):
        assert small.audit(content, target).ok
    (_, where) = small.audit(content, "ncnn", "none").findings
    assert (where.verdict, where.reason) == ("refused", "no_op")


def said_fix(finding: Finding) -> str | None:
    return None if finding.fix is None else finding.fix.describe(finding.names)


def test_expand_is_judged_per_engine() -> None:
    def expand(target: str, x: Any, shape: list[int]) -> Finding:
        return judged("Expand", {"x": x}, {"s": np.array(shape)}, target=target)

    assert expand("torch", (3, 1), [2, 3, 4]).verdict == "same"
    assert expand("onnxruntime", (3, 4), [3, 1]).verdict == "same"  # both may stretch
    assert expand("torch", (3, 4), [3, 1]).reason == "one_way"
    assert expand("ncnn", (3, 1), [3, 4]).reason == "no_op"
    assert said_fix(expand("torch", (3, 4), [3, 1])) == "set s to (3, 4)"
    # OpenVINO's Broadcast has a mode in which both stretch, and its frontend takes that one.
    assert expand("openvino", (1, 3), [2, 1]).verdict == "same"
    assert expand("openvino", (2, 3), [3]).verdict == "same"
    assert said_fix(expand("jax", (1, 3), [2, 1])) == "set s to (2, 3)"
    assert expand("torch", (3, 2), [3, 4]).reason == "invalid_source"


def test_two_way_expand_draws_its_result_not_its_target() -> None:
    report = small.audit(
        small.model([small.node("Expand", "x s")], {"x": (3, 4)}, {"s": np.array([3, 1])}), "torch"
    )
    drawing = str(report).split("on the target")[0]
    assert "  result  3 4" in drawing


def test_every_fix_changes_something() -> None:
    trap = small.site("MatMul", {"a": (1, 8, 4, 3), "b": (5, 1, 3, 4)}, target="mnn")
    assert (trap.verdict, trap.fix) == ("same_here", None)


def test_expand_takes_its_target_from_the_result_shape() -> None:
    nodes = [small.node("Identity", "s", "t", name="copy"), small.node("Expand", "x t")]
    content = small.model(nodes, {"x": (3, 1)}, {"s": np.array([2, 3, 4])})
    content.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3, 4))
    )
    (finding,) = small.audit(content, "torch").findings
    assert finding.verdict == "same"
    dynamic = small.model([small.node("Expand", "x t")], {"x": (3, 1), "t": (3,)})
    dynamic.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    (finding,) = small.audit(dynamic, "torch").findings
    assert (finding.verdict, finding.reason) == ("unknown", "unknown_shape")


def test_weights_given_at_run_time_are_judged() -> None:
    product = {"x": (2, 4), "b": (4, 3)}
    assert judged("Gemm", {**product, "c": (3,)}).verdict == "same"
    assert judged("Gemm", {**product, "c": (2,)}).reason == "invalid_source"
    norm = {"x": (1, 3, 4, 4), **dict.fromkeys("abcd", (3,))}
    assert judged("BatchNormalization", norm).reason == "no_op"
    column = {"x": (3, 4), "b": (4, 3), "c": (3, 1)}
    assert small.site("Gemm", column, target="mnn").verdict == "same"


def test_custom_ops_and_unknown_shapes_are_unknown() -> None:
    finding = judged("Add", {"x": (2,)}, {"c": (2,)}, domain="com.example")
    assert (finding.verdict, finding.reason) == ("unknown", "custom_op")
    # Trees, encoders and scalers take one tensor of data: nothing broadcasts.
    scaler = small.node("Scaler", "x", domain="ai.onnx.ml", scale=[2.0, 3.0, 4.0])
    content = small.model([scaler], {"x": (2, 3)}, domains=["ai.onnx.ml"])
    assert not small.audit(content, "ncnn", "none").findings
    # NumPy's rule on both sides is the same rule, whatever the shapes are.
    assert small.site("Add", {"x": None}, {"c": (2,)}, target="torch").verdict == "same"
    for target in ("ncnn", "tensorrt"):
        finding = judged("Add", {"x": None}, {"c": (2,)}, target=target)
        assert (finding.verdict, finding.reason) == ("unknown", "unknown_shape")
        assert "'x'" in finding.message
    for shape in ((2, "N"), (2, None)):
        finding = small.site("Add", {"x": shape}, {"c": (2,)}, target="torch")
        assert (finding.verdict, finding.reason) == ("same", "same_plan")


def test_legacy_attributes_decide_the_rule() -> None:
    options: dict[str, Any] = {"opset": 6}
    cases = [
        ("torch", (2, 3, 4), (3,), {"broadcast": 1, "axis": 1}, "refused"),
        ("torch", (2, 3, 3), (3,), {"broadcast": 1, "axis": 1}, "different"),
        ("torch", (2, 3, 4), (4,), {"broadcast": 1}, "same"),
        ("paddle", (2, 3, 4), (3,), {"broadcast": 1, "axis": 1}, "same"),
        ("onnxruntime", (2, 3, 4), (4,), {"broadcast": 1}, "refused"),
        ("torch", (2, 3), (2, 3), {}, "same"),
        ("torch", (2, 3), (3,), {}, "refused"),  # the model itself does not broadcast
    ]
    for target, x, c, attributes, verdict in cases:
        finding = small.site("Add", {"x": x}, {"c": c}, target=target, **options, **attributes)
        assert finding.verdict == verdict, (target, x, c, attributes, finding.message)


@pytest.mark.parametrize(
    ("op", "opset", "verdict"),
    [
        ("Add", 6, "refused"),
        ("Add", 7, "same"),
        ("Max", 5, "refused"),
        ("Max", 6, "same"),
        ("InstanceNormalization", 6, "same"),
        ("InstanceNormalization", 5, "refused"),
        ("PRelu", 6, "refused"),
        ("MatMul", 1, "same"),
    ],
)
def test_kernels_of_onnx_runtime_depend_on_the_opset(op: str, opset: int, verdict: str) -> None:
    others = {"InstanceNormalization": [(3,), (3,)], "PRelu": [(3,)], "MatMul": [(4, 5)]}
    shapes = others.get(op, [(2, 3, 4)])
    finding = small.site(op, {"x": (2, 3, 4)}, weights(*shapes), target="onnxruntime", opset=opset)
    assert finding.verdict == verdict, finding.message


# Fixes and counter-examples.


@cache
def everything() -> list[tuple[str, Finding, Any]]:
    """All findings of the examples on all engines, with the site they are of."""
    entries = []
    for target in ENGINES:
        for path in sorted(EXAMPLES.rglob("*.onnx")):
            graph = read_onnx(path)
            report = audit_graph(graph, find_engine(target))
            sites = [site for site in map(find_site, graph.nodes) if site is not None]
            entries += [
                (target, finding, site)
                for finding, site in zip(report.findings, sites, strict=True)
            ]
    return entries


def test_findings_fit_their_verdicts() -> None:
    assert len(everything()) > 500
    for target, finding, _ in everything():
        check(finding, target)


def _side(target: str, site: Any, finding: Finding) -> Any:
    return transport(site, find_engine(target))


def test_every_applied_fix_gives_the_models_result() -> None:
    fixed = 0
    for target, finding, site in everything():
        fix, source = finding.fix, finding.source
        if fix is None or not isinstance(source, Plan) or site.kind == "expand":
            continue
        if source.open is not None:  # tests/models/test_symbolic_audit.py
            continue
        if fix.explicit:  # tests/unit/test_express.py
            assert fix.result_shape == source.shape
            continue
        side = _side(target, site, finding)
        shapes = fix.shapes
        plan = side.plan(shapes[:2])
        for shape in shapes[2:] if side.rule.operands[1] == 2 else ():
            plan = side.plan((plan.shape, shape))
        if side.rule.operands[1] > 2:
            plan = side.plan(shapes)
        assert isinstance(plan, Plan), (target, finding.node, fix)
        assert plan.shape == fix.result_shape
        # The same numbers: of operands counted, laid out by the fix and by the model.
        wanted, got = _numbers(source, source.operands), _numbers(plan, plan.operands)
        if len(shapes) == 2:
            swapped = got[::-1] if fix.swapped else got
            for a, b in zip(wanted, swapped, strict=True):
                assert np.array_equal(a.ravel(), b.ravel()), (target, finding.node)
        fixed += 1
    assert fixed > 20


def _numbers(plan: Plan, shapes: Any) -> list[Any]:
    data = [np.arange(int(np.prod(shape))).reshape(shape) for shape in shapes]
    return [np.asarray(view) for view in plan.views(*data)]


def test_every_counter_example_shows_a_difference() -> None:
    shown = 0
    for target, finding, site in everything():
        witness = finding.witness
        if witness is None or finding.reason == "batch_broadcast":
            continue  # the latter's shapes have the batch axis: test_batch recomputes those
        side = _side(target, site, finding)
        meant = [zs.plan(*witness.shapes)] if site.rule.name == "numpy" else []
        if len(witness.shapes) == 2 and meant:
            got = side.plan(witness.shapes)
            assert got != meant[0], (target, finding.node, witness)
            if witness.index:
                assert isinstance(got, Plan)
                function = getattr(np, witness.op)
                data = _data(witness)
                source = function(*meant[0].views(*data))[witness.index]
                other = function(*got.views(*data))[witness.index]
                assert (source, other) == (witness.source, witness.target)
                assert source != other
            shown += 1
    assert shown > 10


def _data(witness: Any) -> list[Any]:
    start, data = 0, []
    for shape in witness.shapes:
        count = int(np.prod(shape))
        data.append(np.arange(start, start + count, dtype=np.float64).reshape(shape))
        start += count if witness.op == "add" else 0
    return data


def test_all_three_operands_decide_the_verdict() -> None:
    finding = judged("Max", {"x": (1, 5, 4, 5)}, weights((1,), (5,)))
    assert isinstance(finding.target, Plan)
    assert finding.target.operands == ((5, 4, 5), (1,), (5,))
    assert finding.target.aligned[2] == (5, 1, 1)
    assert finding.fix is not None
    assert finding.fix.shapes[2] == (1, 1, 5)
    assert finding.witness is not None
    function = getattr(np, finding.witness.op)
    meant = reduce(function, _data(finding.witness))[finding.witness.index]
    assert meant == finding.witness.source != finding.witness.target
