"""Audits for targets with limits: reasons, computed fixes, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small
from onnx import TensorProto, helper, numpy_helper

import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.models.findings import Finding

Shape = tuple[Any, ...]


#: Op for op: what the engine itself takes, and no converter makes.
ENGINE_ALONE = {"via": "none"}


def judged(target: str, *shapes: Shape, op: str = "Add", **more: Any) -> Finding:
    more.setdefault("options", ENGINE_ALONE)
    return small.site(op, dict(zip("abc", shapes, strict=False)), target=target, **more)


def typed(target: str, op: str, dtype: str, *shapes: Shape, out: str | None = None) -> Finding:
    """The finding of a node whose operands are of this dtype, op for op."""
    kind = getattr(TensorProto, dtype.upper())
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, shape in zip("abc", shapes, strict=False)
    ]
    result = helper.make_tensor_value_info("y", getattr(TensorProto, (out or dtype).upper()), None)
    node = helper.make_node(op, [value.name for value in inputs], ["y"], name="site")
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [result]),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    (finding,) = small.audit(model, target, **ENGINE_ALONE).findings
    return finding


def check_fix(finding: Finding, shapes: tuple[Shape, ...]) -> None:
    """The fix computes what the model does: merged or reshaped, laid out again at the end."""
    fix = finding.fix
    assert fix is not None
    data = [
        np.arange(1, 1 + np.prod(s, dtype=int)).reshape(s) * 10**k for k, s in enumerate(shapes)
    ]
    meant = data[0]
    for operand in data[1:]:
        meant = meant + operand
    order = data[::-1] if fix.swapped else data
    got = [x.reshape(s) for x, s in zip(order, fix.shapes, strict=True)]
    total = got[0]
    for operand in got[1:]:
        total = total + operand
    assert total.shape == fix.result_shape
    np.testing.assert_array_equal(total.reshape(meant.shape), meant)


# Rank limits. Reported: executorch#11694, coremltools#2291, LiteRT#2540.

LIMITS = [
    ("coreml", 5, ((2, 3, 4, 5, 2, 3), (4, 5, 2, 3))),
    ("coreml", 5, ((2, 1, 3, 1, 2, 2, 2), (2, 4, 3, 1, 1, 1, 1))),
    ("litert-gpu", 4, ((2, 3, 4, 5, 2), (1, 1, 1, 5, 2))),
    ("tosa", 6, ((2,) * 8, (1,) * 4 + (2,) * 4)),
    ("tensorrt", 8, ((2,) * 10, (1,) * 9 + (2,))),
    ("mnn", 9, ((2,) * 10, (2,) * 4)),
    ("paddle", 9, ((2,) * 10, (2,) * 4)),
    ("tensorflow", 5, None),
]


@pytest.mark.parametrize(("target", "most", "shapes"), [row for row in LIMITS if row[2]])
def test_a_rank_limit_is_named_and_axes_are_merged(target: str, most: int, shapes: Any) -> None:
    finding = judged(target, *shapes)
    assert finding.verdict in ("refused", "different")
    assert f"the most it carries is {most}" in finding.message
    assert finding.fix is not None
    assert len(finding.fix.result_shape) == most
    assert finding.fix.merged_axes
    check_fix(finding, shapes)
    # Tensors of these engines end at the limit: the merge has to go on before and after.
    spread = ENGINES[target].tensor_rank is not None
    assert spread == any("must have the axes merged too" in note for note in finding.notes)


@pytest.mark.parametrize("target", ["coreml", "tensorflow", "litert-gpu"])
def test_impossible_merge_is_reported(target: str) -> None:
    finding = judged(target, (2, 1, 2, 1, 2, 1), (1, 3, 1, 3, 1, 3))
    assert (finding.verdict, finding.reason) == ("refused", "rank_limit")
    assert finding.fix is None
    assert finding.message.endswith("no merge of neighbouring axes fits")


def test_axes_of_three_operands_merge() -> None:
    shapes = ((2, 3, 4, 5, 2, 3), (3,), (4, 5, 2, 3))
    finding = judged("coreml", *shapes, op="Sum")
    assert (finding.verdict, finding.reason) == ("refused", "rank_limit")
    check_fix(finding, shapes)


def test_axes_of_open_sizes_merge() -> None:
    fix = judged("coreml", ("N", 3, 4, 5, 6, 7), ("N", 1, 1, 5, 6, 7)).fix
    assert fix is not None
    assert fix.merged_axes == ((0,), (1,), (2,), (3,), (4, 5))
    assert fix.only_if is None
    assert judged("coreml", ("N", "M", 4, 5, 6, 7), ("N", "M", 1, 1, 6, 7)).fix is not None


def test_openvino_supports_thirty_two_axes() -> None:
    shapes = (2,) * 3 + (1,) * 30, (2,)
    finding = judged("openvino", *shapes)
    assert "the most it carries is 32" in finding.message
    check_fix(finding, shapes)


def test_litert_supports_more_than_its_documents() -> None:
    """tensorflow#14924: TensorFlow refuses the pair, LiteRT's CPU kernels have 8 axes."""
    pair = (10, 6, 6, 4, 4, 1), (10, 1, 6, 1, 4, 5)
    assert judged("tensorflow", *pair).verdict == "refused"
    assert judged("litert", *pair).verdict == "same"
    nine = (2, 1) * 4 + (2,), (1, 2) * 4 + (1,)
    finding = judged("litert", *nine)
    assert (finding.verdict, finding.reason) == ("different", "silent")
    assert "the most it carries where sizes differ is 8" in finding.message
    assert "no merge" in finding.message
    merges = judged("litert", (2,) * 9, (2,) * 8, op="Sub")
    assert merges.fix is not None
    assert len(merges.fix.result_shape) == 8


# Equal ranks, explicit broadcasts, layouts.


@pytest.mark.parametrize("target", ["tensorrt", "tosa"])
def test_operand_of_lower_rank_is_reshaped(target: str) -> None:
    for shapes in (((2, 3, 4), (3, 4)), ((3, 4), (2, 3, 4)), ((2, 3), ())):
        finding = judged(target, *shapes)
        assert (finding.verdict, finding.reason) == ("refused", "rank")
        assert "it takes operands of one rank" in finding.message
        assert finding.fix is not None
        assert sum(finding.fix.changed) == 1
        check_fix(finding, shapes)
    fix = judged(target, ("N", 3, 4), (4,)).fix
    assert fix is not None
    assert fix.shapes[1] == (1, 1, 4)
    assert fix.only_if is None


def test_stablehlo_gets_explicit_broadcasts() -> None:
    assert judged("stablehlo", (2, 3), (2, 3)).verdict == "same"
    for shapes in (((2, 3), (3,)), ((2, 1), (1, 3)), (("N", 3), (3,))):
        finding = judged("stablehlo", *shapes)
        assert finding.verdict == "refused"
        assert finding.fix is not None
        assert any(axes is not None for axes in finding.fix.explicit)
        assert "broadcast b to" in finding.fix.describe(finding.names)


def test_litert_gpu_treats_constants_and_inputs_differently() -> None:
    """LiteRT#8980."""
    wrong = judged("litert-gpu", (20, 128, 128), (1, 1, 128, 128))
    assert wrong.verdict == "different"
    check_fix(wrong, ((20, 128, 128), (1, 1, 128, 128)))
    assert judged("litert-gpu", (2, 3, 4, 5), (5,)).verdict == "different"
    constant = small.site("Add", {"a": (2, 3, 4, 5)}, {"b": (5,)}, target="litert-gpu")
    assert constant.verdict == "same"
    both = small.site("Add", {"a": (2, 1, 4, 5)}, {"b": (3, 1, 1)}, target="litert-gpu")
    assert (both.verdict, both.reason) == ("refused", "rank")  # ADD checks its ranks first
    unchecked = small.site("Sub", {"a": (2, 1, 4, 5)}, {"b": (3, 1, 1)}, target="litert-gpu")
    assert unchecked.verdict == "different"


def test_exchange_is_proposed_only_for_reversible_ops() -> None:
    for op, swaps in (("Add", True), ("Less", True), ("Sub", False), ("Pow", False)):
        finding = judged("litert-gpu", (2, 1, 4), (2, 3, 4), op=op)
        assert finding.verdict == "different"
        assert (finding.fix is not None) == swaps


def test_expand_is_judged_where_the_engine_is_documented() -> None:
    def expand(target: str) -> Finding:
        inputs = {"data": (3, 1)}
        weights = {"shape": np.array([2, 3, 4])}
        return small.site("Expand", inputs, weights, target=target, options=ENGINE_ALONE)

    assert expand("litert").verdict == "same"
    for target in ("litert-gpu", "ncnn", "coreml", "tosa"):
        assert (expand(target).verdict, expand(target).reason) == ("refused", "no_op")
    # Its Slice repeats axes of 1, and adds none.
    assert (expand("tensorrt").verdict, expand("tensorrt").reason) == ("refused", "rank")


def test_report_marks_facts_that_were_only_read() -> None:
    content = small.model([small.node("Add", "a b")], {"a": (2, 3), "b": (2, 3)})
    for target, row in ENGINES.items():
        listed = [note for note in small.audit(content, target).notes if "not run" in note]
        assert listed == ([] if row.run else listed[:1])
        assert all(row.source in note for note in listed)


def test_undocumented_op_is_unknown() -> None:
    finding = judged("tensorrt", (2, 3), (2, 3), op="StringConcat")
    assert (finding.verdict, finding.reason) == ("unknown", "not_measured")


def test_op_without_a_parser_is_left_to_the_cpu() -> None:
    """model_builder.cc has one parser for each op that the delegate takes."""
    finding = judged("litert-gpu", (2, 3), (2, 3), op="BitwiseAnd")
    assert (finding.verdict, finding.reason) == ("refused", "no_op")


@pytest.mark.parametrize(
    ("target", "op"),
    [("coreml", "BitwiseAnd"), ("tosa", "Mod"), ("tensorrt", "GreaterOrEqual")],
)
def test_op_outside_a_complete_list_is_refused(target: str, op: str) -> None:
    shapes = {"a": (2, 3), "b": (2, 3)}
    finding = small.site(op, shapes, target=target, options=ENGINE_ALONE)
    assert (finding.verdict, finding.reason) == ("refused", "no_op")


COMPOUNDS = [
    ("tensorrt", "MatMul", ((2, 3, 4), (2, 4, 5)), "same"),
    ("tensorrt", "MatMul", ((2, 3, 4), (1, 2, 4, 5)), "refused"),  # ranks of the batches
    ("tensorrt", "Gemm", ((2, 3), (3, 4), (4,)), "refused"),
    ("coreml", "MatMul", ((5, 2, 3, 4), (2, 4, 5)), "same"),
    ("coreml", "Gemm", ((2, 3), (3, 4), (4,)), "same"),
    ("tosa", "MatMul", ((2, 3, 4), (2, 4, 5)), "same"),
    ("tosa", "MatMul", ((2, 2, 3, 4), (2, 2, 4, 5)), "refused"),  # one batch axis
    ("stablehlo", "MatMul", ((2, 3, 4), (2, 4, 5)), "same"),
    ("stablehlo", "MatMul", ((2, 3, 4), (1, 4, 5)), "refused"),
]


@pytest.mark.parametrize(("target", "op", "shapes", "verdict"), COMPOUNDS)
def test_documented_compounds_are_judged(target: str, op: str, shapes: Any, verdict: str) -> None:
    assert judged(target, *shapes, op=op).verdict == verdict


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("tensorrt", "same"),
        ("coreml", "same"),
        ("stablehlo", "same"),
        ("tosa", "refused"),  # written out, and ranks must be equal
        ("litert", "refused"),  # written out, and vectors go to the last axis
        ("litert-gpu", "refused"),
    ],
)
def test_documented_batch_normalisation_is_judged(target: str, verdict: str) -> None:
    weights = dict.fromkeys(("s", "b", "m", "v"), (3,))
    finding = small.site(
        "BatchNormalization", {"x": (1, 3, 4, 4)}, weights, target=target, options=ENGINE_ALONE
    )
    assert finding.verdict == verdict


# Dtypes.

BY_DTYPE = [
    ("mnn", "Add", "int64", "same_here", "narrowed"),
    ("mnn", "Add", "uint8", "refused", "crash"),
    ("openvino", "Sub", "uint8", "same_here", "narrowed"),
    ("litert", "Add", "int8", "refused", "crash"),
    ("litert", "Mul", "uint8", "different", "wrong_result"),
    ("litert", "Div", "int64", "refused", "dtype"),
    ("litert", "Pow", "float16", "refused", "dtype"),
    ("tosa", "Mul", "double", "refused", "dtype"),
    ("onnxruntime", "Max", "int16", "refused", "dtype"),
    ("tensorflow", "Pow", "uint32", "refused", "dtype"),
    ("torch", "Sub", "uint16", "refused", "dtype"),
    ("onnxruntime", "PRelu", "double", "refused", "dtype"),
    ("onnxruntime", "Add", "bfloat16", "refused", "dtype"),
]


@pytest.mark.parametrize(("target", "op", "dtype", "verdict", "reason"), BY_DTYPE)
def test_wrong_dtype_is_not_same(
    target: str, op: str, dtype: str, verdict: str, reason: str
) -> None:
    for shapes in (((2, 3), (2, 3)), (("N", 3), ("N", 3))):
        finding = typed(target, op, dtype, *shapes)
        assert (finding.verdict, finding.reason) == (verdict, reason)
        assert finding.fix is None
        float_ = typed(target, op, "float", *shapes)
        assert float_.verdict == "same"


@pytest.mark.parametrize(
    ("op", "dtype", "words"),
    [("Mul", "uint8", "AVX-512"), ("Sub", "int8", "-127"), ("Greater", "float", "")],
)
def test_processors_are_distinguished_where_it_matters(op: str, dtype: str, words: str) -> None:
    """A product of bytes may be 0 there; of a comparison only the engine's row says it."""
    out = "bool" if op == "Greater" else dtype
    finding = typed("openvino", op, dtype, (2, 3), (3,), out=out)
    assert words in finding.message
    assert (finding.verdict == "same") == (not words)


def test_limits_of_dtype_and_rank_combine() -> None:
    deep = (2,) * 9, (2,)
    assert typed("litert", "Add", "float", *deep).verdict == "same"
    finding = typed("litert", "Add", "int32", *deep)
    assert (finding.verdict, finding.reason) == ("refused", "crash")
    assert typed("litert", "Add", "int32", (2,) * 8, (2,)).verdict == "same"
    assert typed("litert", "Add", "int32", ("N", *(2,) * 8), (2,)).verdict != "same"


def test_findings_that_differ_only_in_dtype_are_judged_separately() -> None:
    values = [("a", TensorProto.FLOAT), ("b", TensorProto.INT64)]
    inputs = [helper.make_tensor_value_info(name, kind, (2, 3)) for name, kind in values]
    nodes = [helper.make_node("Add", [n, n], [f"{n}2"], name=n) for n, _ in values]
    outputs = [helper.make_tensor_value_info(f"{n}2", kind, None) for n, kind in values]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 21)]
    )
    assert [f.verdict for f in small.audit(model, "mnn").findings] == ["same", "same_here"]


def test_supports_agrees_with_the_audit() -> None:
    for target, op, dtype, _, _ in BY_DTYPE:
        name = {"double": "float64"}.get(dtype, dtype)
        support = zs.supports(target, op, name, [(2, 3), (2, 3)])
        assert not support.ok
        assert support.reason in typed(target, op, dtype, (2, 3), (2, 3)).message


def test_numbers_within_a_narrower_dtype_are_the_same() -> None:
    for number, verdict in ((7, "same"), (1 << 40, "same_here")):
        constants = [
            helper.make_tensor(name, TensorProto.INT64, (1,), [number]) for name in ("a", "b")
        ]
        node = helper.make_node("Mul", ["a", "b"], ["y"], name="n")
        reshape = helper.make_node("Reshape", ["x", "y"], ["z"], name="r")
        graph = helper.make_graph(
            [node, reshape],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (7, "N"))],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
            constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        (finding,) = small.audit(model, "mnn").findings
        assert finding.verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(3, "same"), (2**30, "same_here")])
def test_tables_of_constants_are_computed(factor: int, verdict: str) -> None:
    """Exporters write the angles of a Fourier transform as products of columns and rows."""
    column = np.arange(8).reshape(8, 1)
    nodes = [
        helper.make_node("Mul", ["column", "row"], ["table"], name="table"),
        helper.make_node("Sub", ["table", "row"], ["moved"], name="moved"),
        helper.make_node("Gather", ["x", "moved"], ["y"], name="gather"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N",))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(column, "column"),
            numpy_helper.from_array(column.T * factor, "row"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    findings = small.audit(model, "mnn").findings
    assert [finding.verdict for finding in findings] == [verdict] * 2


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_mnn_stretches_nothing_in_ops_of_three_operands(op: str) -> None:
    assert judged("mnn", (2, 3), (2, 3), (2, 3), op=op).verdict == "same"
    finding = judged("mnn", (2, 3), (3,), (1,), op=op)
    assert (finding.verdict, finding.reason) == ("different", "silent")
    of_two = "refused" if op == "Mean" else "same"
    assert judged("mnn", (2, 3), (3,), op=op).verdict == of_two


def test_mnn_does_not_stretch_the_third_operand_of_a_selection() -> None:
    assert judged("mnn", (2, 3), (2, 3), (), op="Where").verdict == "same"
    finding = judged("mnn", (2, 3), (2, 3), (3,), op="Where")
    assert (finding.verdict, finding.reason) == ("different", "silent")


def test_ncnn_has_another_remainder() -> None:
    finding = judged("ncnn", (2, 3), (2, 1), op="Mod")
    assert (finding.verdict, finding.reason) == ("different", "other_values")
    assert judged("openvino", (2, 3), (2, 1), op="Mod").verdict == "same"


def test_attribute_decides_the_op() -> None:
    """Mod with fmod=1 is C's fmod, which engines with a remainder need not have."""
    shapes = {"a": (2, 3), "b": (2, 3)}
    by_name = {
        (fmod, target): small.site("Mod", shapes, target=target, options={"via": "none"}, fmod=fmod)
        for fmod in (0, 1)
        for target in ("litert", "coreml", "ncnn", "onnxruntime")
    }
    assert by_name[0, "litert"].verdict == by_name[0, "coreml"].verdict == "same"
    assert by_name[1, "litert"].verdict == "refused"
    assert by_name[1, "coreml"].verdict == "refused"
    # Run: the one rounds to nearest, the other leaves b of a multiple of b now and then.
    assert by_name[0, "ncnn"].verdict == by_name[1, "ncnn"].verdict == "different"
    assert by_name[0, "ncnn"].message != by_name[1, "ncnn"].message
    assert "fmod" in by_name[1, "litert"].message


def test_mnn_multiplies_only_real_matrices() -> None:
    """Run: the converter takes matrices of integers, and every product is 0."""
    for dtype, verdict in (("int32", "different"), ("int64", "different"), ("float", "same")):
        finding = typed("mnn", "MatMul", dtype, (5, 2, 3), (3, 4))
        assert finding.verdict == verdict
    assert typed("onnxruntime", "MatMul", "int32", (5, 2, 3), (3, 4)).verdict == "same"
    assert typed("onnxruntime", "Gemm", "int32", (2, 3), (3, 4), (4,)).verdict == "refused"
    assert typed("onnxruntime", "Mean", "double", (2, 3), (3,)).verdict == "refused"
    assert typed("torch", "PRelu", "int32", (2, 3), (1,)).reason == "dtype"
    assert typed("torch", "PRelu", "float", (2, 3), (1,)).verdict == "same"
    assert typed("mnn", "MatMul", "double", (5, 2, 3), (3, 4)).verdict == "same"


def test_clip_has_the_engines_limit_of_axes() -> None:
    bounds = {"lo": np.float32(1), "hi": np.float32(3)}
    shapes = {(2,) * 4: "same", ("N", 3): "same", (2,) * 7: "refused", (2, 0): "different"}
    for shape, verdict in shapes.items():
        finding = small.site("Clip", {"a": shape}, bounds, target="ncnn")
        assert finding.verdict == verdict


def test_nodes_that_differ_only_in_numbers_are_judged_separately() -> None:
    """In MNN's int32 seven times seven is the same, and 2^40 times 2^40 is not."""
    numbers = {"small": 7, "large": 1 << 40}
    constants = [helper.make_tensor(k, TensorProto.INT64, (1,), [v]) for k, v in numbers.items()]
    nodes = [helper.make_node("Max", [k, k], [f"{k}_y"], name=k) for k in numbers]
    nodes += [
        helper.make_node("Reshape", ["x", f"{k}_y"], [f"{k}_z"], name=f"{k}_r") for k in numbers
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (7, "N"))
    outputs = [helper.make_tensor_value_info(f"{k}_z", TensorProto.FLOAT, None) for k in numbers]
    graph = helper.make_graph(nodes, "g", [x], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    findings = {finding.node: finding.verdict for finding in small.audit(model, "mnn").findings}
    assert findings == {"small": "same", "large": "same_here"}
