"""The engine table: one row an engine, each fact with the release it was measured on.

`rules` has what documents say. Rows here start from those rules and name only what differs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..alignment import Attribute, Rule
from ..dims import Asker
from ..errors import BroadcastError, Reason
from ..plan import Plan
from ..rules import RULES
from . import aligns, limits
from .model import Divergence, Engine, Rules

_NUMPY, _NONE = RULES["numpy"], RULES["none"]
_ONE_WAY, _BOTH_WAYS = RULES["unidirectional"], RULES["bidirectional"]


def _measured(release: str) -> str:
    """The source of a row: the full run of the conformance command, whose seed was 0."""
    return f"{release}, run: 20,000 generated cases by value, 0 disagreements"


def _rows(*rules: Rule, source: str) -> Rules:
    return MappingProxyType({rule.name: replace(rule, source=source) for rule in rules})


def _modes(source: str, **rules: Rule) -> Rules:
    return MappingProxyType({mode: replace(rule, source=source) for mode, rule in rules.items()})


def _is_target(plan: Plan) -> bool:
    """Whether the plan is a Broadcast op's, which has one operand."""
    return len(plan.operands) == 1


_OPENVINO = _measured("OpenVINO 2026.4.1")
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
#: Ops that the CPU plugin does not compile with pdpd where the numpy rule differs.
_OPENVINO_COMPARED = (
    *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
    *("logical_and", "logical_or", "logical_xor"),
)


def _openvino_rules(check: Callable[[Plan, Asker], None], *silent: Reason) -> Rules:
    """OpenVINO's rules for ops whose pdpd is not what the node says."""
    return _rows(
        replace(_NUMPY, max_rank=_OPENVINO_RANK),
        replace(_NONE, max_rank=_OPENVINO_RANK),
        replace(_OPENVINO_PDPD, check=check, silent=frozenset(silent)),
        source=_OPENVINO,
    )


_OPENVINO_EXPLICIT = replace(
    RULES["explicit"],
    align=aligns.openvino_explicit,
    silent=frozenset({Reason.DUPLICATE_AXES, Reason.WRONG_RESULT}),
    check=limits.openvino_gaps,
    max_rank=_OPENVINO_RANK,
)
_PRELU_CHANNEL = replace(
    RULES["pdpd"],
    align=aligns.prelu_channel,
    silent=frozenset({Reason.RANK, Reason.ONE_WAY, Reason.WRONG_RESULT}),
    max_rank=_OPENVINO_RANK,
    attributes=MappingProxyType({}),
    summary="A vector slope goes to axis 1 where it fits there, else right-aligned.",
    one_way="only the slope may stretch, to the data",
)
_PRELU_DYNAMIC = replace(
    _PRELU_CHANNEL,
    align=aligns.prelu_axis_1,
    silent=frozenset(),
    summary="Compiled before sizes are known: a vector slope goes to axis 1, and both may stretch.",
)
#: Where nothing but the data's shape may result, a slope that would stretch the data is one way.
_ONE_SLOPE = replace(
    _PRELU_CHANNEL,
    align=aligns.channel_slope,
    silent=frozenset(),
    max_rank=None,
    summary="The slope is one number, or a vector along axis 1.",
)
_PADDLE_SLOPE = replace(_ONE_SLOPE, align=aligns.paddle_slope)
_MNN_SLOPE = replace(
    _ONE_SLOPE,
    align=aligns.mnn_slope,
    summary="The slope is one number, or a list along axis 1 (of a vector: axis 0).",
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK}),
)
_NCNN_SLOPE = replace(
    _ONE_SLOPE,
    align=aligns.ncnn_slope,
    summary="The slope is one number, or a list along the outermost axis.",
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK}),
    max_rank=4,
)
_NCNN = _measured("ncnn 1.0.20261020")
_MNN = _measured("MNN 3.6.1")
_PADDLE = _measured("Paddle 3.3.1")
_ORT = _measured("ONNX Runtime 1.31.1")
_TORCH = _measured("PyTorch 2.13.0")
_NP = _measured("NumPy 2.4.6")
_JAX = _measured("JAX 0.10.2")
_TF = _measured("TensorFlow 2.21.0")

_PADDLE_RULE = replace(
    RULES["paddle"],
    silent=frozenset({Reason.OVERRUN}),
    check=limits.paddle_axis,
    max_rank=9,
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
_IN_DIM = replace(RULES["explicit"], align=aligns.jax_dims, silent=frozenset({Reason.WRONG_RESULT}))
_LAX = replace(
    _NUMPY, align=aligns.equal_ranks_or_scalar, summary="Operands of one rank, or scalars."
)

ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        engine.name: engine
        for engine in (
            Engine(
                "numpy",
                "2.4",
                "numpy",
                "numpy",
                _NP,
                _rows(_NUMPY, source=_NP),
                _modes(_NP, numpy=_ONE_WAY),
            ),
            Engine(
                "torch",
                "2.13",
                "torch",
                "torch",
                _TORCH,
                _rows(_NUMPY, source=_TORCH),
                _modes(_TORCH, numpy=_ONE_WAY),
                ops={"prelu": _rows(_ONE_SLOPE, source=_TORCH)},
                keeps=True,
            ),
            Engine(
                "tensorflow",
                "2.21",
                "tensorflow-cpu",
                "tensorflow",
                _TF,
                _rows(replace(_NUMPY, check=limits.tensorflow_runs), source=_TF),
                _modes(_TF, numpy=replace(_ONE_WAY, check=limits.tensorflow_runs)),
                ops={
                    "where": _rows(replace(_NUMPY, check=limits.tensorflow_where), source=_TF),
                },
                divergences=(
                    Divergence(
                        "operands whose axes do not merge into 5 runs are refused "
                        "(UnimplementedError), unless the result is empty; XLA lifts that",
                        Reason.RANK_LIMIT,
                        _TF,
                    ),
                    Divergence(
                        "where (SelectV2) refuses more than 8 axes, unless the result is empty",
                        Reason.RANK_LIMIT,
                        _TF,
                    ),
                    Divergence(
                        "the operator == on shapes that do not combine is False, not an error",
                        Reason.WRONG_RESULT,
                        _TF,
                    ),
                ),
            ),
            Engine(
                "jax",
                "0.10",
                "jax",
                "jax",
                _JAX,
                _rows(_NUMPY, source=_JAX),
                _modes(_JAX, numpy=_ONE_WAY, explicit=_IN_DIM),
                ops={"lax.add": _rows(_LAX, source=_JAX)},
                divergences=(
                    Divergence(
                        "broadcast_in_dim with no dimensions returns data of the target's rank "
                        "unchanged, whatever the target",
                        Reason.WRONG_RESULT,
                        _JAX,
                    ),
                    Divergence(
                        "broadcast_in_dim ignores unsorted dimensions when the data have the "
                        "target's shape: they come back untransposed",
                        Reason.WRONG_RESULT,
                        _JAX,
                    ),
                ),
            ),
            Engine(
                "onnxruntime",
                "1.31",
                "onnxruntime",
                "onnxruntime",
                _ORT,
                _rows(_NUMPY, source=_ORT),
                _modes(_ORT, bidirectional=_BOTH_WAYS),
                divergences=(
                    Divergence(
                        "PRelu broadcasts both ways; its document, which onnx's shape inference "
                        "follows, says the slope goes one way to the data",
                        Reason.ONE_WAY,
                        _ORT,
                    ),
                ),
            ),
            Engine(
                "openvino",
                "2026.4",
                "openvino",
                "openvino",
                _OPENVINO,
                _rows(
                    replace(_NUMPY, max_rank=_OPENVINO_RANK),
                    replace(_NONE, max_rank=_OPENVINO_RANK),
                    _OPENVINO_PDPD,
                    source=_OPENVINO,
                ),
                _modes(
                    _OPENVINO,
                    numpy=replace(_ONE_WAY, max_rank=_OPENVINO_RANK),
                    explicit=_OPENVINO_EXPLICIT,
                    bidirectional=replace(
                        _BOTH_WAYS, align=aligns.openvino_bidirectional, max_rank=_OPENVINO_RANK
                    ),
                ),
                ops={
                    "prelu": _rows(_PRELU_CHANNEL, source=_OPENVINO),
                    **dict.fromkeys(
                        ("subtract", "divide"),
                        _openvino_rules(limits.openvino_rewritten, Reason.WRONG_RESULT),
                    ),
                    **dict.fromkeys(
                        _OPENVINO_COMPARED,
                        _openvino_rules(limits.openvino_compared, Reason.WRONG_RESULT),
                    ),
                },
                dynamic={"prelu": _rows(_PRELU_DYNAMIC, source=_OPENVINO_DYNAMIC)},
                divergences=(
                    Divergence(
                        "PRelu with a vector slope, compiled before its sizes are known, takes "
                        "axis 1 whether the slope fits there or not",
                        Reason.WRONG_RESULT,
                        _OPENVINO_DYNAMIC,
                    ),
                    Divergence(
                        "Subtract and Divide with pdpd: the CPU plugin rewrites them into ops with "
                        "the numpy rule, whose answer or refusal one gets",
                        Reason.WRONG_RESULT,
                        _OPENVINO,
                    ),
                    Divergence(
                        "comparisons and logical ops with pdpd: the CPU plugin computes by the "
                        "numpy rule, or does not compile; never with an axis above 0",
                        Reason.NO_RULE,
                        _OPENVINO,
                    ),
                    Divergence(
                        "BitwiseAnd and Mod with pdpd do not compile (three shapes each)",
                        Reason.NO_RULE,
                        _OPENVINO,
                    ),
                    Divergence(
                        "pdpd with 1 of A against 0 of B can die with SIGABRT",
                        Reason.CRASH,
                        _OPENVINO,
                        strikes=lambda plan, asker: (
                            plan.rule == "pdpd"
                            and any(
                                asker.equal(plan.shape[axis], 0)
                                and asker.is_one(plan.aligned[0][axis])
                                for axis in plan.stretched[0]
                            )
                        ),
                    ),
                    Divergence(
                        "Broadcast-3 of static data with a 0 dies with SIGFPE at compile",
                        Reason.CRASH,
                        _OPENVINO,
                        strikes=lambda plan, asker: (
                            _is_target(plan) and any(asker.equal(n, 0) for n in plan.operands[0])
                        ),
                    ),
                    Divergence(
                        "Broadcast-3 of rank 0 to rank 0 dies with SIGSEGV at compile (numpy, "
                        "bidirectional)",
                        Reason.CRASH,
                        _OPENVINO,
                        strikes=lambda plan, asker: (
                            plan.rule in ("unidirectional", "bidirectional") and not plan.shape
                        ),
                    ),
                    Divergence(
                        "Broadcast-3 bidirectional: the data's 1 against a target of 0 stays 1",
                        Reason.WRONG_RESULT,
                        _OPENVINO,
                    ),
                    Divergence(
                        "a result of 21 axes or more from an operand of 12 or fewer dies with "
                        "SIGABRT",
                        Reason.CRASH,
                        _OPENVINO,
                        strikes=lambda plan, asker: (
                            not _is_target(plan)
                            and plan.rank >= 21
                            and min(map(len, plan.operands)) <= 12
                        ),
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
                    ),
                ),
            ),
            Engine(
                "paddle",
                "3.3",
                "paddlepaddle",
                "paddle",
                _PADDLE,
                _rows(_PADDLE_RULE, source=_PADDLE),
                _modes(_PADDLE, numpy=replace(_ONE_WAY, align=aligns.paddle_target, max_rank=9)),
                ops={
                    "prelu": _rows(_PADDLE_SLOPE, source=_PADDLE),
                    "expand_v2": _modes(
                        _PADDLE, numpy=replace(_ONE_WAY, max_rank=aligns.PADDLE_TARGET_RANK)
                    ),
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
                        "a size below -1 in expand's target is taken as 0 where the data have "
                        "that axis",
                        Reason.BAD_EXTENT,
                        _PADDLE,
                    ),
                ),
            ),
            Engine(
                "ncnn",
                "1.0.20261020",
                "ncnn",
                "ncnn",
                _NCNN,
                _rows(_NCNN_RULE, source=_NCNN),
                ops={"prelu": _rows(_NCNN_SLOPE, source=_NCNN)},
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
                    ),
                    Divergence(
                        "floor_divide by or of a broadcast scalar is not exact: 1 // 1 is 0",
                        Reason.WRONG_RESULT,
                        _NCNN,
                    ),
                ),
            ),
            Engine(
                "mnn",
                "3.6",
                "MNN",
                "MNN",
                _MNN,
                _rows(_MNN_RULE, source=_MNN),
                _modes(
                    _MNN,
                    bidirectional=replace(
                        _BOTH_WAYS, max_rank=9, silent=frozenset({Reason.RANK_LIMIT})
                    ),
                ),
                ops={"prelu": _rows(_MNN_SLOPE, source=_MNN)},
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
                    ),
                    Divergence(
                        "PReLU with another number of slopes than channels is not refused: "
                        "missing channels become 0, further slopes are ignored",
                        Reason.EXTENT_MISMATCH,
                        _MNN,
                    ),
                ),
                dtypes=MappingProxyType(
                    {
                        "uint8": "uint8 constants die with SIGSEGV",
                        "int64": "int64 becomes int32",
                        "float64": "float64 reads back as float zeros",
                    }
                ),
            ),
        )
    }
)


def find_engine(name: Any) -> Engine:
    """The row of an engine; a BroadcastError lists the names otherwise."""
    engine = ENGINES.get(name) if isinstance(name, str) else None
    if engine is None:
        close = difflib.get_close_matches(str(name), ENGINES, 1)
        raise BroadcastError(
            f"there is no engine {name!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(ENGINES)}",
        )
    return engine
