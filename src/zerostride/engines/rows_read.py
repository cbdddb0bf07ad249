"""Rows of targets that were read about, not run: TensorRT, Core ML, LiteRT's GPU, TOSA, StableHLO.

Each limit names its document or thread. Only limits that were read are listed.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..core.rules import RULES
from ..errors import Reason
from . import aligns, limits
from .model import Divergence, Engine, always
from .rows import NONE_RULE, NUMPY_RULE, frozen, modes, rows

_TENSORRT = (
    "TensorRT operator reference (8.5 to 10.6), ElementWise and Select, 'Shape Information'; "
    "API reference 10.2, Dims64.MAX_DIMS: read"
)
_COREML = (
    "coremltools 8.3, mil/ops/defs/_utils.py, broadcast_shapes; pytorch/executorch#11694; "
    "apple/coremltools#2291, #1723: read"
)
_GPU_SOURCE = "tflite/delegates/gpu/common/model_builder.cc and model_builder_helper.cc"
_GPU = (
    f"google-ai-edge/LiteRT of 2026-08, {_GPU_SOURCE}; google-ai-edge/LiteRT#8980, #2540, #9191; "
    "tensorflow/tensorflow#60043: read"
)
_TOSA = (
    "TOSA specification 1.0, 'Broadcasting', broadcast_shape, and tosa.xml (level 8K, "
    "typesupport): read"
)
_STABLEHLO = (
    "StableHLO specification 1.9, 'add' (C1), 'select' (C1, C2), 'broadcast_in_dim' (C2 to C5): "
    "read"
)

_AXIS_WISE = replace(
    NUMPY_RULE,
    align=aligns.equal_ranks,
    summary="Axis by axis, operands of one rank; both may stretch.",
)
_TRT_RULE = replace(_AXIS_WISE, max_rank=8)
_TOSA_RULE = replace(_AXIS_WISE, max_rank=6)
_COREML_RULE = replace(NUMPY_RULE, max_rank=5, summary="NumPy's rule, up to 5 axes.")
BHWC = replace(
    NUMPY_RULE,
    align=aligns.bhwc,
    check=limits.first_is_whole,
    operands=(2, 2),
    max_rank=4,
    summary="Each operand is laid out as batch, height, width, channels by its own rank; only the "
    "second stretches.",
    one_way="the first operand is taken for the larger one, and does not stretch",
    silent=frozenset({Reason.ONE_WAY, Reason.EXTENT_MISMATCH}),
)
BHWC_CONSTANT = replace(
    NUMPY_RULE,
    check=limits.one_stretches,
    operands=(2, 2),
    max_rank=4,
    summary="A constant is right-aligned, and stretches.",
    silent=frozenset({Reason.ONE_WAY}),
)
_BHWC_SELECT = replace(
    NUMPY_RULE,
    align=aligns.bhwc_select,
    check=limits.condition_by_fours,
    operands=(3, 3),
    max_rank=4,
    summary="The values have the result's shape or are one number; the condition stretches, laid "
    "out as batch, height, width, channels by its own rank.",
    silent=frozenset({Reason.EXTENT_MISMATCH, Reason.WRONG_RESULT}),
)
_BHWC_SUM = replace(BHWC, align=aligns.bhwc_sum, summary=f"{BHWC.summary} Ranks are checked.")
_CONSTANT_SUM = replace(
    BHWC_CONSTANT, align=aligns.constant_sum, summary=f"{BHWC_CONSTANT.summary} Ranks are checked."
)
_GPU_CHECK = (
    "google-ai-edge/LiteRT of 2026-08, tflite/tools/versioning/gpu_compatibility.cc, "
    "CheckAddMulBroadcastCompatibility: read"
)
#: Its ops of the op table: the parsers that model_builder.cc has.
_GPU_OPS = frozen(
    "add subtract multiply divide floor_divide remainder pow maximum minimum squared_difference "
    "equal not_equal less less_equal greater greater_equal logical_and where prelu"
)
_SAME = replace(NONE_RULE, align=aligns.identical, operands=(2, 2))
_CHOSEN = replace(
    _SAME,
    align=aligns.identical_or_scalar_condition,
    operands=(3, 3),
    summary="Identical shapes; the condition may be one truth value.",
)
_IN_DIM = replace(
    RULES["explicit"],
    summary="Data axis i lands on target axis broadcast_dimensions[i]; axes in another order "
    "transpose, which a plan does not say.",
)

TENSORRT = Engine(
    "tensorrt",
    "10",
    "tensorrt",
    "tensorrt",
    _TENSORRT,
    rows(_TRT_RULE, source=_TENSORRT),
    modes(
        "TensorRT operator reference 10, Slice: a stride of 0 repeats an axis of 1: read",
        bidirectional=replace(RULES["bidirectional"], align=aligns.equal_ranks, max_rank=8),
    ),
    ops=MappingProxyType({"where": rows(replace(_TRT_RULE, operands=(3, 3)), source=_TENSORRT)}),
    tensor_rank=8,
    run=False,
    divergences=(
        Divergence(
            "operands of unequal ranks are refused; its ONNX parser puts ones before the shorter "
            "shape, a network made by hand has to",
            Reason.RANK,
            _TENSORRT,
            run=False,
        ),
    ),
)

COREML = Engine(
    "coreml",
    "8.3",
    "coremltools",
    "coremltools",
    _COREML,
    rows(_COREML_RULE, source=_COREML),
    ops=MappingProxyType(
        {
            "where": rows(
                replace(_COREML_RULE, operands=(3, 3)),
                source="coremltools 8.3, mil/ops/defs/iOS15/control_flow.py, select: read",
            )
        }
    ),
    tensor_rank=5,
    run=False,
    tiles=True,
    divergences=(
        Divergence(
            "MIL has no op that broadcasts to a shape: tile repeats, and an addition stretches",
            Reason.NO_OP,
            "coremltools 8.3, mil/ops/defs/iOS15/tensor_operation.py, tile: read",
            run=False,
        ),
        Divergence(
            "tensors of more than 5 axes are refused when the model is converted, or, written by "
            "other tools, when it is compiled on the device",
            Reason.RANK_LIMIT,
            _COREML,
            run=False,
        ),
    ),
)

_DRIFT = "google-ai-edge/LiteRT of 2026-08, ml_drift_delegate/tflite/model_builder.cc"
_GPU_ALL = frozen("bool float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64")
_GPU_COMPARED = "equal not_equal less less_equal greater greater_equal"
#: Ops and the element types that one of LiteRT's two delegates takes: GetOpsToReplace of both.
_GPU_TYPES = (
    (
        "add subtract multiply divide floor_divide remainder maximum minimum",
        "float16 float32 int8 uint8 int16 int32",
    ),
    ("pow squared_difference prelu", "float16 float32 int8 uint8"),
    (_GPU_COMPARED, "bool float16 float32 int8 uint8 int16 uint16 int32 uint32"),
    ("where", "bool float16 float32 int8 uint8 int16 uint16 int32 uint32"),
    ("logical_and", "bool int8 int16 int32"),
)


def _gpu_types(ops: str, takes: str) -> Divergence:
    missing = _GPU_ALL - frozen(takes)
    return Divergence(
        f"{', '.join(ops.split())}: no delegate takes {', '.join(sorted(missing))}",
        Reason.DTYPE,
        f"{_DRIFT}; {_GPU_SOURCE}, GetOpsToReplace: read",
        run=False,
        strikes=always,
        ops=frozen(ops),
        dtypes=missing,
    )


LITERT_GPU = Engine(
    "litert-gpu",
    "2.2",
    "ai-edge-litert",
    "ai_edge_litert",
    _GPU,
    rows(BHWC, source=_GPU),
    ops=MappingProxyType(
        {
            **dict.fromkeys(
                ("add", "multiply"),
                rows(_BHWC_SUM, source=f"{_GPU_CHECK}; {_GPU}"),
            ),
            "where": rows(
                _BHWC_SELECT,
                source="google-ai-edge/LiteRT of 2026-08, tflite/tools/versioning/"
                "gpu_compatibility.cc, CheckSelectV2GpuDelegateCompatibility; "
                "tflite/delegates/gpu/common/tasks/select_v2.cc: read",
            ),
        }
    ),
    constants=MappingProxyType(
        {
            **rows(BHWC_CONSTANT, source=_GPU),
            **dict.fromkeys(("add", "multiply"), replace(_CONSTANT_SUM, source=_GPU_CHECK)),
        }
    ),
    tensor_rank=4,
    run=False,
    tiles=True,
    has=_GPU_OPS,
    leaves=frozenset({Reason.RANK_LIMIT, Reason.RANK, Reason.NO_OP, Reason.DTYPE}),
    divergences=(
        Divergence(
            "operands of unequal ranks, neither a constant, are misaligned and nothing is said: "
            "(20,128,128) with (1,1,128,128)",
            Reason.WRONG_RESULT,
            "google-ai-edge/LiteRT#8980: read",
            run=False,
        ),
        Divergence(
            "more than 4 axes are refused: 'bad input dims size: 5'",
            Reason.RANK_LIMIT,
            "google-ai-edge/LiteRT#2540: read",
            run=False,
        ),
        Divergence(
            "a constant that is not float, of lower rank than the other operand, is laid out from "
            "the batch on: [C] is read as Cx1x1x1",
            Reason.WRONG_RESULT,
            "google-ai-edge/LiteRT#9664: read",
            run=False,
        ),
        Divergence(
            "BROADCAST_TO is refused, whatever the rank; TILE is taken",
            Reason.NO_OP,
            f"google-ai-edge/LiteRT#9191; {_GPU_SOURCE}, TileOperationParser: read",
            run=False,
        ),
        Divergence(
            "which operand may stretch is written by hand for each op: the first is taken for the "
            "larger one; ADD and MUL exchange operands that differ in height and width alone",
            Reason.ONE_WAY,
            "tensorflow/tensorflow#60043; " + _GPU_SOURCE + ": read",
            run=False,
        ),
        Divergence(
            "one tensor as both operands is taken by ADD and MUL alone",
            Reason.NO_OP,
            f"google-ai-edge/LiteRT#9192; {_GPU_SOURCE}, ElementwiseOperationParser: read",
            run=False,
        ),
        Divergence(
            "TensorFlow Lite's delegate takes a comparison only if its result has one reader: a "
            "CAST to floats, or a SELECT of floats; the newer ML Drift takes others",
            Reason.NO_OP,
            f"tensorflow/tensorflow#62314; {_GPU_SOURCE}, ElementwiseOperationParser: read",
            run=False,
            ops=frozen(_GPU_COMPARED),
        ),
        Divergence(
            "TensorFlow Lite's delegate takes float tensors and quantised ones of 8 bits; the "
            "newer ML Drift takes whole numbers in some ops",
            Reason.DTYPE,
            f"{_GPU_SOURCE}, GetOpsToReplace; {_DRIFT}: read",
            run=False,
        ),
        *[_gpu_types(*entry) for entry in _GPU_TYPES],
    ),
)

_TOSA_ALL = frozen("int8 uint8 int16 uint16 int32 uint32 uint64 float16 float32 float64 bool")
#: Ops and the dtypes of tosa.xml's typesupport. int64 is left out: it is new in the draft of 1.1.
_TOSA_TYPES = (
    ("add subtract maximum minimum equal greater greater_equal", "int32 float16 float32"),
    ("multiply", "int8 int16 int32 float16 float32"),
    ("pow", "float16 float32"),
    ("divide", "int32"),
    ("less less_equal", "int32 float16 float32"),
    ("logical_and logical_or logical_xor", "bool"),
    ("bitwise_and bitwise_or bitwise_xor", "int8 int16 int32"),
    ("bitwise_left_shift bitwise_right_shift", "int8 int16 int32"),
    ("where", "int8 int16 int32 float16 float32 bool"),
)


def _tosa_types(ops: str, takes: str) -> Divergence:
    missing = _TOSA_ALL - frozen(takes)
    names = ", ".join(ops.split())
    return Divergence(
        f"{names}: the specification has no {', '.join(sorted(missing))}",
        Reason.DTYPE,
        "TOSA specification 1.0, tosa.xml, typesupport: read",
        run=False,
        strikes=always,
        ops=frozen(ops),
        dtypes=missing,
    )


TOSA = Engine(
    "tosa",
    "1.0",
    "tosa",
    "tosa",
    _TOSA,
    rows(_TOSA_RULE, source=_TOSA),
    ops=MappingProxyType({"where": rows(replace(_TOSA_RULE, operands=(3, 3)), source=_TOSA)}),
    tensor_rank=6,
    run=False,
    tiles=True,
    divergences=(
        Divergence(
            "no op broadcasts to a shape: TILE repeats, and an addition stretches",
            Reason.NO_OP,
            _TOSA,
            run=False,
        ),
        Divergence(
            "6 axes are the limit of level 8K; without a level it is 32",
            Reason.RANK_LIMIT,
            _TOSA,
            run=False,
        ),
        *[_tosa_types(*entry) for entry in _TOSA_TYPES],
    ),
)

STABLEHLO = Engine(
    "stablehlo",
    "1.9",
    "stablehlo",
    "stablehlo",
    _STABLEHLO,
    rows(_SAME, source=_STABLEHLO),
    modes(_STABLEHLO, explicit=_IN_DIM),
    ops=MappingProxyType({"where": rows(_CHOSEN, source=_STABLEHLO)}),
    run=False,
    divergences=(
        Divergence(
            "broadcast_dimensions need not rise: unsorted ones transpose",
            Reason.TRANSPOSES,
            _STABLEHLO,
            run=False,
        ),
    ),
)
