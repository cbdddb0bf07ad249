"""Expressions of sizes: real numbers have 32 bits, and infinity and NaN are numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from zerostride.models.formats.ncnn.shapes.expression import _REAL_UNARY, evaluate
from zerostride.models.onnx_ops.sizes.facts import NoSizes

SHAPES = [(3, 4, 5), (2, 7)]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("*(0w,2),0h,-1", [10, 4, -1]),
        ("//(0w,2)", [2]),
        ("/(0w,2)", [2]),
        ("*(0w,0.1)", [0]),
        ("*(100,0.29)", [29]),  # 28.999999 as a 64-bit number
        ("round(2.5),round(3.5),ceil(2.1),floor(-2.1),trunc(-2.9)", [2, 4, 3, -3, -2]),
        ("//(7.5,-2)", [-4]),
        ("sqrt(0w),square(1w),abs(-2.5)", [2, 49, 2]),
        ("exp(1),log(100),log10(1000),pow(2,10)", [2, 4, 3, 1024]),
        ("rsqrt(0.01),reciprocal(0.25)", [10, 4]),
        ("fmod(-7,4),remainder(-7,4),atan2(1,0)", [-3, 1, 1]),
        ("min(log(0),3),max(log(0),3),reciprocal(exp(1000))", [None, 3, 0]),
        ("max(/(1,0),3),min(/(1,0),3)", [None, 3]),
        ("and(6,3),or(6,3),xor(6,3),lshift(1,4),rshift(16,2)", [2, 7, 5, 16, 4]),
    ],
)
def test_expression_has_the_sizes(text: str, sizes: list[int | None]) -> None:
    parts = [part for part, size in zip(_split(text), sizes, strict=True) if size is None]
    for part in parts:  # no size: beyond 32 bits
        with pytest.raises(NoSizes):
            evaluate(part, SHAPES)
    finite = [part for part in _split(text) if part not in parts]
    assert evaluate(",".join(finite), SHAPES) == [size for size in sizes if size is not None]


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


@pytest.mark.parametrize("text", ["1e400", "sqrt(-1)", "asin(2)", "1e10*"])
def test_no_size_is_refused(text: str) -> None:
    with pytest.raises(Exception, match=r"expression|malformed"):
        evaluate(text, SHAPES)


@pytest.mark.parametrize("name", sorted(_REAL_UNARY))
def test_real_functions_are_those_of_c(name: str) -> None:
    numpys = {"rsqrt": lambda a: 1 / np.sqrt(a), "reciprocal": lambda a: 1 / a}
    arc = f"arc{name[1:]}" if name.startswith("a") else name
    for a in (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1000.0, -1000.0):
        with np.errstate(all="ignore"):
            expected = float(numpys.get(name, getattr(np, arc, None))(np.float64(a)))
        assert _REAL_UNARY[name](a) == pytest.approx(expected, rel=1e-6, abs=1e-12, nan_ok=True), a
    assert math.isnan(_REAL_UNARY["sqrt"](-1.0))
