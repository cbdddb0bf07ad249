"""OpenVINO's row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..core.alignment import Attribute
from ..core.plan import Plan
from ..core.rules import RULES
from ..errors import Reason
from ..sizes import Asker, Shape, elements, is_plain
from . import aligns, limits, slopes
from .model import Divergence, Engine, Rules, always
from .rows import (
    BOTH_WAYS,
    NONE_RULE,
    NUMPY_RULE,
    ONE_WAY,
    is_target,
    measured,
    modes,
    rows,
)

_OPENVINO = measured("OpenVINO 2026.4.1")
_OPENVINO_PROCESSORS = (
    "OpenVINO 2026.4.1, run on x86 processors with and without AVX-512: "
    "tests/conformance/test_op_semantics.py"
)
_OPENVINO_WHOLE = "OpenVINO 2026.4.1, run: tests/conformance/test_whole_numbers.py"
_OPENVINO_ONNX = "OpenVINO 2026.4.1, run: tests/conformance/test_verdicts.py"
_OPENVINO_AXES = (
    "OpenVINO 2026.4.1, run on an x86 processor without AVX-512: "
    "tests/conformance/test_openvino_axes.py"
)
_OPENVINO_DYNAMIC = "OpenVINO 2026.4.1, run: tests/conformance/test_audit_symbolic.py"
#: Rank 33 is refused at compile: bitset::test: __position (which is 32) >= _Nb (which is 32).
_OPENVINO_RANK = 32
_OPENVINO_PDPD = replace(
    RULES["pdpd"],
    max_rank=_OPENVINO_RANK,
    align=aligns.openvino_pdpd,
    summary="B is laid over A from `axis` on, trailing ones included; only B stretches.",
    attributes=MappingProxyType({"axis": Attribute(0)}),
)
#: Ops that the CPU plugin does not compile with pdpd if the numpy rule differs.
_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
_SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
_OPENVINO_COMPARED = (*_COMPARISONS, "logical_and", "logical_or", "logical_xor")


def _openvino_rules(check: Callable[[Plan, Asker], None], *silent: Reason) -> Rules:
    """OpenVINO's rules for ops that do not follow the node's pdpd."""
    return rows(
        replace(NUMPY_RULE, max_rank=_OPENVINO_RANK),
        replace(NONE_RULE, max_rank=_OPENVINO_RANK),
        replace(_OPENVINO_PDPD, check=check, silent=frozenset(silent)),
        source=_OPENVINO,
    )


_LONG = ("int16", "uint16", "int32", "uint32", "int64", "uint64")
_BYTES = ("int8", "uint8")
_FLOATS = ("float16", "float32", "float64")
_EXACT = rows(
    replace(NUMPY_RULE, max_rank=_OPENVINO_RANK),
    replace(NONE_RULE, max_rank=_OPENVINO_RANK),
    _OPENVINO_PDPD,
    source=_OPENVINO,
)


def _typed(rules: Rules, ops: str, dtypes: tuple[str, ...]) -> dict[tuple[str, str], Rules]:
    return {(op, dtype): rules for op in ops.split() for dtype in dtypes}


_PRELU_CHANNEL = replace(
    RULES["pdpd"],
    align=slopes.prelu_channel,
    silent=frozenset({Reason.RANK, Reason.ONE_WAY, Reason.WRONG_RESULT, Reason.OVERRUN}),
    max_rank=_OPENVINO_RANK,
    attributes=MappingProxyType({}),
    summary="A vector slope goes to axis 1 where it fits there, else right-aligned.",
    one_way="only the slope may stretch, to the data",
)

#: Integers of 16 bits and more, whose sizes a kernel of its own checks.
_PRELU_CHECKED = replace(
    _PRELU_CHANNEL,
    align=slopes.prelu_of_integers,
    silent=frozenset({Reason.RANK, Reason.WRONG_RESULT}),
)

#: The CPU plugin's treatment of pdpd depends on the kernel, and so on the element type (run: every
#: op and type on seven pairs of shapes, operands as inputs and as constants).
_OPENVINO_TYPED = {
    **_typed(_EXACT, "subtract", ("uint8", "uint16", "uint32", "uint64")),
    **_typed(_EXACT, "divide", _LONG),
    **_typed(
        _openvino_rules(limits.openvino_by_numpy, Reason.WRONG_RESULT),
        "equal not_equal greater greater_equal less less_equal bitwise_and bitwise_or bitwise_xor",
        _LONG,
    ),
    **_typed(
        _openvino_rules(limits.openvino_by_numpy, Reason.WRONG_RESULT),
        "bitwise_and bitwise_or bitwise_xor",
        _BYTES,
    ),
    **_typed(
        _openvino_rules(limits.openvino_compared, Reason.WRONG_RESULT),
        "bitwise_and bitwise_or bitwise_xor",
        ("bool",),
    ),
    **_typed(_openvino_rules(limits.openvino_uncompiled), "multiply divide maximum pow", _BYTES),
    **_typed(_openvino_rules(limits.openvino_uncompiled), "minimum", ("int8",)),
    **_typed(_openvino_rules(limits.openvino_uncompiled), "fmod", _FLOATS),
    **_typed(rows(_PRELU_CHECKED, source=_OPENVINO), "prelu", _LONG),
    **_typed(_openvino_rules(limits.openvino_uncompiled), "squared_difference", (*_BYTES, *_LONG)),
}
#: Ops whose kernels of floats are compiled for any number of axes.
_ARITHMETIC = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum"),
    *("pow", "remainder", "fmod", "squared_difference"),
)
_IN_INT32 = (
    *("add", "subtract", "multiply", "maximum", "minimum", "squared_difference", "where"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"),
)
#: A quotient of float32 is floored: right while the dividend has one bit less than float32.
_MOD: dict[str, Any] = {"most": 2**23}
_OPENVINO_EXPLICIT = replace(
    RULES["explicit"],
    align=aligns.openvino_explicit,
    silent=frozenset({Reason.DUPLICATE_AXES, Reason.WRONG_RESULT}),
    check=limits.openvino_gaps,
    max_rank=_OPENVINO_RANK,
)
_TO_TARGET = frozenset({"unidirectional", "bidirectional", "explicit"})
_PRELU_DYNAMIC = replace(
    _PRELU_CHANNEL,
    align=slopes.prelu_axis_1,
    silent=frozenset(),
    summary="Compiled before sizes are known: a vector slope goes to axis 1, and both may stretch.",
)

#: Whole numbers that the CPU plugin computes in a narrower type, by op and element type.
_NARROWED: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str, dict[str, Any]], ...] = (
    (
        "comparisons of integers go through float32: beyond 2^24 neighbours are equal",
        _COMPARISONS,
        _LONG[2:],
        "float32",
        {},
    ),
    (
        "quotients, powers and slopes of integers are computed in float32",
        ("divide", "floor_divide", "pow", "fmod", "prelu"),
        _LONG[2:],
        "float32",
        {},
    ),
    ("remainders of integers are computed in float32", ("remainder",), _LONG[2:], "float32", _MOD),
    ("powers of 16 bits are computed in float32", ("pow",), ("int16",), "int16", {}),
    ("powers of 16 bits are computed in float32", ("pow",), ("uint16",), "uint16", {}),
    ("64 bits become int32", _IN_INT32, ("int64", "uint64"), "int32", {}),
    ("compared as int32", ("maximum", "minimum"), ("uint32",), "int32", {}),
    ("constants of uint32 stop at 2^31 - 1", _IN_INT32, ("uint32",), "int32", {"constants": True}),
)


#: oneDNN describes a tensor by fields for 12 axes, and the plugin writes beyond them: the extent of
#: axis 12 replaces the element type, and what lies behind it replaces the sizes of blocks.
_DESCRIBED = 12
#: The numbers of element types: f16, bf16, f32, s32, s8, u8, and two of 8-bit floats.
_TYPE_NUMBERS = (1, 2, 3, 4, 5, 6, 9, 10)
_FLOAT32 = 3
#: So many numbers behind axis 12 are read as blocks until the process ends; from half as many on,
#: and beyond 25 axes, it depends on what memory holds.
_MOST_BLOCKS = 512
#: Up to this rank the replaced fields are those of the type and of blocks.
_REPLACED_RANK = 25


def result_overflows(plan: Plan, asker: Asker) -> bool:
    """Whether an op that converts its result describes one of more than 12 axes, and dies."""
    return _overflows(plan, asker, (plan.shape,))


def condition_overflows(plan: Plan, asker: Asker) -> bool:
    """The same for an op that converts its condition, the first operand."""
    return _overflows(plan, asker, plan.operands[:1])


def tensor_overflows(plan: Plan, asker: Asker) -> bool:
    """The same for an op that also converts its operands."""
    return _overflows(plan, asker, (plan.shape, *plan.operands))


def _overflows(plan: Plan, asker: Asker, shapes: tuple[Shape, ...]) -> bool:
    if is_target(plan) or len(plan.operands[0]) <= _DESCRIBED:
        return False  # described with other fields
    return any(_dies_described(shape, asker) for shape in shapes)


def first_overflows(plan: Plan, asker: Asker) -> bool:
    """Whether the first operand gets too many axes."""
    shifts = plan.rule.op in _SHIFTS
    short = len(plan.operands[0]) <= _DESCRIBED
    return short and plan.rank >= 21 and not is_target(plan) and not shifts


def negated_overflows(plan: Plan, asker: Asker) -> bool:
    """Whether the second operand dies, which is negated by itself first."""
    return len(plan.operands) == 2 and _dies_described(plan.operands[1], asker)


def _dies_described(shape: Shape, asker: Asker) -> bool:
    """Whether the description of a tensor ends the process: run on 1,800 pairs of shapes."""
    if len(shape) <= _DESCRIBED:
        return False
    kind, behind = shape[_DESCRIBED], shape[_DESCRIBED + 1 :]
    if len(shape) > _REPLACED_RANK:
        dies = asker.equal(shape[_REPLACED_RANK], 2)
    elif behind and asker.equal(kind, _FLOAT32):
        return True
    else:  # the product of open sizes is not known
        dies = not behind or (is_plain(behind) and elements(behind) >= _MOST_BLOCKS)
    return dies and any(asker.equal(kind, number) for number in _TYPE_NUMBERS)


OPENVINO = Engine(
    "openvino",
    "2026.4",
    "openvino",
    "openvino",
    _OPENVINO,
    _EXACT,
    modes(
        _OPENVINO,
        numpy=replace(ONE_WAY, max_rank=_OPENVINO_RANK),
        explicit=_OPENVINO_EXPLICIT,
        bidirectional=replace(
            BOTH_WAYS, align=aligns.openvino_bidirectional, max_rank=_OPENVINO_RANK
        ),
    ),
    ops={
        "prelu": rows(_PRELU_CHANNEL, source=_OPENVINO),
        **dict.fromkeys(
            ("subtract", "divide"),
            _openvino_rules(limits.openvino_rewritten, Reason.WRONG_RESULT),
        ),
        **dict.fromkeys(
            _OPENVINO_COMPARED,
            _openvino_rules(limits.openvino_compared, Reason.WRONG_RESULT),
        ),
        **dict.fromkeys(
            _SHIFTS,
            _openvino_rules(limits.openvino_shifted, Reason.WRONG_RESULT),
        ),
    },
    typed=_OPENVINO_TYPED,
    dynamic={"prelu": rows(_PRELU_DYNAMIC, source=_OPENVINO_DYNAMIC)},
    divergences=(
        Divergence(
            "PRelu with a vector slope, compiled before its sizes are known, takes "
            "axis 1 whether the slope fits there or not",
            Reason.WRONG_RESULT,
            _OPENVINO_DYNAMIC,
        ),
        Divergence(
            "PRelu of an ONNX model with a vector slope as long as axis 1: the slope goes to "
            "axis 1, where ONNX lays it along the last axis",
            Reason.WRONG_RESULT,
            f"{_OPENVINO_ONNX}; openvinotoolkit/openvino#35958",
            ops=frozenset({"prelu"}),
        ),
        Divergence(
            "QuantizeLinear rounds after the zero point is added: with an odd zero point every "
            "exact tie comes out one off (0.5 / 1, zero point 3: 4; ONNX Runtime: 3)",
            Reason.WRONG_RESULT,
            f"{_OPENVINO_ONNX}; microsoft/onnxruntime#25045",
        ),
        Divergence(
            "Subtract and Divide with pdpd: the CPU plugin replaces them by ops with the numpy "
            "rule; the result or the error is that of the numpy rule",
            Reason.WRONG_RESULT,
            _OPENVINO,
        ),
        Divergence(
            "comparisons and logical ops with pdpd: the CPU plugin computes by the "
            "numpy rule, or does not compile; never with an axis above 0",
            Reason.NO_RULE,
            _OPENVINO,
        ),
        *(
            Divergence(
                f"sums, differences, products and powers of {dtype} stop at the ends of its range, "
                f"where others go round; {more}",
                Reason.WRONG_RESULT,
                _OPENVINO,
                strikes=always,
                ops=frozenset({"add", "subtract", "multiply", "pow"}),
                dtypes=frozenset({dtype}),
                narrows=dtype,
                most=most,
            )
            for dtype, most, more in (
                ("int8", 127, "-128 is subtracted as -127"),
                (
                    "uint8",
                    None,
                    "on x86 processors without AVX-512 a product or power of 32,768 or more is 0",
                ),
            )
        ),
        Divergence(
            "SquaredDifference of 8 bits is 0, whatever the operands are",
            Reason.WRONG_RESULT,
            _OPENVINO_PROCESSORS,
            strikes=always,
            ops=frozenset({"squared_difference"}),
            dtypes=frozenset(_BYTES),
        ),
        Divergence(
            "greater and greater_equal are true where a number is NaN; on x86 processors without "
            "AVX-512 they are false there, as IEEE says",
            Reason.WRONG_RESULT,
            _OPENVINO_PROCESSORS,
            ops=frozenset({"greater", "greater_equal"}),
            dtypes=frozenset(_FLOATS),
        ),
        *(
            Divergence(
                text,
                Reason.WRONG_RESULT,
                _OPENVINO_WHOLE,
                ops=frozenset(ops),
                dtypes=frozenset(dtypes),
                narrows=narrows,
                **more,
            )
            for text, ops, dtypes, narrows, more in _NARROWED
        ),
        Divergence(
            "PRelu of floats on x86 processors without AVX-512 multiplies zeros by the slope, too: "
            "the zero changes its sign, and an infinite slope gives NaN",
            Reason.WRONG_RESULT,
            _OPENVINO_PROCESSORS,
            ops=frozenset({"prelu"}),
            dtypes=frozenset(_FLOATS),
        ),
        Divergence(
            "Mod of floats, SquaredDifference of integers, and products, quotients, powers and "
            "maxima of 8 bits do not compile with pdpd",
            Reason.NO_RULE,
            _OPENVINO,
        ),
        Divergence(
            "bitwise ops of integers, shifts, and comparisons of 16 bits and more compute by the "
            "numpy rule where they say pdpd; a shift reads on where that refuses",
            Reason.WRONG_RESULT,
            _OPENVINO,
        ),
        Divergence(
            "pdpd with 1 of A against 0 of B can die with SIGABRT",
            Reason.CRASH,
            _OPENVINO,
            strikes=lambda plan, asker: (
                plan.rule == "pdpd"
                and any(
                    asker.equal(plan.shape[axis], 0) and asker.is_one(plan.aligned[0][axis])
                    for axis in plan.stretched[0]
                )
            ),
            rules=frozenset({"pdpd"}),
        ),
        Divergence(
            "Broadcast-3 of static data with a 0 dies with SIGFPE at compile",
            Reason.CRASH,
            _OPENVINO,
            strikes=lambda plan, asker: (
                is_target(plan) and any(asker.equal(n, 0) for n in plan.operands[0])
            ),
            rules=_TO_TARGET,
        ),
        Divergence(
            "Broadcast-3 of rank 0 to rank 0 between an input and an output of the model dies with "
            "SIGSEGV at compile (numpy, bidirectional)",
            Reason.CRASH,
            _OPENVINO,
            strikes=lambda plan, asker: (
                plan.rule in ("unidirectional", "bidirectional") and not plan.shape
            ),
            rules=_TO_TARGET,
        ),
        Divergence(
            "Broadcast-3 bidirectional: the data's 1 against a target of 0 stays 1",
            Reason.WRONG_RESULT,
            _OPENVINO,
        ),
        Divergence(
            "a result of 21 axes or more from a first operand of 12 or fewer dies with SIGABRT, "
            "except of shifts",
            Reason.CRASH,
            _OPENVINO_AXES,
            strikes=first_overflows,
            rank=21,
        ),
        Divergence(
            "pdpd does not trim B's trailing ones first, as the document says",
            Reason.OVERRUN,
            _OPENVINO,
        ),
        Divergence(
            "explicit with a gap between the data's axes and 7 runs or more of axes "
            "that stretch alike reads the data as if they were right-aligned",
            Reason.WRONG_RESULT,
            _OPENVINO,
        ),
        Divergence(
            "explicit accepts repeated axes and then computes garbage",
            Reason.WRONG_RESULT,
            _OPENVINO,
        ),
        Divergence(
            "a result of rank 13 dies with SIGFPE at compile (on one machine of two)",
            Reason.CRASH,
            _OPENVINO,
            strikes=lambda plan, asker: plan.rank == 13,
            rank=13,
        ),
        *(
            Divergence(
                f"{what} where {tensors} has more than 12 axes, and axis 12 has an extent of "
                "1 to 6, 9 or 10: 13 axes die with SIGFPE at compile; 14 to 25 do if that extent "
                "is 3, and with SIGSEGV if 512 numbers lie behind it (some with 256); more die "
                "with SIGABRT if axis 25 has an extent of 2",
                Reason.CRASH,
                _OPENVINO_AXES,
                strikes=strikes,
                rank=13,
                ops=frozenset(ops),
                dtypes=frozenset(dtypes),
            )
            for what, tensors, strikes, ops, dtypes in (
                (
                    "comparisons with a first operand of more than 12 axes",
                    "the result",
                    result_overflows,
                    _COMPARISONS,
                    (),
                ),
                (
                    "comparisons and where of integers and of bool with a first operand of more "
                    "than 12 axes",
                    "an operand or the result",
                    tensor_overflows,
                    (*_COMPARISONS, "where"),
                    (*_BYTES, *_LONG, "bool"),
                ),
                (
                    "logic with a first operand of more than 12 axes",
                    "an operand or the result",
                    tensor_overflows,
                    ("logical_and", "logical_or", "logical_xor"),
                    (),
                ),
                (
                    "where",
                    "the condition",
                    condition_overflows,
                    ("where",),
                    (),
                ),
                (
                    "arithmetic and prelu of integers with a first operand of more than 12 axes",
                    "an operand or the result",
                    tensor_overflows,
                    (*_ARITHMETIC, "prelu"),
                    (*_BYTES, *_LONG),
                ),
                (
                    "subtract of signed integers",
                    "the second operand",
                    negated_overflows,
                    ("subtract",),
                    ("int8", "int16", "int32", "int64"),
                ),
            )
        ),
    ),
)
