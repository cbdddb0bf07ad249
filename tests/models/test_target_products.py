"""Audits of products and compounds for targets with limits: factors, layouts, integers."""

from __future__ import annotations

from typing import Any

import pytest
import small
from onnx import TensorProto, helper

Shape = tuple[Any, ...]


# LiteRT's GPU delegate: products become convolutions.

PRODUCTS: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("MatMul", {"a": (2, 3, 4)}, {"b": (4, 5)}, "same", "means the same"),
    ("MatMul", {"a": ("N", "T", 4)}, {"b": (4, 5)}, "same", "for every N"),
    ("MatMul", {"a": (2, 3, 4)}, {"b": (2, 4, 5)}, "refused", "takes a matrix"),
    ("MatMul", {"a": (1, 2, 3, 4), "b": (1, 2, 4, 5)}, {}, "same", "means the same"),
    ("MatMul", {"a": (1, 2, 3, 4), "b": (1, 1, 4, 5)}, {}, "different", "nonsense"),
    ("MatMul", {"a": (1, 2, 3, 4), "b": (2, 4, 5)}, {}, "different", "nonsense"),
    ("MatMul", {"a": (2, 2, 2, 3, 4), "b": (2, 2, 2, 4, 5)}, {}, "refused", "axes"),
    ("Gemm", {"a": (3, 4)}, {"b": (4, 5), "c": (5,)}, "same", "means the same"),
    ("Gemm", {"a": ("N", 4)}, {"b": (4, 5), "c": (1, 5)}, "same", "for every N"),
    ("Gemm", {"a": (3, 4), "b": (4, 5), "c": (3, 5)}, {}, "same", "means the same"),
    ("Gemm", {"a": (3, 4), "b": (4, 5), "c": (5,)}, {}, "different", "nonsense"),
]


@pytest.mark.parametrize(("op", "inputs", "weights", "verdict", "words"), PRODUCTS)
def test_products_on_litert_gpu_are_judged(
    op: str, inputs: dict[str, Any], weights: dict[str, Any], verdict: str, words: str
) -> None:
    finding = small.site(op, inputs, weights, target="litert-gpu")
    assert (str(finding.verdict), words in finding.message) == (verdict, True), finding.message


def test_constant_first_factor_is_refused_on_litert_gpu() -> None:
    (finding,) = small.audit(
        small.model([small.node("MatMul", "w x")], {"x": (1, 4, 5)}, {"w": (3, 4)}), "litert-gpu"
    ).findings
    assert finding.verdict == "refused"
    assert "constant first factor" in finding.message


INTEGERS = [
    ("int8", (1, 2, 5, 5), (3, 2, 3, 3), (), "same"),
    ("uint8", (1, 2, 5, 5), (3, 2, 3, 3), (), "refused"),
    ("int8", (1, 2, 5, 5), (3, 2, 3, 3), (3,), "refused"),
]


@pytest.mark.parametrize(("dtype", "data", "weights", "point", "verdict"), INTEGERS)
def test_integer_convolutions_on_tosa_are_judged(
    dtype: str, data: Shape, weights: Shape, point: Shape, verdict: str
) -> None:
    kind = getattr(TensorProto, dtype.upper())
    shapes = {"a": data, "b": weights, "c": (), "d": point}
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    graph = helper.make_graph([small.node("ConvInteger", "a b c d")], "g", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    (finding,) = small.audit(model, "tosa").findings
    assert finding.verdict == verdict, finding.message


PRODUCTS_OF_EIGHT = [
    ("int8", (2, 3), (3, 4), (), "same"),
    ("int8", (5, 2, 3), (5, 3, 4), (), "same"),
    ("uint8", (2, 3), (3, 4), (), "refused"),
    ("int8", (2, 3), (3, 4), (4,), "refused"),
    ("int8", (5, 2, 3), (3, 4), (), "refused"),
]


@pytest.mark.parametrize(("dtype", "a", "b", "point", "verdict"), PRODUCTS_OF_EIGHT)
def test_quantised_products_on_tosa(
    dtype: str, a: Shape, b: Shape, point: Shape, verdict: str
) -> None:
    kind = getattr(TensorProto, dtype.upper())
    scales = dict.fromkeys(("as", "bs", "ys"), ())
    points = {"az": (), "bz": point, "yz": ()}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT if name in scales else kind, shape)
        for name, shape in {"a": a, "b": b, **scales, **points}.items()
    ]
    result = helper.make_tensor_value_info("y", kind, None)
    node = small.node("QLinearMatMul", "a as az b bs bz ys yz")
    graph = helper.make_graph([node], "g", inputs, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    (finding,) = small.audit(model, "tosa").findings
    assert finding.verdict == verdict, finding.message


@pytest.mark.parametrize("target", ["paddle", "tensorrt", "coreml", "mnn"])
def test_a_root_mean_square_is_decided(target: str) -> None:
    model = small.model(
        [small.node("RMSNormalization", "x s")], {"x": (2, 3)}, {"s": (3,)}, opset=23
    )
    (finding,) = small.audit(model, target).findings
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
