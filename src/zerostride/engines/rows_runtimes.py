"""Rows of the inference runtimes: ONNX Runtime, Paddle, ncnn, MNN."""

from __future__ import annotations

from dataclasses import replace

from ..core.rules import NCNN_RANK, RULES
from ..errors import Reason
from . import aligns, limits, slopes
from .model import Divergence, Engine, always
from .rows import (
    BOTH_WAYS,
    NUMPY_RULE,
    ONE_SLOPE,
    ONE_WAY,
    frozen,
    measured,
    modes,
    rows,
)

_ORT = measured("ONNX Runtime 1.32.0")
_PADDLE = measured("Paddle 3.3.1")
_NCNN = measured("ncnn 1.0.20261020")
_NCNN_WHOLE = "ncnn 1.0.20261020, run: tests/conformance/test_ncnn_whole.py"
_WHOLE = frozen("int8 uint8 int16 uint16 int32 uint32 int64 uint64")
_MNN = measured("MNN 3.6.1")

_PADDLE_WHERE = replace(
    NUMPY_RULE,
    check=limits.paddle_where,
    operands=(3, 3),
    max_rank=9,
    summary="NumPy's rule, up to 8 axes; 9 where the shapes are identical.",
)
_PADDLE_SLOPE = replace(ONE_SLOPE, align=slopes.paddle_slope)
_MNN_SLOPE = replace(
    ONE_SLOPE,
    align=slopes.mnn_slope,
    summary="The slope is one number, or a list along axis 1 (of a vector: axis 0).",
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK}),
)
_NCNN_SLOPE = replace(
    ONE_SLOPE,
    align=slopes.ncnn_slope,
    summary="The slope is one number, or a list along the outermost axis.",
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK}),
    max_rank=NCNN_RANK,
)
_PADDLE_RULE = replace(
    RULES["paddle"],
    silent=frozenset({Reason.OVERRUN}),
    check=limits.paddle_axis,
    max_rank=9,
)
#: Of all element-wise ops the arithmetic ones and the comparisons read the axis.
_PADDLE_COMPARED = replace(
    _PADDLE_RULE,
    align=aligns.paddle_compared,
    check=limits.paddle_compared,
    silent=frozenset({Reason.OVERRUN, Reason.WRONG_RESULT}),
    summary="The operand of lower rank lies at `axis`, if NumPy's rule gives that shape, too.",
)
_UNPLACED = (
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor fmax fmin heaviside"
)
_PADDLE_UNPLACED = replace(
    _PADDLE_RULE,
    align=aligns.paddle_unplaced,
    check=None,
    silent=frozenset(),
    summary="NumPy's rule: the axis is not read.",
)
_NCNN_RULE = replace(
    RULES["ncnn"],
    align=aligns.ncnn,
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.WRONG_RESULT}),
)
_MNN_RULE = replace(
    RULES["mnn"],
    max_rank=9,
    summary="NumPy's rule, up to 9 axes.",
    silent=frozenset({Reason.RANK_LIMIT}),
)

_MNN_WHERE = replace(
    _MNN_RULE,
    check=limits.mnn_where,
    summary="NumPy's rule, but the third operand is not stretched beside a whole second one.",
    silent=frozenset({Reason.RANK_LIMIT, Reason.WRONG_RESULT}),
)

ONNXRUNTIME = Engine(
    "onnxruntime",
    "1.32",
    "onnxruntime",
    "onnxruntime",
    _ORT,
    rows(NUMPY_RULE, source=_ORT),
    modes(_ORT, bidirectional=BOTH_WAYS),
    divergences=(
        Divergence(
            "PRelu broadcasts both ways; its document, which onnx's shape inference "
            "follows, says the slope goes one way to the data",
            Reason.ONE_WAY,
            _ORT,
        ),
        *(
            Divergence(
                f"the CPU has no kernel for {' and '.join(ops.split()) or 'any op'} of "
                f"{', '.join(dtypes.split())}",
                Reason.DTYPE,
                _ORT,
                strikes=always,
                ops=frozen(ops),
                dtypes=frozen(dtypes),
            )
            for ops, dtypes in (
                ("", "bfloat16"),
                ("where", "bool int16 uint16 uint64"),
                ("prelu", "float64"),
            )
        ),
    ),
)

PADDLE = Engine(
    "paddle",
    "3.3",
    "paddlepaddle",
    "paddle",
    _PADDLE,
    rows(_PADDLE_RULE, source=_PADDLE),
    modes(_PADDLE, numpy=replace(ONE_WAY, align=aligns.paddle_target, max_rank=9)),
    ops={
        "prelu": rows(_PADDLE_SLOPE, source=_PADDLE),
        "where": rows(_PADDLE_WHERE, source=_PADDLE),
        "expand_v2": modes(_PADDLE, numpy=replace(ONE_WAY, max_rank=aligns.PADDLE_TARGET_RANK)),
        **dict.fromkeys(
            ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
            rows(_PADDLE_COMPARED, source=_PADDLE),
        ),
        **dict.fromkeys(_UNPLACED.split(), rows(_PADDLE_UNPLACED, source=_PADDLE)),
    },
    keeps=True,
    divergences=(
        Divergence(
            "an operand that sticks out beyond the last axis is written beyond an "
            "array: it is refused, computes something, hangs or kills the process",
            Reason.OVERRUN,
            _PADDLE,
        ),
        Divergence(
            "an axis below -1 passes the inference of shapes and is refused at run, "
            "unless the result is empty",
            Reason.AXIS_RANGE,
            _PADDLE,
        ),
        Divergence(
            "expand and broadcast_to to an empty target return the data; expand_v2 "
            "of old programs refuses",
            Reason.RANK,
            _PADDLE,
        ),
        Divergence(
            "a size below -1 in expand's target is taken as 0 where the data have that axis",
            Reason.BAD_EXTENT,
            _PADDLE,
        ),
        Divergence(
            "the kernels of comparisons read the axis, the inference of their shapes does not; "
            "logical and bitwise ops, fmax, fmin and heaviside have an axis that nothing reads",
            Reason.AXIS_RANGE,
            "Paddle 3.3.1, run: tests/conformance/test_paddle_modes.py",
        ),
        Divergence(
            "a report of 2026-06 says that eager mode refuses operands that stretch to a result "
            "without elements, as (0, 2) and (1, 2); 3.3.1 takes them in eager and static mode",
            Reason.BAD_EXTENT,
            "PaddlePaddle/Paddle#79365: read; 3.3.1, run: tests/conformance/test_paddle_modes.py",
        ),
    ),
)

NCNN = Engine(
    "ncnn",
    "1.0.20261020",
    "ncnn",
    "ncnn",
    _NCNN,
    rows(_NCNN_RULE, source=_NCNN),
    ops={"prelu": rows(_NCNN_SLOPE, source=_NCNN)},
    tensor_rank=4,
    samples="pnnx 20261020 and ncnn 1.0.20261020, run: tests/conformance/test_pnnx.py",
    divergences=(
        Divergence(
            "sizes that do not combine are not refused: rows repeat, or memory that "
            "nobody wrote is returned",
            Reason.EXTENT_MISMATCH,
            _NCNN,
        ),
        Divergence(
            "an empty operand is read as if it had elements, or kills the process",
            Reason.WRONG_RESULT,
            _NCNN,
        ),
        Divergence(
            "PReLU with fewer slopes than channels reads beyond the weights",
            Reason.EXTENT_MISMATCH,
            _NCNN,
            ops=frozen("prelu"),
        ),
        Divergence(
            "floor_divide by or of a broadcast scalar is not exact: 1 // 1 is 0",
            Reason.WRONG_RESULT,
            _NCNN,
        ),
        Divergence(
            "remainder of whole numbers is the one nearest to 0, of either sign: 5 and 8 give -3",
            Reason.WRONG_RESULT,
            _NCNN_WHOLE,
            strikes=always,
            ops=frozen("remainder"),
            dtypes=_WHOLE,
        ),
        Divergence(
            "fmod and floor_divide of whole numbers take a quotient that may be too small: 62 and "
            "1 may give 1 and 61",
            Reason.WRONG_RESULT,
            _NCNN_WHOLE,
            strikes=always,
            ops=frozen("fmod floor_divide"),
            dtypes=_WHOLE,
        ),
        Divergence(
            "whole numbers are float32",
            Reason.WRONG_RESULT,
            _NCNN,
            strikes=always,
            dtypes=frozen("int32 uint32 int64 uint64"),
            narrows="float32",
        ),
        *(
            Divergence(
                f"{kind} is float32, which does not go round at its ends",
                Reason.WRONG_RESULT,
                _NCNN,
                strikes=always,
                ops=frozen("add subtract multiply pow"),
                dtypes=frozen(kind),
                narrows=kind,
            )
            for kind in ("int8", "uint8", "int16", "uint16")
        ),
    ),
)

#: In a file of mnnconvert: models/transport/mnn_packing.py says where. An op alone is right.
MNN_MIXED = Divergence(
    "the result is in the wrong order where one operand is packed by channels (NC4HW4), and the "
    "other is a single number, such as a constant, that comes first or has more axes: the result "
    "takes its layout",
    Reason.WRONG_RESULT,
    "tests/conformance/test_mnn_packing.py, mnnconvert and MNN 3.6.1",
    ops=frozen(
        "add subtract multiply divide pow fmod remainder maximum minimum equal greater less "
        "greater_equal less_equal logical_and logical_or logical_xor"
    ),
)
MNN = Engine(
    "mnn",
    "3.6",
    "MNN",
    "MNN",
    _MNN,
    rows(_MNN_RULE, source=_MNN),
    modes(
        _MNN,
        bidirectional=replace(BOTH_WAYS, max_rank=9, silent=frozenset({Reason.RANK_LIMIT})),
    ),
    ops={
        "prelu": rows(_MNN_SLOPE, source=_MNN),
        "where": rows(_MNN_WHERE, source=_MNN),
    },
    tensor_rank=9,
    divergences=(
        Divergence(
            "a tensor of rank 10 dies with SIGSEGV when it is made",
            Reason.RANK_LIMIT,
            _MNN,
        ),
        Divergence(
            "PReLU of a vector with a list of slopes corrupts the heap",
            Reason.CRASH,
            _MNN,
            strikes=lambda plan, asker: (
                plan.rule.op == "prelu"
                and len(plan.operands[0]) == 1
                and bool(plan.operands[1:])
                and not all(map(asker.is_one, plan.operands[1]))
            ),
            ops=frozen("prelu"),
        ),
        Divergence(
            "PReLU with another number of slopes than channels is not refused: "
            "missing channels become 0, further slopes are ignored",
            Reason.EXTENT_MISMATCH,
            _MNN,
            ops=frozen("prelu"),
        ),
        Divergence(
            "a quotient or remainder of integers by 0 ends the process with SIGFPE; floor_divide "
            "gives -2^31",
            Reason.CRASH,
            _MNN,
            ops=frozen("divide remainder fmod"),
            dtypes=frozen("int32"),
        ),
        Divergence(
            "uint8 constants die with SIGSEGV",
            Reason.CRASH,
            _MNN,
            strikes=always,
            dtypes=frozen("uint8"),
        ),
        Divergence(
            "int64 becomes int32",
            Reason.WRONG_RESULT,
            _MNN,
            strikes=always,
            dtypes=frozen("int64"),
            narrows="int32",
        ),
        Divergence(
            "float64 reads back as float zeros",
            Reason.WRONG_RESULT,
            _MNN,
            strikes=always,
            dtypes=frozen("float64"),
        ),
        MNN_MIXED,
    ),
)
