"""Sites: the nodes that broadcast, their operands and rules, in every version of the documents."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import zerostride as zs
from zerostride.models.ir.graph import Node, Value
from zerostride.models.ir.site import Kind
from zerostride.models.onnx_ops import attention_sites
from zerostride.models.onnx_ops.sites import ROWS, find_site

LAST = onnx.defs.onnx_opset_version()


def made(op: str, *shapes: Any, version: int = 21, **attributes: Any) -> Any:
    inputs = tuple(
        None if shape is None else Value(f"x{k}", shape) for k, shape in enumerate(shapes)
    )
    return find_site(Node("n", op, "", version, inputs, (Value("y", None),), attributes))


def test_every_op_whose_document_mentions_broadcasting_has_a_row() -> None:
    mentioned = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        words = [schema.doc or "", *(entry.description for entry in schema.inputs)]
        if schema.domain == "" and re.search("broadcast", " ".join(words), re.IGNORECASE):
            mentioned.add(schema.name)
    assert mentioned - ROWS.keys() - attention_sites.ROWS.keys() <= {
        "Tile",
        "SwiGLU",
    }  # they say that they do not


def test_every_row_is_an_op() -> None:
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    own = {"SimplifiedLayerNormalization"}  # ONNX Runtime's, which it writes without a domain
    assert ROWS.keys() - own <= names


@pytest.mark.parametrize("version", range(1, LAST + 1))
def test_every_opset_has_its_rule(version: int) -> None:
    """A vector over the last axis: by attribute, by NumPy's rule, or not at all."""
    report = small.site("Add", {"x": (2, 3)}, {"c": (3,)}, target="numpy", opset=version)
    assert report.verdict == ("same" if version >= 7 else "refused")
    told = small.site("Mul", {"x": (2, 3)}, {"c": (3,)}, target="numpy", opset=version, broadcast=1)
    if version < 7:
        assert told.verdict == "same"
    largest = small.site("Max", {"x": (2, 3)}, {"c": (3,)}, target="numpy", opset=version)
    assert largest.verdict == ("same" if version >= 8 else "refused")


def test_legacy_axis_without_broadcast_has_no_effect() -> None:
    assert made("Add", (2, 3), (2, 3), version=6, axis=1).attributes["axis"] is None


@pytest.mark.parametrize(
    ("op", "shapes", "site"),
    [
        ("Clip", [(2, 3)], False),
        ("Clip", [(2, 3), None, ()], True),
        ("Max", [(2, 3)], False),
        ("Gemm", [(2, 3), (3, 4)], False),
        ("Gemm", [(2, 3), (3, 4), (4,)], True),
        ("MatMul", [(2, 3), (3, 4)], False),
        ("MatMul", [(2, 3), (3,)], False),
        ("MatMul", [(3,), (3,)], True),
        ("MatMul", [(1, 2, 3), (3, 4)], True),
        ("MatMul", [None, (3, 4)], False),
        ("Relu", [(2, 3)], False),
        ("Einsum", [(2, 3)], False),
    ],
)
def test_inputs_decide_whether_a_node_is_a_site(op: str, shapes: list[Any], site: bool) -> None:
    assert (made(op, *shapes) is not None) == site


@pytest.mark.parametrize(
    ("equation", "shapes", "site"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], False),
        ("bij, bjk -> bik", [(2, 3, 4), (1, 4, 5)], True),  # NumPy and ONNX Runtime stretch it
        ("bij,bjk", [("N", 3, 4), ("N", 4, 5)], False),
        ("bij,bjk->bik", [(1, 3, 4), (1, 4, 5)], False),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)], True),
    ],
)
def test_einsum_is_a_site_if_it_may_stretch(equation: str, shapes: list[Any], site: bool) -> None:
    assert (made("Einsum", *shapes, equation=equation) is not None) == site


def test_ops_have_their_kind() -> None:
    assert made("GroupNormalization", (1, 4), (2,), (2,), version=18).kind is Kind.NOT_MODELLED
    assert made("GroupNormalization", (1, 4), (4,), (4,), version=21).kind is Kind.CHANNEL
    blocked = made("QuantizeLinear", (2, 6), (2, 2), block_size=3)
    assert [part.shape for part in blocked.operands] == [(2, 2, 3), (2, 2, 1)]
    cut_off = made("QuantizeLinear", (2, 5), (2, 2), block_size=3)
    assert [part.shape for part in cut_off.operands] == [(2, 2, 3), (2, 2, 1)]
    assert find_site(Node("n", "Add", "x.y", 1, (), ())).kind is Kind.CUSTOM  # type: ignore[union-attr]


# The meaning, against onnx's own evaluator.


def evaluated(op: str, arrays: list[Any], version: int, **attributes: Any) -> Any:
    names = [f"x{k}" for k in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, arrays, strict=True)
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)], "g", inputs, [result]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (2, 1, 3), (2, 2, 3), (4, 1, 1, 1)]


@pytest.mark.parametrize("op", ["Add", "Mul", "Max", "Greater"])
def test_element_wise_plans_match_the_evaluator(op: str) -> None:
    function = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Greater": np.greater}[op]
    for shapes in itertools.product(SHAPES, repeat=2):
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(1, 2, shape).astype(np.float32) for shape in shapes]
        plan = made(op, *shapes).plan(shapes)
        wanted = evaluated(op, arrays, 21)
        np.testing.assert_array_equal(function(*plan.views(*arrays)), wanted)


def test_expand_stretches_both_ways() -> None:
    for data, target in itertools.product(SHAPES, repeat=2):
        node = Node(
            "n",
            "Expand",
            "",
            21,
            (Value("x", data), Value("t", (len(target),), True, target)),
            (Value("y", None),),
        )
        array = np.arange(int(np.prod(data)), dtype=np.float32).reshape(data)
        plan = find_site(node).plan((data, target))  # type: ignore[union-attr]
        wanted = evaluated("Expand", [array, np.array(target, np.int64)], 21)
        np.testing.assert_array_equal(plan.views(array)[0], wanted)


def test_gemms_addend_matches_the_evaluator() -> None:
    a, b = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    for shape in [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (1, 1)]:
        c = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        plan = made("Gemm", (2, 4), (4, 3), shape).plan(((2, 3), shape))
        product, addend = plan.views(a @ b, c)
        np.testing.assert_allclose(product + addend, evaluated("Gemm", [a, b, c], 21))
    with pytest.raises(zs.BroadcastError):
        made("Gemm", (2, 4), (4, 3), (2,)).plan(((2, 3), (2,)))
    flipped = made("Gemm", (4, 2), (3, 4), (3,), transA=1, transB=1)
    assert flipped.operands[0].shape == (2, 3)


def test_normalisations_and_quantisation_match_the_evaluator() -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    vector = np.array([1.0, 2.0, 3.0], np.float32)
    site = made("BatchNormalization", (2, 3, 4), *[(3,)] * 4)
    x, scale, bias, mean, variance = site.plan(((2, 3, 4), *[(3,)] * 4)).views(data, *[vector] * 4)
    wanted = evaluated("BatchNormalization", [data, *[vector] * 4], 15, epsilon=0.0)
    np.testing.assert_allclose((x - mean) / np.sqrt(variance) * scale + bias, wanted, rtol=1e-5)
    for axis in (1, -2):
        site = made("QuantizeLinear", (2, 3, 4), (3,), axis=axis)
        x, scale = site.plan(((2, 3, 4), (3,))).views(data, vector)
        wanted = evaluated("QuantizeLinear", [data, vector], 13, axis=axis)
        np.testing.assert_array_equal(np.clip(np.rint(x / scale), 0, 255), wanted)
    site = made("LayerNormalization", (2, 3, 4), (4,))
    assert site.plan(((2, 3, 4), (4,))).aligned[1] == (1, 1, 4)


def test_prelu_slopes_depend_on_the_opset() -> None:
    assert made("PRelu", (2, 3, 3), (3,), version=6).plan(((2, 3, 3), (3,))).aligned[1] == (1, 3, 1)
    assert made("PRelu", (2, 3, 3), (3,), version=9).plan(((2, 3, 3), (3,))).aligned[1] == (1, 1, 3)
    assert made("PRelu", (2, 3, 3), (1,), version=6).plan(((2, 3, 3), (1,))).aligned[1] == (1, 1, 1)
    with pytest.raises(zs.BroadcastError, match="rank 2, the first only 1"):
        made("PRelu", (3,), (2, 3)).plan(((3,), (2, 3)))


def test_clip_bounds_are_numbers() -> None:
    site = made("Clip", (2, 3), (), (1,))
    assert site.plan(((2, 3), (), (1,))).aligned == ((2, 3), (1, 1), (1, 1))
    with pytest.raises(zs.BroadcastError, match="one number"):
        site.plan(((2, 3), (), (3,)))
