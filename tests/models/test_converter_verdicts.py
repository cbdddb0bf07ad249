"""Verdicts on ONNX nodes as converters treat them; `campaigns front-doors` runs the converters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small
from onnx import TensorProto, helper

from zerostride.engines import ENGINES
from zerostride.models.findings import Finding

F = np.float32


def row(
    where: str, expected: str, inputs: Any, weights: Any = None, opset: int = 17, **attributes: int
) -> Any:
    """A target and an op; the verdict and the reason of the finding."""
    return pytest.param(*where.split(), expected, inputs, weights or {}, opset, attributes)


ROWS = (
    row("openvino LayerNormalization", "same same_plan", {"x": (2, 3, 4), "s": (3, 4)}, axis=1),
    row("openvino LayerNormalization", "same same_plan", {"x": (2, 3, 4), "s": (1, 3, 4)}, axis=1),
    row("openvino LayerNormalization", "refused rank", {"x": (2, 3, 4), "s": (1, 3, 1)}, axis=1),
    row(
        "openvino LayerNormalization",
        "different other_alignment",
        {"x": (2, 3, 3), "s": (3, 1)},
        axis=2,
    ),
    row(
        "openvino LayerNormalization", "different silent", {"x": (4, 2, 2), "s": (4, 1, 1)}, axis=1
    ),
    row(
        "openvino Add",
        "same same_plan",
        {"x": (1, 3, 4, 3), "s": (3,)},
        opset=6,
        broadcast=1,
        axis=1,
    ),
    row(
        "openvino Pow",
        "different other_alignment",
        {"x": (1, 3, 4, 3), "s": (3,)},
        opset=6,
        broadcast=1,
        axis=1,
    ),
    row("openvino Max", "refused not_identical", {"x": (1, 1)}, {"s": np.ones((1, 1), F)}, opset=6),
    row("openvino Max", "same same_plan", {"x": (1,)}, {"s": np.ones((1,), F)}, opset=6),
    row(
        "mnn LayerNormalization",
        "different wrong_result",
        {"x": (2, 3)},
        {"s": np.ones((2, 3), F)},
        axis=0,
    ),
    row(
        "mnn LayerNormalization",
        "same same_plan",
        {"x": (2, 3)},
        {"s": np.ones((2, 3), F)},
        axis=-2,
    ),
    row("mnn Mod", "different other_values", {"x": (2, 3), "s": (3,)}, fmod=1),
    row("mnn Less", "different other_values", {"x": (2, 3), "s": (3,)}),
    row("mnn Less", "same same_plan", {"x": (2, 3)}, {"s": np.zeros((), F)}),
    row("mnn Less", "different other_values", {"x": (2, 3)}, {"s": np.full((), -1, F)}),
    row("mnn Pow", "refused dtype", {"x": (2, 3)}, {"s": np.array(3)}),
    row("mnn Pow", "same same_plan", {"x": (2, 3)}, {"s": np.array(2)}),
    row("mnn Greater", "same same_plan", {"x": (2, 3), "s": (3,)}),
    row("mnn Greater", "different other_values", {"x": (2, 1), "s": (3,)}),
    row("mnn LessOrEqual", "different other_values", {"x": (2, 1), "s": (3,)}),
    row("mnn LessOrEqual", "same same_plan", {"x": (2, 1)}, {"s": np.ones(3, F)}),
    row("mnn MatMul", "same same_plan", {"x": (2, 1, 1, 4)}, {"s": np.ones(4, F)}),
    row("mnn MatMul", "refused rank", {"x": (2, 3, 4)}, {"s": np.ones(4, F)}),
    row("mnn MatMul", "refused rank", {"x": (2, 3, 1, 4)}, {"s": np.ones(4, F)}),
    row("mnn MatMul", "different wrong_result", {"x": (2, 1, 3, 4)}, {"s": np.ones(4, F)}),
    row("mnn MatMul", "refused crash", {"x": (4,), "s": (4,)}),
)


@pytest.mark.parametrize(
    ("target", "op", "expected", "inputs", "weights", "opset", "attributes"), ROWS
)
def test_a_node_has_the_verdict_of_its_converter(
    target: str,
    op: str,
    expected: str,
    inputs: Any,
    weights: Any,
    opset: int,
    attributes: dict[str, int],
) -> None:
    node = small.node(op, "x s", **attributes)
    model = small.model([node], inputs, weights, opset=opset)
    (finding,) = small.audit(model, target).findings
    assert f"{finding.verdict} {finding.reason}" == expected, finding.message


@pytest.mark.parametrize(("transposed", "verdict"), [(0, "same"), (1, "different")])
def test_mnns_converter_leaves_a_transposition_out(transposed: int, verdict: str) -> None:
    node = small.node("Gemm", "x w c", transA=transposed)
    weights = {"w": np.ones((4, 3), F), "c": np.ones(3, F)}
    model = small.model([node], {"x": (4, 2) if transposed else (2, 4)}, weights)
    (finding,) = small.audit(model, "mnn").findings
    assert finding.verdict == verdict, finding.message


def _of(op: str, *kinds: int) -> Finding:
    """The finding of an op on operands of these element types."""
    names = [f"x{k}" for k in range(len(kinds))]
    inputs = [
        helper.make_tensor_value_info(name, kind, (2,))
        for name, kind in zip(names, kinds, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], name="n")],
        "g",
        inputs,
        [helper.make_empty_tensor_value_info("y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (finding,) = small.audit(model, "openvino").findings
    return finding


def test_element_types_that_do_not_go_together_are_no_model() -> None:
    single, whole, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    for op, kinds in (("Add", (single, whole)), ("Where", (truth, single, whole))):
        assert (_of(op, *kinds).verdict, _of(op, *kinds).reason) == ("refused", "mixed_types")
    for op, kinds in (("Pow", (single, whole)), ("Where", (truth, single, single))):
        assert _of(op, *kinds).reason != "mixed_types"


def test_positions_are_the_same_where_data_are_narrowed() -> None:
    nodes = [
        small.node("Shape", "x", "s", name="shape"),
        small.node("Greater", "s two", "y", name="position"),
        small.node("Greater", "ids two", "z", name="data"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 3)),
            helper.make_tensor_value_info("ids", TensorProto.INT64, (4,)),
        ],
        [helper.make_empty_tensor_value_info(name) for name in "yz"],
        [helper.make_tensor("two", TensorProto.INT64, (1,), [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    findings = small.audit(model, "openvino").findings
    verdicts = {finding.node: finding.verdict for finding in findings}
    assert verdicts["data"] == "same_here"
    assert verdicts.get("position", "same") == "same"


def _verdicts(nodes: Any, inputs: Any, weights: Any, target: str) -> list[str]:
    model = small.model(nodes, inputs, weights, opset=17)
    return [str(finding.verdict) for finding in small.audit(model, target).findings]


@pytest.mark.parametrize(("shape", "verdict"), [((2,), "same"), ((1,), "different")])
def test_an_expand_that_every_reader_repeats_changes_nothing(shape: Any, verdict: str) -> None:
    nodes = [small.node("Expand", "x n", "t"), small.node("Mul", "t z")]
    weights = {"n": np.array([2])}
    assert _verdicts(nodes, {"x": (), "z": shape}, weights, "ncnn")[0] == verdict


def test_inputs_of_as_many_samples_have_the_batch_of_the_first() -> None:
    nodes = [small.node("Conv", "x w", "t"), small.node("Mul", "t z")]
    inputs, weights = {"x": (2, 3, 1, 1), "z": (2, 4, 1, 1)}, {"w": (4, 3, 1, 1)}
    assert _verdicts(nodes, inputs, weights, "ncnn") == ["same"]
    assert _verdicts(nodes, {**inputs, "z": (4, 1, 1)}, weights, "ncnn") == ["same"]


@pytest.mark.parametrize(
    ("data", "factor", "verdict"),
    [((3, 3), (3,), "different"), ((3, 3), (), "same"), ((2, 3), (1,), "same")],
)
def test_openvino_multiplies_a_factor_into_the_vector_before_it(
    data: Any, factor: Any, verdict: str
) -> None:
    nodes = [small.node("MatMul", "x v", "t"), small.node("Mul", "t c")]
    weights = {"c": np.full(factor, 2, F)}
    assert _verdicts(nodes, {"x": data, "v": (3,)}, weights, "openvino") == [verdict]


@pytest.mark.parametrize("op", ["Add", "And", "BitwiseAnd", "Equal", "Xor"])
def test_every_engine_has_a_verdict_on_many_axes(op: str) -> None:
    kind = {"Add": TensorProto.FLOAT, "And": TensorProto.BOOL, "Xor": TensorProto.BOOL}
    for shapes in (((2, 1) * 5, (1, 2) * 5), ((2, 3, 4, 5, 1, 2, 1), (3, 1, 5, 1, 1, 1))):
        inputs = [
            helper.make_tensor_value_info(name, kind.get(op, TensorProto.INT32), shape)
            for name, shape in zip("ab", shapes, strict=True)
        ]
        node, result = (
            helper.make_node(op, ["a", "b"], ["y"]),
            [helper.make_empty_tensor_value_info("y")],
        )
        graph = helper.make_graph([node], "g", inputs, result)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        for target in ENGINES:
            for via in (None, "none"):
                assert len(small.audit(model, target, via=via).findings) == 1


def test_a_tensor_inside_has_no_one_who_counts_its_axes() -> None:
    """An input of five axes is refused as it is fed; a tensor inside goes wrong (run)."""
    mul = small.node("Mul", "t z")
    inner = [small.node("MatMul", "x w", "t"), mul]
    weights = {"w": np.ones((5, 4, 4, 3, 1), F)}
    assert _verdicts(inner, {"x": (4, 4, 3, 3), "z": ()}, weights, "ncnn")[1] == "different"
    fed = {"t": (5, 4, 4, 3, 1), "z": ()}
    assert _verdicts([mul], fed, {}, "ncnn") == ["refused"]


@pytest.mark.parametrize(
    ("bias", "columns", "verdict"),
    [((), 1, "same"), ((1,), 1, "same"), ((1, 1), 1, "refused"), ((), 2, "refused")],
)
def test_pnnx_takes_a_bias_of_one_number_for_one_column(
    bias: Any, columns: int, verdict: str
) -> None:
    node = small.node("Gemm", "x w c")
    weights = {"w": np.ones((2, columns), F), "c": np.ones(bias, F)}
    assert _verdicts([node], {"x": (3, 2)}, weights, "ncnn") == [verdict]


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_pnnx_has_no_kernel_for_a_dividend_of_whole_numbers(op: str) -> None:
    attributes = {"fmod": 1} if op == "Mod" else {}
    for operands, reason in (("k x", "crash"), ("x k", "wrong_result")):
        node = small.node(op, operands, **attributes)
        x = helper.make_tensor_value_info("x", TensorProto.INT32, (2,))
        k = helper.make_tensor("k", TensorProto.INT32, (1,), [7])
        result = [helper.make_empty_tensor_value_info("y")]
        graph = helper.make_graph([node], "g", [x], result, [k])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        (finding,) = small.audit(model, "ncnn").findings
        assert (finding.verdict, finding.reason) == ("different", reason), finding.message
