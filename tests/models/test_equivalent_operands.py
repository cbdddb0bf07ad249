"""Operands and attributes that are the same to an op, though they look different."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from ncnn_models import param
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Sameness


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')


WINDOW = "(float[N,2,H,W] x) => (float[N,2,P,Q] y) {{ y = {}Pool<kernel_shape=[2,2]{}>(x) }}"
RESIZE = (
    "(float[N,2,H,W] x) => (float[N,2,P,Q] y) {{ n = Constant<value_ints=[1,2]>() e = Shape(x)"
    " t = Constant<value_ints=[1,1,2,2]>() s = Mul(e, t)"
    ' y = Resize<mode="{}", coordinate_transformation_mode="asymmetric"{}>(x, , , s) }}'
)
GATHER = "(float[5,2] x, int64[N] i) => (float[N,2] y) <int64 a={{{}}}, int64 n={{{}}}> {{ {} }}"
LOOKED_UP = GATHER.format(0, 5, "y = Gather(x, i)")
WRAPPED = "j = Add(i, a) k = Mod(j, n) y = Gather(x, k)"
#: Two models by their difference, and whether they are the same to the op.
PAIRS = {
    "strides of 1": (True, WINDOW.format("Max", ""), WINDOW.format("Max", ", strides=[1,1]")),
    "strides of 2": (False, WINDOW.format("Max", ""), WINDOW.format("Max", ", strides=[2,2]")),
    "no pads, no dilations": (
        True,
        WINDOW.format("Max", ", pads=[0,0,0,0]"),
        WINDOW.format("Max", ", dilations=[1,1]"),
    ),
    "pads": (False, WINDOW.format("Max", ""), WINDOW.format("Max", ", pads=[1,1,1,1]")),
    "a rule of rounding without rounding": (
        True,
        RESIZE.format("linear", ""),
        RESIZE.format("linear", ', nearest_mode="floor", cubic_coeff_a=-0.5'),
    ),
    "another rule of rounding": (
        False,
        RESIZE.format("nearest", ', nearest_mode="ceil"'),
        RESIZE.format("nearest", ', nearest_mode="floor"'),
    ),
    "indices from the end": (True, LOOKED_UP, GATHER.format(5, 5, WRAPPED)),
    "indices that are moved": (False, LOOKED_UP, GATHER.format(6, 5, WRAPPED)),
    "indices of fewer": (False, LOOKED_UP, GATHER.format(4, 4, WRAPPED)),
}


@pytest.mark.parametrize(("same", "one", "other"), PAIRS.values(), ids=PAIRS)
def test_models_are_equal_if_they_are_the_same_to_the_op(same: bool, one: str, other: str) -> None:
    result = zs.equivalent(model(one), model(other)).equivalence
    assert result is not None
    (output,) = result.outputs
    if same:
        assert output.verdict is Sameness.EQUAL
    else:
        assert output.verdict not in (Sameness.EQUAL, Sameness.ROUNDED)


@pytest.mark.parametrize("sizes", ["0=4 1=3 2=2", ""])
@pytest.mark.parametrize(("number", "same"), [("2.5", True), ("2.25", False)])
def test_a_file_without_a_batch_axis_is_compared_with_one(
    tmp_path: Path, sizes: str, number: str, same: bool
) -> None:
    file = tmp_path / "a.param"
    file.write_text(
        param(f"Input in0 0 1 in0 {sizes}".strip(), f"BinaryOp add 1 1 in0 out0 0=0 1=1 2={number}")
    )
    one = model("(float[N,2,3,4] x) => (float[N,2,3,4] y) <float b={2.5}> { y = Add(x, b) }")
    report = zs.equivalent(one, file)
    assert report.equivalence is not None
    assert report.ok is same
    assert report.equivalence.fixed == "N == 1"
    assert report.equivalence.tried
    assert "wherever both work" in str(report) or not same
