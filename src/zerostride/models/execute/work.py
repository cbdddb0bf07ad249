"""Nanoseconds per element of each op, so that a unit of work is a fixed time.

Measured on two cores of a server of 2023, one thread, of 2**21 elements of float32 and of
float64, the slower of both. Other ops take `_OTHERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Array

#: Nanoseconds of a unit of work.
UNIT = 100_000
#: Nanoseconds for each element that an op makes.
NANOSECONDS: Mapping[str, int] = {
    **dict.fromkeys(("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Shape", "Size"), 0),
    **dict.fromkeys(("Expand", "Concat", "Transpose", "Pad", "Slice", "Split", "Tile", "Trilu"), 2),
    **dict.fromkeys(("Abs", "Add", "Cast", "CastLike", "Ceil", "Clip", "Div", "Equal", "Floor"), 2),
    **dict.fromkeys(("Max", "Min", "Mul", "Neg", "Not", "OneHot", "PRelu", "Relu", "Sub"), 2),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where", "And", "Or"), 4),
    **dict.fromkeys(("BatchNormalization", "CumSum", "LeakyRelu", "Mod", "Sqrt", "Sum", "Mean"), 5),
    **dict.fromkeys(("Exp", "Gemm", "Log", "MatMul"), 7),
    **dict.fromkeys(("GatherND", "Sigmoid", "Softplus", "Tan"), 24),
    **dict.fromkeys(("GatherElements", "ScatterElements", "Scatter", "Resize", "Upsample"), 34),
    "Mish": 40,
    "Gelu": 110,
    "Erf": 150,
}
_OTHERS = 18
#: What an op takes for an element that it is given. Lookups take nothing for what they leave out.
READING: Mapping[str, int] = {
    **dict.fromkeys(("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Shape", "Size"), 0),
    **dict.fromkeys(
        ("Gather", "GatherElements", "GatherND", "Slice", "Split", "Expand", "Tile"), 0
    ),
    **dict.fromkeys(("If", "Loop", "Scan"), 0),
    "ReduceLogSumExp": 8,
    "ReduceLogSum": 4,
    "ReduceL2": 2,
    "NonZero": 10,
    "TopK": 105,
}
_ELSEWHERE = 1
#: 16-bit floats have no arithmetic of the processor's: at least that for each.
_HALVES = 9


def nanoseconds(op: str, operands: Sequence[Array | None], results: Sequence[Array]) -> int:
    """The approximate time of a node."""
    inputs = [array for array in operands if array is not None]
    making, reading = NANOSECONDS.get(op, _OTHERS), READING.get(op, _ELSEWHERE)
    if making > 0 and any(
        array.dtype.itemsize == 2 and array.dtype.kind != "u" for array in inputs
    ):
        making, reading = max(making, _HALVES), 3 * reading
    written, read = (sum(array.size for array in arrays) for arrays in (results, inputs))
    return making * written + reading * read
