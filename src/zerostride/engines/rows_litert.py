"""The row of LiteRT's CPU runtime (TensorFlow Lite), from the package ai-edge-litert.

Models of one op were written as flatbuffers and run by its Interpreter, with XNNPACK, which is its
default, and without. Both accept the same shapes and, except for three ops of float16, the same
dtypes.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..core.plan import Plan
from ..errors import Reason
from ..sizes import Asker
from . import aligns, limits, slopes
from .model import Divergence, Engine, always
from .rows import NONE_RULE, NUMPY_RULE, ONE_SLOPE, ONE_WAY, frozen, measured, modes, rows

_LITERT = measured("LiteRT 2.3.0 (ai-edge-litert)")
_BY_DTYPE = "LiteRT 2.3.0, run: every op on 12 dtypes, three shapes each, values compared"
_QUANTISED = (
    "LiteRT 2.3.0, run once: 13 ops on quantised int8, uint8, int16, ranks 1 to 9, within one step"
)
_BY_RANK = "LiteRT 2.3.0, run: every op on ranks 1 to 9, eight patterns of ones, values compared"

#: A check in the kernel ends the process with SIGABRT.
_DIES = frozenset({Reason.RANK_LIMIT})
_RULE = replace(
    NUMPY_RULE,
    check=limits.litert_axes,
    silent=_DIES,
    operands=(2, 2),
    summary="NumPy's rule, up to 8 axes; beyond, identical shapes only.",
)
_FIVEFOLD = replace(
    _RULE,
    check=limits.litert_fivefold,
    summary="NumPy's rule, up to 8 axes, or as many as merge into five loops.",
)
_FIVEFOLD_STRETCHED = replace(_FIVEFOLD, check=limits.litert_fivefold_stretched)
_SELECT = replace(_RULE, check=limits.litert_select, silent=frozenset(), operands=(3, 3))
_SLOPE = replace(
    ONE_SLOPE,
    align=slopes.one_way_slope,
    check=limits.litert_fivefold,
    silent=_DIES,
    summary="The slope goes one way to the data, up to 8 axes or what merges into five loops.",
)
_ANGLE = replace(
    NONE_RULE,
    align=aligns.identical,
    silent=frozenset({Reason.NOT_IDENTICAL}),
    operands=(2, 2),
    summary="Ranks must be equal; sizes must be too, and are not checked.",
)

_ALL = frozen("float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool")
_COMPARED = "less less_equal greater greater_equal"
_SMALL = "a tensor without quantisation"
#: Ops, with the dtypes on which they are right, end the process, or go wrong.
_DTYPES = (
    ("add", "float32 float16 int16 int32 int64", "int8 uint8", ""),
    ("subtract", "float32 float16 int32 int64", "int8 uint8 int16", ""),
    ("multiply", "float32 float16 int16 int32 uint32 int64", "", "int8 uint8"),
    ("divide", "float32 float16 int32", "", "int8 uint8 int16"),
    ("maximum minimum", "float32 float16 int8 uint8 int16 int32 int64", "", ""),
    ("pow", "float32 int32", "", ""),
    ("floor_divide", "float32 int8 int16 int32", "", ""),
    ("remainder", "float32 int8 int16 int32 int64", "", ""),
    ("squared_difference", "float32 float16 int32", "int8", ""),
    ("equal", "float32 float16 int16 int32 int64 bool", "int8 uint8", ""),
    ("not_equal", "float32 float16 int32 int64 bool", "int8 uint8", "int16"),
    (_COMPARED, "float32 float16 int16 int32 int64", "int8 uint8", ""),
    ("logical_and logical_or", "bool", "", ""),
    ("prelu", "float32", "", "int8 uint8 int16"),
    ("atan2", "float32 float16 float64", "", ""),
    ("bitwise_xor bitwise_right_shift", "int8 uint8 int16 uint16 int32 uint32", "", ""),
)


def _by_dtype(ops: str, right: str, dies: str, wrong: str) -> list[Divergence]:
    """A row of the table as divergences."""
    names = " and ".join(ops.split())
    refused = _ALL - frozen(f"{right} {dies} {wrong}")
    rows = [(refused, Reason.DTYPE, f"{names}: it has no kernel for {_listed(refused)}")]
    if dies:
        text = f"{names} of {_listed(frozen(dies))}, {_SMALL}, ends the process with SIGABRT"
        rows.append((frozen(dies), Reason.CRASH, text))
    if wrong:
        text = f"{names} of {_listed(frozen(wrong))}, {_SMALL}, gives wrong numbers"
        rows.append((frozen(wrong), Reason.WRONG_RESULT, text))
    return [
        Divergence(text, effect, _BY_DTYPE, strikes=always, ops=frozen(ops), dtypes=dtypes)
        for dtypes, effect, text in rows
    ]


def _listed(dtypes: frozenset[str]) -> str:
    return ", ".join(sorted(dtypes))


def beyond_eight(plan: Plan, asker: Asker) -> bool:
    """Whether the five loops are needed; only float32 has them."""
    same = len({len(shape) for shape in plan.operands}) == 1 and not any(plan.stretched)
    return plan.rank > limits.LITERT_RANK and not same


def beyond_delegate(plan: Plan, asker: Asker) -> bool:
    """Whether XNNPACK leaves a plan to the kernels: more than 6 axes, or an empty operand."""
    return plan.rank > 6 or any(asker.equal(size, 0) for shape in plan.operands for size in shape)


LITERT = Engine(
    "litert",
    "2.3",
    "ai-edge-litert",
    "ai_edge_litert",
    _LITERT,
    rows(_RULE, source=_LITERT),
    modes(_LITERT, numpy=ONE_WAY),
    ops=MappingProxyType(
        {
            "add": rows(_FIVEFOLD, source=_LITERT),
            "multiply": rows(_FIVEFOLD, source=_LITERT),
            "where": rows(_SELECT, source=_LITERT),
            "prelu": rows(_SLOPE, source=_LITERT),
            "atan2": rows(_ANGLE, source=_LITERT),
        }
    ),
    typed=MappingProxyType(
        {(op, "int8"): rows(_FIVEFOLD_STRETCHED, source=_BY_RANK) for op in ("maximum", "minimum")}
    ),
    divergences=(
        Divergence(
            "shapes that differ, of more than 8 axes, end the process with SIGABRT when it runs; "
            "the documents' limits of 4 to 6 axes are no longer so",
            Reason.RANK_LIMIT,
            _BY_RANK,
        ),
        Divergence(
            "add and multiply of another dtype than float32 have no five loops: more than 8 axes "
            "end the process",
            Reason.CRASH,
            _BY_RANK,
            strikes=beyond_eight,
            ops=frozen("add multiply"),
            dtypes=_ALL - {"float32"},
        ),
        Divergence(
            "add and multiply read the first number of a constant that stretches and has none: the "
            "process may end",
            Reason.CRASH,
            "campaigns litert-graphs, seed 2611, run: LiteRT 2.3.0",
            ops=frozen("add multiply"),
        ),
        Divergence(
            "POW with an exponent of one element that is a whole number knows no limit of axes",
            Reason.RANK_LIMIT,
            _BY_RANK,
            ops=frozen("pow"),
        ),
        Divergence(
            "SELECT_V2 refuses shapes that differ, of more than 8 axes",
            Reason.RANK_LIMIT,
            _BY_RANK,
            ops=frozen("where"),
        ),
        Divergence(
            "ATAN2 does not broadcast and does not compare sizes: it reads beyond the second "
            "operand, or leaves a part of it out",
            Reason.WRONG_RESULT,
            _LITERT,
        ),
        Divergence(
            "subtract, divide and squared_difference of float16 have XNNPACK's kernels alone: more "
            "than 6 axes, and empty operands, are refused",
            Reason.DTYPE,
            "campaigns blind, run: LiteRT 2.3.0",
            strikes=beyond_delegate,
            ops=frozen("subtract divide squared_difference"),
            dtypes=frozen("float16"),
        ),
        Divergence(
            "SELECT, the older op, takes identical shapes, or a condition along axis 0 alone",
            Reason.NOT_IDENTICAL,
            _BY_RANK,
        ),
        Divergence(
            "ADD of quantised int16 that stretches ends the process with SIGABRT where the model "
            "says pot_scale_int16; without, it is right",
            Reason.CRASH,
            _QUANTISED,
        ),
        Divergence(
            "PRELU of quantised int16 gives wrong numbers, SQUARED_DIFFERENCE takes no quantised "
            "uint8 or int16; other arithmetic and comparisons are right on quantised tensors",
            Reason.WRONG_RESULT,
            _QUANTISED,
        ),
        *[row for entry in _DTYPES for row in _by_dtype(*entry)],
    ),
)
