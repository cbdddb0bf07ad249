"""The rules by which engines broadcast inside compound ops, as measured.

A compound op (a product with a bias, a normalisation, a clamp) has no row in the engine table. It
broadcasts its operands inside, and engines differ there too: PyTorch requires the scale of a layer
normalisation in exactly the shape that is normalised, ncnn counts its numbers and ignores the
shape, MNN's converter takes a column of N numbers for a row. `CARRIERS` has one row per behaviour
of an engine; tests/conformance/test_compounds.py runs every row that is marked as run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...core.alignment import Rule
from ...core.rules import NCNN_RANK, RULES
from ...engines.rows_read import BHWC, BHWC_CONSTANT
from ...errors import Reason
from ..ir.graph import Node
from ..ir.site import AT_AXIS, BOTH_WAYS, ONE_NUMBER, ONE_WAY
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
    COREML_EIGHT,
    FLOAT_EIGHT,
    LITERT_FEW,
    LITERT_NONE,
    MNN_SLOPES,
    TENSORFLOW_EIGHT,
    dot_product,
    double_alone,
    dropped_axis,
    first_axes,
    fixed_vector,
    gpu_factors,
    gpu_filter,
    gpu_weights,
    half_beside,
    matrices,
    mnn_axis_zero,
    mnn_dequantised,
    mnn_epsilon,
    mnn_quantised,
    mnn_scale_fits,
    mnn_slopes,
    mnn_transposed,
    mnn_whole_slopes,
    no_double,
    offset_of_zero,
    one_batch,
    one_number,
    one_type,
    openvino_ties,
    quantised_data,
    several,
    spatial,
    value_rank,
    without_kernels,
)

#: A placeholder for the model's own rule.
AS_WRITTEN = own_rule("as_written", ONE_WAY, "As the op's document has it.")


@dataclass(frozen=True, slots=True)
class Carrier:
    """The behaviour of an engine inside a compound op.

    Attributes:
        rule: the rule by which it places the operands; AS_WRITTEN: the model's own, as the op's
            document has it.
        source: the evidence, with the function or layer that implements the op.
        run: whether it was run (True) or only read.
        weights: True: this row holds where every operand but the first is a constant; False: where
            one is not; None: either way.
        needs: gives the reason why the engine refuses a node, whatever is broadcast, or None.
        because: the kind of that reason.
        crashes: says why the engine's process ends on a node, at least now and then, or None.
        wrong: says what the engine silently gets wrong in a node, whatever is broadcast, or None.
        types: gives the reason why the engine refuses the operands' element types, or None.
    """

    rule: Rule
    source: str
    run: bool = True
    weights: bool | None = None
    needs: Callable[[Node], str | None] | None = None
    because: Reason = Reason.RANK
    crashes: Callable[[Node], str | None] | None = None
    wrong: Callable[[Node], str | None] | None = None
    types: Callable[[tuple[str, ...]], str | None] | None = None


# The table.

_OWN = "tests/conformance/test_compounds.py, run: "


def _row(rule: Rule, source: str, **more: object) -> Carrier:
    return Carrier(rule, _OWN + source, **more)  # type: ignore[arg-type]


_COREML = "coremltools 8.3 (2026-08), mil/ops/defs: read; "
_TOSA = "TOSA specification 1.0: read; "
_STABLEHLO = "StableHLO specification 1.9: read; "
_NETWORK = "TensorRT API reference 10: read; "
_SCALED = "written out: subtracted, multiplied, added"
_PARSER = "onnx/onnx-tensorrt 10.1, onnxOpImporters.cpp, docs/operators.md: read"
_GPU = "google-ai-edge/LiteRT of 2026-08, tflite/delegates/gpu/common/"
_GPU_FACTORS = f"{_GPU}model_builder.cc, BatchedMatMulOperationParser; selectors/"
_GPU_FACTORS += "operation_selector.cc, BATCHED_MATMUL: read"
_GPU_LINEAR = f"{_GPU}model_builder.cc, FullyConnectedOperationParser; ADD: read"
_WRITTEN_OUT = "written out as a product and an addition"
_ORT, _OPENVINO, _MNN = "ONNX Runtime's kernel", "OpenVINO's ONNX frontend", "MNN's ONNX converter"

_Rows = Mapping[str, tuple[Carrier, ...]]


def _each(engines: str, *rows: Carrier) -> _Rows:
    return dict.fromkeys(engines.split(), rows)


def _read(engine: str, rule: Rule, source: str, **more: object) -> _Rows:
    """A row of an engine that was only read about."""
    return {engine: (Carrier(rule, source, run=False, **more),)}  # type: ignore[arg-type]


def _parsed(rule: Rule, max_rank: int = 8, **more: object) -> _Rows:
    """A row of TensorRT's ONNX parser; its tensors have at most 8 axes."""
    limited = replace(rule, max_rank=max_rank)
    return _read("onnx-parser", limited, _PARSER, **more)


#: Multiplication and addition as single ops: the engine's own rule places vectors.
_BY_HAND: _Rows = {
    **_each("numpy jax tensorflow", _row(BOTH_WAYS, _SCALED)),
    **_each("litert", _row(BOTH_WAYS, f"{_SCALED}: SUB, MUL, ADD", types=LITERT_NONE)),
    **_read("tosa", EQUAL_RANKS, f"{_TOSA}{_SCALED}"),
    **_read("stablehlo", RULES["none"], f"{_STABLEHLO}{_SCALED}"),
}
_NORMALISED: _Rows = {
    **_each("onnxruntime", _row(AT_AXIS, _ORT, types=double_alone)),
    **_each("openvino", _row(AT_AXIS, _OPENVINO, types=one_type)),
    **_parsed(AT_AXIS),
}

#: The engine table has PRelu as the engines' own functions take it. These rows say what a converter
#: makes of an ONNX slope, which may have any number of axes.
_SLOPES: _Rows = {
    "ncnn": (_row(LIST, "PReLU", weights=True),),
    "mnn": (_row(SLOPE, _MNN, weights=True),),
    "mnnconvert": (
        _row(
            SLOPE,
            _MNN,
            weights=True,
            wrong=mnn_slopes,
            needs=mnn_whole_slopes,
            because=Reason.DTYPE,
        ),
        _row(ONE_WAY, _MNN, weights=False, types=MNN_SLOPES),
    ),
    **_parsed(ONE_WAY),
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

_SUBTRACTED = "written out: zero points subtracted, then a product"
_LIBRARIES = _each("numpy torch tensorflow jax paddle", _row(BOTH_WAYS, _SUBTRACTED))


def _written(*scalars: int, openvino: Callable[[Node], str | None] | None = None) -> _Rows:
    """ONNX Runtime and OpenVINO follow the document, but take one number at some inputs."""
    return {
        **_each("onnxruntime", _row(AS_WRITTEN, _ORT, needs=one_number(*scalars))),
        **_each("openvino", _row(AS_WRITTEN, _OPENVINO, needs=openvino)),
    }


_TOSA_ZEROS = f"{_TOSA}CONV2D, MATMUL, RESCALE; llvm/llvm-project, TosaComplianceData.h.inc: read"


def _signed(needs: Callable[[Node], str | None]) -> _Rows:
    """TOSA's products of integers: no uint8. RESCALE has a scale per tensor, or per last axis."""
    types = without_kernels("uint8")
    return {"tosa": (Carrier(AS_WRITTEN, _TOSA_ZEROS, False, needs=needs, types=types),)}


_GPU_FLOAT = f"{_GPU}model_builder.cc, QuantizeOperationParser, in float: read"
_LITERT = "google-ai-edge/LiteRT of 2026-08, tflite/kernels/"
_SCALE_OF_TENSOR = "a scale belongs to a tensor: read"
#: Scales and zero points by engine, where both ops are alike.
_AFFINE: _Rows = {
    **_each(
        "torch",
        _row(AS_WRITTEN, "torch.quantize_per_channel and quantized_decomposed", types=FLOAT_EIGHT),
    ),
    **_each(
        "tensorflow",
        _row(
            AS_WRITTEN, "tf.raw_ops.UniformQuantize and UniformDequantize", types=TENSORFLOW_EIGHT
        ),
    ),
    **_read(
        "paddle",
        AS_WRITTEN,
        "PaddlePaddle/Paddle 3.3, phi/infermeta/unary.cc, quant_axis is 0 or 1: read",
        needs=first_axes,
        because=Reason.AXIS_RANGE,
    ),
    **_read(
        "coreml",
        AS_WRITTEN,
        _COREML + "iOS17/quantization_ops.py",
        weights=True,
        types=COREML_EIGHT,
    ),
    **_read("litert-gpu", ONE_NUMBER, _GPU_FLOAT, weights=True),
    **_read("tosa", EQUAL_RANKS, f"{_TOSA}written out: CAST, SUB, MUL"),
    **_read("stablehlo", AS_WRITTEN, f"{_STABLEHLO}uniform_quantize, by its types", weights=True),
}
_ATTENDED = "OpenVINO 2026.4.1, ScaledDotProductAttention, run: tests/conformance/test_ir.py"
_MANY_WAYS = replace(BOTH_WAYS, operands=(1, 16))
_MNN_QUANTISED = "MNN 3.6.1, mnnconvert, run: tests/conformance/test_mnnconvert.py"
_PARSED_OFFSET = Carrier(AS_WRITTEN, _PARSER, run=False, needs=offset_of_zero, because=Reason.NO_OP)
#: ONNX op, then engine. A missing pair was not examined; its findings are `unknown`.
CARRIERS: Mapping[str, _Rows] = MappingProxyType(
    {
        "PRelu": _SLOPES,
        "QuantizeLinear": {
            **_AFFINE,
            **_written(),
            **_read(
                "litert", ONE_NUMBER, f"{_LITERT}quantize.cc, {_SCALE_OF_TENSOR}", weights=True
            ),
            **_each(
                "onnxruntime", _row(AS_WRITTEN, _ORT, needs=quantised_data, because=Reason.DTYPE)
            ),
            **_each("openvino", _row(AS_WRITTEN, _OPENVINO, wrong=openvino_ties)),
            "onnx-parser": (_PARSED_OFFSET,),
            "mnn": (Carrier(AS_WRITTEN, _MNN_QUANTISED, wrong=mnn_quantised),),
        },
        "DequantizeLinear": {
            **_AFFINE,
            **_written(),
            **_read(
                "litert", AS_WRITTEN, f"{_LITERT}dequantize.cc, {_SCALE_OF_TENSOR}", weights=True
            ),
            "onnx-parser": (_PARSED_OFFSET,),
            "mnn": (
                Carrier(AS_WRITTEN, _MNN_QUANTISED, wrong=mnn_dequantised, needs=mnn_scale_fits),
            ),
        },
        "ConvInteger": {
            **_LIBRARIES,
            **_written(2, 3),
            **_signed(one_number(2, 3)),
        },
        "MatMulInteger": {
            **_LIBRARIES,
            **_written(2),
            **_signed(one_batch(1, 2, 3)),
        },
        "QLinearConv": {
            **_LIBRARIES,
            **_written(openvino=one_number(4, 5, as_vector=False)),
            **_signed(one_number(1, 2, 5, 6, 7)),
        },
        "QLinearMatMul": {
            **_LIBRARIES,
            **_written(1, 2, openvino=one_number(1, 2, 4, 5)),
            **_signed(one_batch(3, 1, 2, 5, 6, 7)),
        },
        "Gemm": {
            **_read("tensorrt", EQUAL_RANKS, _NETWORK + "MatrixMultiply and ElementWise"),
            **_read("coreml", replace(BOTH_WAYS, max_rank=5), _COREML + "matmul and add"),
            **_each("litert", _row(BOTH_WAYS, "BATCH_MATMUL and ADD", types=LITERT_FEW)),
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
            **_read("tosa", EQUAL_RANKS, _TOSA + "MATMUL and ADD"),
            **_read("stablehlo", RULES["none"], _STABLEHLO + "dot_general and add"),
            **_parsed(BOTH_WAYS),
            **_each("numpy tensorflow jax", _row(BOTH_WAYS, _WRITTEN_OUT)),
            **_each("torch", _row(ONE_WAY, "torch.addmm")),
            **_each("onnxruntime", _row(ONE_WAY, _ORT)),
            **_each("openvino", _row(BOTH_WAYS, f"{_OPENVINO}: MatMul and Add")),
            **_each(
                "paddle",
                _row(own_rule("addmm", ONE_WAY, "One way.", align=align_addend), "paddle.addmm"),
            ),
            **_each(
                "ncnn",
                _row(ONE_WAY, "Gemm, constant_broadcast_type_C from C's shape", weights=True),
                _row(BLOB, "Gemm, C as a blob", weights=False),
            ),
            **_each(
                "mnn",
                _row(BIAS, f"{_MNN}, C constant", weights=True, wrong=mnn_transposed),
                _row(BOTH_WAYS, f"{_MNN}, C at run time", weights=False, wrong=mnn_transposed),
            ),
        },
        "MatMul": {
            **_read("tensorrt", replace(EQUAL_RANKS, max_rank=6), _NETWORK + "MatrixMultiply"),
            **_read("coreml", replace(PRODUCT, max_rank=3), _COREML + "iOS15/linear.py, matmul"),
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
            **_read("tosa", TOSA_PRODUCT, _TOSA + "MATMUL"),
            **_read("stablehlo", RULES["none"], _STABLEHLO + "dot_general, batching dimensions"),
            **_parsed(PRODUCT, 6),
            **_each("numpy", _row(PRODUCT, "numpy.matmul")),
            **_each("torch", _row(PRODUCT, "torch.matmul")),
            **_each("jax", _row(PRODUCT, "jax.numpy.matmul")),
            **_each("tensorflow", _row(PRODUCT, "tf.linalg.matmul", needs=matrices)),
            **_each("paddle", _row(PRODUCT, "paddle.matmul")),
            **_each("onnxruntime", _row(PRODUCT, _ORT)),
            **_each("openvino", _row(PRODUCT, f"{_OPENVINO}: MatMul-1")),
            **_each(
                "litert", _row(LITERT_PRODUCT, "BATCH_MATMUL", needs=matrices, types=LITERT_FEW)
            ),
            **_each("ncnn", _row(NCNN_PRODUCT, "MatMul, samples of up to 4 axes")),
            **_each(
                "mnn",
                _row(
                    MNN_PRODUCT,
                    f"{_MNN}: MatMul",
                    weights=True,
                    needs=fixed_vector,
                    crashes=dot_product,
                    wrong=dropped_axis,
                ),
                _row(MNN_PRODUCT, f"{_MNN}: MatMul", weights=False, crashes=dot_product),
            ),
        },
        "Clip": {
            **_read("tensorrt", ONE_NUMBER, _NETWORK + "Activation, kCLIP", weights=True),
            **_read("coreml", replace(ONE_NUMBER, max_rank=5), _COREML + "clip", weights=True),
            **_each("litert", _row(BOTH_WAYS, "MAXIMUM and MINIMUM", types=LITERT_NONE)),
            **_read("litert-gpu", ONE_NUMBER, "MAXIMUM and MINIMUM, constants", weights=True),
            **_read("tosa", ONE_NUMBER, _TOSA + "CLAMP, its bounds are attributes", weights=True),
            **_read("stablehlo", ONE_NUMBER, _STABLEHLO + "clamp"),
            **_parsed(ONE_NUMBER),
            **_each("numpy", _row(BOTH_WAYS, "numpy.clip")),
            **_each("torch", _row(BOTH_WAYS, "torch.clamp")),
            **_each("jax", _row(BOTH_WAYS, "jax.numpy.clip")),
            **_each("tensorflow", _row(ONE_WAY, "tf.clip_by_value")),
            **_each("paddle", _row(ONE_NUMBER, "paddle.clip")),
            **_each("onnxruntime", _row(ONE_NUMBER, _ORT)),
            **_each(
                "openvino",
                _row(ONE_NUMBER, f"{_OPENVINO}: Clamp", weights=True),
                _row(BOTH_WAYS, f"{_OPENVINO}: Minimum and Maximum", weights=False),
            ),
            **_each(
                "ncnn",
                _row(
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
            ),
            **_each(
                "mnn",
                _row(ONE_NUMBER, f"{_MNN}, bounds constant", weights=True),
                _row(BOTH_WAYS, f"{_MNN}, bounds at run time", weights=False),
            ),
        },
        "BatchNormalization": {
            **_each("numpy jax", _row(BOTH_WAYS, _SCALED)),
            **_read("tensorrt", AT_AXIS, _NETWORK + "Scale, by channel", weights=True),
            **_read(
                "coreml",
                replace(AT_AXIS, max_rank=5),
                _COREML + "iOS15/normalization.py, batch_norm",
                weights=True,
                needs=spatial,
            ),
            **_each("litert", _row(BOTH_WAYS, f"{_SCALED}: SUB, MUL, ADD", types=LITERT_NONE)),
            **_read("tosa", EQUAL_RANKS, f"{_TOSA}{_SCALED}"),
            **_read("stablehlo", AT_AXIS, _STABLEHLO + "batch_norm_inference, feature_index"),
            **_NORMALISED,
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.batch_norm", types=half_beside)),
            **_each(
                "paddle",
                _row(replace(AT_AXIS, max_rank=5), "paddle.nn.functional.batch_norm, NCHW"),
            ),
            **_each(
                "tensorflow",
                _row(
                    BOTH_WAYS,
                    "tf.nn.batch_normalization: vectors go to the last axis",
                    types=one_type,
                ),
            ),
            **_each("ncnn", _row(OUTERMOST, "BatchNorm", weights=True)),
            **_each("mnn", _row(AT_AXIS, _MNN, weights=True)),
        },
        "InstanceNormalization": {
            **_BY_HAND,
            **_read(
                "coreml",
                replace(AT_AXIS, max_rank=4),
                _COREML + "iOS15/normalization.py, instance_norm",
                weights=True,
                needs=spatial,
            ),
            **_each("onnxruntime", _row(AT_AXIS, _ORT, needs=spatial, types=no_double)),
            **_parsed(AT_AXIS, needs=spatial),
            **_each("openvino", _row(AT_AXIS, _OPENVINO, needs=spatial)),
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.instance_norm", needs=several)),
            **_each(
                "paddle", _row(replace(AT_AXIS, max_rank=5), "paddle.nn.functional.instance_norm")
            ),
            **_each("ncnn", _row(IMAGES, "InstanceNorm", weights=True)),
            **_each("mnn", _row(AT_AXIS, _MNN, weights=True, wrong=mnn_epsilon)),
        },
        "GroupNormalization": {
            **_BY_HAND,
            **_NORMALISED,
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.group_norm")),
            **_each("paddle", _row(AT_AXIS, "paddle.nn.functional.group_norm")),
            **_each("ncnn", _row(OUTERMOST, "GroupNorm", weights=True)),
        },
        "LayerNormalization": {
            **_BY_HAND,
            **_read("coreml", EXACT, _COREML + "iOS15/normalization.py, layer_norm", weights=True),
            **_read(
                "tensorrt",
                replace(SLOPES, name="one_way_equal_ranks", max_rank=8, operands=(1, 16)),
                "TensorRT operator reference 10, Normalization, 'Shape Information': read",
            ),
            **_parsed(ONE_WAY),
            **_each("onnxruntime", _row(ONE_WAY, _ORT)),
            **_each("openvino", _row(RESHAPED, _OPENVINO)),
            **_each("torch", _row(EXACT, "torch.nn.functional.layer_norm")),
            **_each("paddle", _row(FLAT, "paddle.nn.functional.layer_norm")),
            **_each("ncnn", _row(COUNTED, "LayerNorm", weights=True)),
            **_each(
                "mnn",
                _row(
                    replace(EXACT, silent=UNCHECKED),
                    f"{_MNN}: LayerNorm",
                    weights=True,
                    wrong=mnn_axis_zero,
                ),
                _row(ONE_WAY, f"{_MNN}, at run time", weights=False, wrong=mnn_axis_zero),
            ),
        },
        "ScaledDotProductAttention": {
            **_each("openvino", Carrier(AS_WRITTEN, _ATTENDED, needs=value_rank)),
            **dict.fromkeys(
                ("numpy", "torch", "jax", "tensorflow", "paddle", "onnxruntime"),
                (Carrier(_MANY_WAYS, "written out: products, the mask added", run=False),),
            ),
        },
        "RMSNormalization": {
            **_BY_HAND,
            **_each("onnxruntime", _row(ONE_WAY, _ORT, types=one_type)),
            **_each("openvino", _row(ONE_WAY, _OPENVINO, types=one_type)),
            **_each("torch", _row(EXACT, "torch.nn.functional.rms_norm")),
            **_each("ncnn", _row(COUNTED, "RMSNorm", weights=True)),
        },
    }
)

#: Element-wise ops of more than two operands that are one op on the engine, not a chain of ops of
#: two operands. MNN's converter stacks the operands and reduces the stack.
_STACKED = _row(
    replace(RULES["none"], silent=frozenset({Reason.NOT_IDENTICAL, Reason.RANK})),
    "MNN's ONNX converter: Pack and Reduction, which read past the end of what is smaller",
)
MANY: Mapping[tuple[str, str], Carrier] = MappingProxyType(
    {("mnn", op): _STACKED for op in ("Max", "Min", "Sum", "Mean")}
)
