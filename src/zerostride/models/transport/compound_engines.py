"""The rules by which engines broadcast inside compound ops, as measured.

A compound op (a product with a bias, a normalisation, a clamp) has no row in the engine table. It
broadcasts its operands inside, and engines differ there too: PyTorch requires the scale of a layer
normalisation in exactly the shape that is normalised, ncnn counts its numbers and ignores the
shape, MNN's converter takes a column of N numbers for a row. `CARRIERS` has one row per behaviour
of an engine; tests/conformance/test_compounds.py runs every row that is marked as run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ...core.rules import NCNN_RANK, RULES
from ...engines.rows_read import BHWC, BHWC_CONSTANT
from ...errors import Reason
from ..ir.site import AT_AXIS, BOTH_WAYS, ONE_NUMBER, ONE_WAY
from .compound_quantised import QUANTISED
from .compound_rows import (
    AS_WRITTEN,
    COREML,
    GPU,
    MNN,
    OPENVINO,
    ORT,
    STABLEHLO,
    TOSA,
    Carrier,
    EngineRows,
    each,
    parsed,
    ran,
    ran_row,
    read,
)
from .compound_rules import (
    BIAS,
    BLOB,
    CHANNEL_SLOPES,
    COUNTED,
    EQUAL_RANKS,
    EXACT,
    FLAT,
    GPU_PRODUCT,
    IMAGES,
    LIST,
    LITERT_PRODUCT,
    MNN_PRODUCT,
    NCNN_PRODUCT,
    OUTERMOST,
    PRODUCT,
    RESHAPED,
    SLOPE,
    SLOPES,
    TOSA_PRODUCT,
    UNCHECKED,
    align_addend,
    align_number,
    no_zeros,
    own_rule,
)
from .node_limits import (
    LITERT_FEW,
    LITERT_NONE,
    MNN_SLOPES,
    dot_product,
    double_alone,
    dropped_axis,
    fixed_vector,
    gpu_factors,
    gpu_filter,
    gpu_weights,
    half_beside,
    matrices,
    mnn_axis_zero,
    mnn_epsilon,
    mnn_slopes,
    mnn_transposed,
    mnn_whole_slopes,
    no_double,
    one_type,
    several,
    spatial,
)

_NETWORK = "TensorRT API reference 10: read; "
_SCALED = "written out: subtracted, multiplied, added"
_GPU_FACTORS = f"{GPU}model_builder.cc, BatchedMatMulOperationParser; selectors/"
_GPU_FACTORS += "operation_selector.cc, BATCHED_MATMUL: read"
_GPU_LINEAR = f"{GPU}model_builder.cc, FullyConnectedOperationParser; ADD: read"
_WRITTEN_OUT = "written out as a product and an addition"
#: Multiplication and addition as single ops: the engine's own rule places vectors.
_BY_HAND: EngineRows = {
    **ran("numpy jax tensorflow", BOTH_WAYS, _SCALED),
    **ran("litert", BOTH_WAYS, f"{_SCALED}: SUB, MUL, ADD", types=LITERT_NONE),
    **read("tosa", EQUAL_RANKS, f"{TOSA}{_SCALED}"),
    **read("stablehlo", RULES["none"], f"{STABLEHLO}{_SCALED}"),
}
_NORMALISED: EngineRows = {
    **ran("onnxruntime", AT_AXIS, ORT, types=double_alone),
    **ran("openvino", AT_AXIS, OPENVINO, types=one_type),
    **parsed(AT_AXIS),
}

#: The engine table has PRelu as the engines' own functions take it. These rows say what a converter
#: makes of an ONNX slope, which may have any number of axes.
_SLOPES: EngineRows = {
    "ncnn": (ran_row(LIST, "PReLU", weights=True),),
    "mnn": (ran_row(SLOPE, MNN, weights=True),),
    "mnnconvert": (
        ran_row(
            SLOPE,
            MNN,
            weights=True,
            wrong=mnn_slopes,
            needs=mnn_whole_slopes,
            because=Reason.DTYPE,
        ),
        ran_row(ONE_WAY, MNN, weights=False, types=MNN_SLOPES),
    ),
    **parsed(ONE_WAY),
    "tensorrt": (
        Carrier(
            replace(SLOPES, max_rank=8),
            "TensorRT operator reference, ParametricReLU, 'Shape Information': read",
            run=False,
        ),
    ),
    "coreml": (
        Carrier(
            CHANNEL_SLOPES,
            "coremltools 8.3, mil/ops/defs/iOS15/activation.py, prelu: read",
            run=False,
            weights=True,
        ),
    ),
}

_ROTATED = "ONNX Runtime 1.32.0, OpenVINO 2026.4.1, run: tests/conformance/test_rotary.py"
_MEASURED: Mapping[str, EngineRows] = MappingProxyType(
    {
        "PRelu": _SLOPES,
        **QUANTISED,
        "Gemm": {
            **read("tensorrt", EQUAL_RANKS, _NETWORK + "MatrixMultiply and ElementWise"),
            **read("coreml", replace(BOTH_WAYS, max_rank=5), COREML + "matmul and add"),
            **ran("litert", BOTH_WAYS, "BATCH_MATMUL and ADD", types=LITERT_FEW),
            "litert-gpu": (
                Carrier(
                    BHWC_CONSTANT,
                    _GPU_LINEAR,
                    False,
                    weights=True,
                    needs=gpu_filter,
                    because=Reason.NO_OP,
                ),
                Carrier(
                    BHWC, _GPU_LINEAR, False, weights=False, needs=gpu_filter, because=Reason.NO_OP
                ),
            ),
            **read("tosa", EQUAL_RANKS, TOSA + "MATMUL and ADD"),
            **read("stablehlo", RULES["none"], STABLEHLO + "dot_general and add"),
            **parsed(BOTH_WAYS),
            **ran("numpy tensorflow jax", BOTH_WAYS, _WRITTEN_OUT),
            **ran("torch", ONE_WAY, "torch.addmm"),
            **ran("onnxruntime", ONE_WAY, ORT),
            **ran("openvino", BOTH_WAYS, f"{OPENVINO}: MatMul and Add"),
            **ran(
                "paddle", own_rule("addmm", ONE_WAY, "One way.", align=align_addend), "paddle.addmm"
            ),
            **each(
                "ncnn",
                ran_row(ONE_WAY, "Gemm, constant_broadcast_type_C from C's shape", weights=True),
                ran_row(BLOB, "Gemm, C as a blob", weights=False),
            ),
            **each(
                "mnn",
                ran_row(BIAS, f"{MNN}, C constant", weights=True, wrong=mnn_transposed),
                ran_row(BOTH_WAYS, f"{MNN}, C at run time", weights=False, wrong=mnn_transposed),
            ),
        },
        "MatMul": {
            **read("tensorrt", replace(EQUAL_RANKS, max_rank=6), _NETWORK + "MatrixMultiply"),
            **read("coreml", replace(PRODUCT, max_rank=3), COREML + "iOS15/linear.py, matmul"),
            "litert-gpu": (
                Carrier(
                    replace(PRODUCT, max_rank=2),
                    _GPU_FACTORS,
                    False,
                    weights=True,
                    needs=gpu_weights,
                ),
                Carrier(GPU_PRODUCT, _GPU_FACTORS, False, weights=False, needs=gpu_factors),
            ),
            **read("tosa", TOSA_PRODUCT, TOSA + "MATMUL"),
            **read("stablehlo", RULES["none"], STABLEHLO + "dot_general, batching dimensions"),
            **parsed(PRODUCT, 6),
            **ran("numpy", PRODUCT, "numpy.matmul"),
            **ran("torch", PRODUCT, "torch.matmul"),
            **ran("jax", PRODUCT, "jax.numpy.matmul"),
            **ran("tensorflow", PRODUCT, "tf.linalg.matmul", needs=matrices),
            **ran("paddle", PRODUCT, "paddle.matmul"),
            **ran("onnxruntime", PRODUCT, ORT),
            **ran("openvino", PRODUCT, f"{OPENVINO}: MatMul-1"),
            **ran("litert", LITERT_PRODUCT, "BATCH_MATMUL", needs=matrices, types=LITERT_FEW),
            **ran("ncnn", NCNN_PRODUCT, "MatMul, samples of up to 4 axes"),
            **each(
                "mnn",
                ran_row(
                    MNN_PRODUCT,
                    f"{MNN}: MatMul",
                    weights=True,
                    needs=fixed_vector,
                    crashes=dot_product,
                    wrong=dropped_axis,
                ),
                ran_row(MNN_PRODUCT, f"{MNN}: MatMul", weights=False, crashes=dot_product),
            ),
        },
        "Clip": {
            **read("tensorrt", ONE_NUMBER, _NETWORK + "Activation, kCLIP", weights=True),
            **read("coreml", replace(ONE_NUMBER, max_rank=5), COREML + "clip", weights=True),
            **ran("litert", BOTH_WAYS, "MAXIMUM and MINIMUM", types=LITERT_NONE),
            **read("litert-gpu", ONE_NUMBER, "MAXIMUM and MINIMUM, constants", weights=True),
            **read("tosa", ONE_NUMBER, TOSA + "CLAMP, its bounds are attributes", weights=True),
            **read("stablehlo", ONE_NUMBER, STABLEHLO + "clamp"),
            **parsed(ONE_NUMBER),
            **ran("numpy", BOTH_WAYS, "numpy.clip"),
            **ran("torch", BOTH_WAYS, "torch.clamp"),
            **ran("jax", BOTH_WAYS, "jax.numpy.clip"),
            **ran("tensorflow", ONE_WAY, "tf.clip_by_value"),
            **ran("paddle", ONE_NUMBER, "paddle.clip"),
            **ran("onnxruntime", ONE_NUMBER, ORT),
            **each(
                "openvino",
                ran_row(ONE_NUMBER, f"{OPENVINO}: Clamp", weights=True),
                ran_row(BOTH_WAYS, f"{OPENVINO}: Minimum and Maximum", weights=False),
            ),
            **ran(
                "ncnn",
                replace(
                    ONE_NUMBER,
                    align=align_number,
                    max_rank=NCNN_RANK,
                    silent=UNCHECKED,
                    check=no_zeros,  # no elements: SIGSEGV
                ),
                "Clip, bounds as parameters",
                weights=True,
            ),
            **each(
                "mnn",
                ran_row(ONE_NUMBER, f"{MNN}, bounds constant", weights=True),
                ran_row(BOTH_WAYS, f"{MNN}, bounds at run time", weights=False),
            ),
        },
        "BatchNormalization": {
            **ran("numpy jax", BOTH_WAYS, _SCALED),
            **read("tensorrt", AT_AXIS, _NETWORK + "Scale, by channel", weights=True),
            **read(
                "coreml",
                replace(AT_AXIS, max_rank=5),
                COREML + "iOS15/normalization.py, batch_norm",
                weights=True,
                needs=spatial,
            ),
            **ran("litert", BOTH_WAYS, f"{_SCALED}: SUB, MUL, ADD", types=LITERT_NONE),
            **read("tosa", EQUAL_RANKS, f"{TOSA}{_SCALED}"),
            **read("stablehlo", AT_AXIS, STABLEHLO + "batch_norm_inference, feature_index"),
            **_NORMALISED,
            **ran("torch", AT_AXIS, "torch.nn.functional.batch_norm", types=half_beside),
            **ran("paddle", replace(AT_AXIS, max_rank=5), "paddle.nn.functional.batch_norm, NCHW"),
            **ran(
                "tensorflow",
                BOTH_WAYS,
                "tf.nn.batch_normalization: vectors go to the last axis",
                types=one_type,
            ),
            **ran("ncnn", OUTERMOST, "BatchNorm", weights=True),
            **ran("mnn", AT_AXIS, MNN, weights=True),
        },
        "InstanceNormalization": {
            **_BY_HAND,
            **read(
                "coreml",
                replace(AT_AXIS, max_rank=4),
                COREML + "iOS15/normalization.py, instance_norm",
                weights=True,
                needs=spatial,
            ),
            **ran("onnxruntime", AT_AXIS, ORT, needs=spatial, types=no_double),
            **parsed(AT_AXIS, needs=spatial),
            **ran("openvino", AT_AXIS, OPENVINO, needs=spatial),
            **ran("torch", AT_AXIS, "torch.nn.functional.instance_norm", needs=several),
            **ran("paddle", replace(AT_AXIS, max_rank=5), "paddle.nn.functional.instance_norm"),
            **ran("ncnn", IMAGES, "InstanceNorm", weights=True),
            **ran("mnn", AT_AXIS, MNN, weights=True, wrong=mnn_epsilon),
        },
        "GroupNormalization": {
            **_BY_HAND,
            **_NORMALISED,
            **ran("torch", AT_AXIS, "torch.nn.functional.group_norm"),
            **ran("paddle", AT_AXIS, "paddle.nn.functional.group_norm"),
            **ran("ncnn", OUTERMOST, "GroupNorm", weights=True),
        },
        "LayerNormalization": {
            **_BY_HAND,
            **read("coreml", EXACT, COREML + "iOS15/normalization.py, layer_norm", weights=True),
            **read(
                "tensorrt",
                replace(SLOPES, name="one_way_equal_ranks", max_rank=8, operands=(1, 16)),
                "TensorRT operator reference 10, Normalization, 'Shape Information': read",
            ),
            **parsed(ONE_WAY),
            **ran("onnxruntime", ONE_WAY, ORT),
            **ran("openvino", RESHAPED, OPENVINO),
            **ran("torch", EXACT, "torch.nn.functional.layer_norm"),
            **ran("paddle", FLAT, "paddle.nn.functional.layer_norm"),
            **ran("ncnn", COUNTED, "LayerNorm", weights=True),
            **each(
                "mnn",
                ran_row(
                    replace(EXACT, silent=UNCHECKED),
                    f"{MNN}: LayerNorm",
                    weights=True,
                    wrong=mnn_axis_zero,
                ),
                ran_row(ONE_WAY, f"{MNN}, at run time", weights=False, wrong=mnn_axis_zero),
            ),
        },
        "RotaryEmbedding": {
            **each("onnxruntime openvino", Carrier(AS_WRITTEN, _ROTATED)),
            **dict.fromkeys(
                ("numpy", "torch", "jax", "tensorflow", "paddle"),
                (Carrier(AS_WRITTEN, "written out: two products, a sum and a difference", False),),
            ),
        },
        "RMSNormalization": {
            **_BY_HAND,
            **ran("onnxruntime", ONE_WAY, ORT, types=one_type),
            **ran("openvino", ONE_WAY, OPENVINO, types=one_type),
            **ran("torch", EXACT, "torch.nn.functional.rms_norm"),
            **ran("ncnn", COUNTED, "RMSNorm", weights=True),
        },
    }
)


def _with_lowered(rows: EngineRows) -> EngineRows:
    """The rows of an op, and those of ExecuTorch, which lowers PyTorch's functions."""
    lowered = (
        replace(row, source=f"lowered from PyTorch's; {row.source}", run=False)
        for row in rows.get("torch", ())
    )
    return {**rows, "executorch": tuple(lowered)} if "torch" in rows else rows


#: ONNX op, then engine. A missing pair was not examined; its findings are `unknown`.
CARRIERS: Mapping[str, EngineRows] = MappingProxyType(
    {op: _with_lowered(rows) for op, rows in _MEASURED.items()}
)

#: Element-wise ops of more than two operands that are one op on the engine, not a chain of ops of
#: two operands. MNN's converter stacks the operands and reduces the stack.
_STACKED = ran_row(
    replace(RULES["none"], silent=frozenset({Reason.NOT_IDENTICAL, Reason.RANK})),
    "MNN's ONNX converter: Pack and Reduction, which read past the end of what is smaller",
)
MANY: Mapping[tuple[str, str], Carrier] = MappingProxyType(
    {("mnn", op): _STACKED for op in ("Max", "Min", "Sum", "Mean")}
)
