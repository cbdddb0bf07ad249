"""One row for each ONNX op.

To add an op, write the functions of its sizes and of its elements, and a row here. An op that
broadcasts needs a row in `formats.onnx.sites`, too, which chooses its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from ..ir.graph import Array
from .kernels import attention, narrow, pointwise, recurrent, reduction, resize, written
from .kernels import movement as moving
from .kernels import windows as sliding
from .kernels.call import Kernel, NodeCall, Unfit
from .kernels.pointwise import Values, compared, folded
from .sizes import attention as attended
from .sizes import elementwise, indexing, movement, windows
from .sizes.facts import OpCall, Results

SizesOf: TypeAlias = Callable[[OpCall], Results]


@dataclass(frozen=True, slots=True)
class OnnxOp:
    """A row of the table.

    Attributes:
        sizes: computes the facts of its results; None: onnx's own inference does.
        kernel: computes its results; None: it is not executed, or only where it broadcasts.
        values: computes its result from operands that are broadcast by their site's plan.
        making: nanoseconds for each element of its results. Measured on two cores of a server of
            2023, one thread, of 2**21 elements of float32 and of float64, the slower of both.
        reading: nanoseconds for each element of its operands; 0 for lookups, which leave most out.
    """

    sizes: SizesOf | None = None
    kernel: Kernel | None = None
    values: Values | None = None
    making: int = 18
    reading: int = 1


def _unary(making: int, names: str) -> dict[str, OnnxOp]:
    """Ops of one tensor that the op table computes."""
    return {n: OnnxOp(elementwise.unary, pointwise.UNARY[n], making=making) for n in names.split()}


def _alike(names: str, row: OnnxOp) -> dict[str, OnnxOp]:
    return dict.fromkeys(names.split(), row)


#: Ops of the ai.onnx domain.
OPS: Mapping[str, OnnxOp] = MappingProxyType(
    {
        # A new op of one tensor has its row in the op table; only its time is here.
        **_unary(18, " ".join(pointwise.UNARY)),
        "Add": OnnxOp(elementwise.broadcast, values=folded("Add"), making=2),
        **_alike(
            "Affine Bernoulli ImageScaler MeanVarianceNormalization ParametricSoftplus "
            "RandomNormalLike RandomUniformLike ScaledTanh TensorScatter",
            OnnxOp(elementwise.like),
        ),
        "And": OnnxOp(elementwise.broadcast, values=folded("And"), making=4),
        "ArgMax": OnnxOp(indexing.arg_extreme, reduction.run_arg_max),
        "ArgMin": OnnxOp(indexing.arg_extreme, reduction.run_arg_min),
        "Attention": OnnxOp(None, attention.run_attention),
        "AveragePool": OnnxOp(windows.pool, sliding.run_average_pool),
        "BatchNormalization": OnnxOp(elementwise.normalised, reduction.run_batch_norm, making=5),
        "BitCast": OnnxOp(elementwise.unary, narrow.run_bit_cast),
        "BitShift": OnnxOp(elementwise.broadcast, values=pointwise.run_shifted),
        "BitwiseAnd": OnnxOp(elementwise.broadcast, values=folded("BitwiseAnd")),
        "BitwiseOr": OnnxOp(elementwise.broadcast, values=folded("BitwiseOr")),
        "BitwiseXor": OnnxOp(elementwise.broadcast, values=folded("BitwiseXor")),
        **_alike("BlackmanWindow HammingWindow HannWindow", OnnxOp(indexing.window)),
        "Cast": OnnxOp(elementwise.unary, narrow.run_cast, making=2),
        "CastLike": OnnxOp(elementwise.like, narrow.run_cast, making=2),
        "Clip": OnnxOp(elementwise.by_site, pointwise.run_clip, making=2),
        "Compress": OnnxOp(indexing.compress, moving.run_compress),
        "Concat": OnnxOp(movement.concat, moving.run_concat, making=2),
        "ConstantOfShape": OnnxOp(elementwise.constant_of_shape, moving.run_constant_of_shape),
        "Conv": OnnxOp(windows.convolution, sliding.run_conv),
        "ConvInteger": OnnxOp(windows.convolution, narrow.run_conv_integer),
        "ConvTranspose": OnnxOp(windows.transposed, sliding.run_transposed),
        "CumProd": OnnxOp(elementwise.along, reduction.run_cum_prod),
        "CumSum": OnnxOp(elementwise.along, reduction.run_cum_sum, making=5),
        "DFT": OnnxOp(windows.spectrum),
        "DepthToSpace": OnnxOp(movement.depth_to_space, moving.run_depth_to_space),
        "DequantizeLinear": OnnxOp(elementwise.by_site, narrow.run_dequantise),
        "Det": OnnxOp(kernel=reduction.run_det),
        "Div": OnnxOp(elementwise.broadcast, values=pointwise.run_divide, making=2),
        "Dropout": OnnxOp(elementwise.unary, moving.run_dropout),
        "DynamicQuantizeLinear": OnnxOp(elementwise.quantized, narrow.run_dynamic_quantise),
        "Einsum": OnnxOp(elementwise.einsum, reduction.run_einsum),
        "Equal": OnnxOp(elementwise.broadcast, values=compared("Equal"), making=2),
        "Expand": OnnxOp(elementwise.expand, making=2, reading=0),
        "EyeLike": OnnxOp(elementwise.like, moving.run_eye_like),
        "Flatten": OnnxOp(movement.flatten, moving.run_flatten, making=0, reading=0),
        **_alike("GRU LSTM RNN", OnnxOp(indexing.recurrent, recurrent.run_recurrent)),
        "Gather": OnnxOp(indexing.gather, moving.run_gather, reading=0),
        "GatherElements": OnnxOp(
            indexing.gather_elements, moving.run_gather_elements, making=34, reading=0
        ),
        "GatherND": OnnxOp(indexing.gather_nd, moving.run_gather_nd, making=24, reading=0),
        "Gelu": OnnxOp(elementwise.unary, pointwise.run_gelu, making=110),
        "Gemm": OnnxOp(elementwise.gemm, reduction.run_gemm, making=7),
        "GlobalAveragePool": OnnxOp(windows.global_pool, reduction.run_global_average),
        "GlobalLpPool": OnnxOp(windows.global_pool),
        "GlobalMaxPool": OnnxOp(windows.global_pool, reduction.run_global_max),
        "Greater": OnnxOp(elementwise.broadcast, values=compared("Greater"), making=4),
        "GreaterOrEqual": OnnxOp(
            elementwise.broadcast, values=compared("GreaterOrEqual"), making=4
        ),
        "GridSample": OnnxOp(indexing.grid_sample),
        "GroupNormalization": OnnxOp(elementwise.normalised, reduction.run_group_norm),
        "Hardmax": OnnxOp(elementwise.along, reduction.run_hardmax),
        "Identity": OnnxOp(elementwise.unary, moving.run_same, making=0, reading=0),
        **_alike("If Loop Scan", OnnxOp(reading=0)),
        "InstanceNormalization": OnnxOp(elementwise.normalised, reduction.run_instance_norm),
        "IsInf": OnnxOp(elementwise.unary, pointwise.run_is_inf),
        "IsNaN": OnnxOp(elementwise.unary, pointwise.run_is_nan),
        "LRN": OnnxOp(elementwise.unary, sliding.run_local_norm),
        "LayerNormalization": OnnxOp(elementwise.normalised, reduction.run_layer_norm),
        "Less": OnnxOp(elementwise.broadcast, values=compared("Less"), making=4),
        "LessOrEqual": OnnxOp(elementwise.broadcast, values=compared("LessOrEqual"), making=4),
        "LogSoftmax": OnnxOp(elementwise.along, reduction.run_log_softmax),
        "LpNormalization": OnnxOp(elementwise.like, reduction.run_lp_norm),
        "LpPool": OnnxOp(windows.pool, sliding.run_lp_pool),
        "MatMul": OnnxOp(elementwise.matmul, reduction.run_matmul, making=7),
        "MatMulInteger": OnnxOp(elementwise.matmul, narrow.run_matmul_integer),
        "Max": OnnxOp(elementwise.broadcast, moving.run_same, folded("Max"), making=2),
        "MaxPool": OnnxOp(windows.pool, sliding.run_max_pool),
        "Mean": OnnxOp(elementwise.broadcast, moving.run_same, pointwise.run_mean, making=5),
        "Min": OnnxOp(elementwise.broadcast, moving.run_same, folded("Min"), making=2),
        "Mod": OnnxOp(elementwise.broadcast, values=pointwise.run_modulo, making=5),
        "Mul": OnnxOp(elementwise.broadcast, values=folded("Mul"), making=2),
        **_alike("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", OnnxOp(indexing.loss)),
        "NonMaxSuppression": OnnxOp(indexing.select_boxes),
        "NonZero": OnnxOp(indexing.nonzero, moving.run_non_zero, reading=10),
        "OneHot": OnnxOp(indexing.one_hot, moving.run_one_hot, making=2),
        "Or": OnnxOp(elementwise.broadcast, values=folded("Or"), making=4),
        "PRelu": OnnxOp(elementwise.by_site, values=pointwise.run_slope, making=2),
        "Pad": OnnxOp(movement.pad, moving.run_pad, making=2),
        "Pow": OnnxOp(elementwise.broadcast, values=pointwise.run_power),
        "QLinearConv": OnnxOp(windows.convolution),
        "QLinearMatMul": OnnxOp(elementwise.matmul, narrow.run_quantised_matmul),
        "QuantizeLinear": OnnxOp(elementwise.by_site, narrow.run_quantise),
        "RMSNormalization": OnnxOp(elementwise.normalised, reduction.run_rms_norm),
        **_alike("RandomNormal RandomUniform", OnnxOp(elementwise.by_attribute)),
        "Range": OnnxOp(movement.counted, moving.run_range),
        "ReduceL1": OnnxOp(indexing.reduce, reduction.reduction("L1")),
        "ReduceL2": OnnxOp(indexing.reduce, reduction.reduction("L2"), reading=2),
        "ReduceLogSum": OnnxOp(indexing.reduce, reduction.reduction("LogSum"), reading=4),
        "ReduceLogSumExp": OnnxOp(indexing.reduce, reduction.reduction("LogSumExp"), reading=8),
        "ReduceMax": OnnxOp(indexing.reduce, reduction.reduction("Max")),
        "ReduceMean": OnnxOp(indexing.reduce, reduction.reduction("Mean")),
        "ReduceMin": OnnxOp(indexing.reduce, reduction.reduction("Min")),
        "ReduceProd": OnnxOp(indexing.reduce, reduction.reduction("Prod")),
        "ReduceSum": OnnxOp(indexing.reduce, reduction.reduction("Sum")),
        "ReduceSumSquare": OnnxOp(indexing.reduce, reduction.reduction("SumSquare")),
        "Reshape": OnnxOp(movement.reshape, moving.run_reshape, making=0, reading=0),
        **_alike("Resize Upsample", OnnxOp(windows.resize, resize.run_resized, making=34)),
        "ReverseSequence": OnnxOp(elementwise.like, moving.run_reverse_sequence),
        "RotaryEmbedding": OnnxOp(elementwise.like, written.run_written),
        "RoiAlign": OnnxOp(indexing.roi_align),
        "STFT": OnnxOp(windows.spectra),
        **_alike(
            "Scatter ScatterElements",
            OnnxOp(indexing.scatter, moving.run_scatter_elements, making=34),
        ),
        "ScatterND": OnnxOp(indexing.scatter_nd, moving.run_scatter_nd),
        "Shape": OnnxOp(elementwise.shape_of, moving.run_shape, making=0, reading=0),
        # ONNX Runtime's, which it writes without a domain.
        "SimplifiedLayerNormalization": OnnxOp(elementwise.normalised, reduction.run_rms_norm),
        "Size": OnnxOp(elementwise.size_of, moving.run_size, making=0, reading=0),
        "Slice": OnnxOp(indexing.cut, moving.run_slice, making=2, reading=0),
        "Softmax": OnnxOp(elementwise.along, reduction.run_softmax),
        "SpaceToDepth": OnnxOp(movement.space_to_depth, moving.run_space_to_depth),
        "Split": OnnxOp(movement.split, moving.run_split, making=2, reading=0),
        "Squeeze": OnnxOp(movement.squeeze, moving.run_squeeze, making=0, reading=0),
        "StringConcat": OnnxOp(elementwise.broadcast),
        "Sub": OnnxOp(elementwise.broadcast, values=folded("Sub"), making=2),
        "Sum": OnnxOp(elementwise.broadcast, moving.run_same, pointwise.run_sum, making=5),
        "Tile": OnnxOp(movement.tile, moving.run_tile, making=2, reading=0),
        "TopK": OnnxOp(indexing.top, moving.run_top_k, reading=105),
        "Transpose": OnnxOp(movement.transpose, moving.run_transpose, making=2),
        "Trilu": OnnxOp(elementwise.like, moving.run_trilu, making=2),
        "Unique": OnnxOp(indexing.unique),
        "Unsqueeze": OnnxOp(movement.unsqueeze, moving.run_unsqueeze, making=0, reading=0),
        "Where": OnnxOp(elementwise.where, values=pointwise.run_where, making=4),
        "Xor": OnnxOp(elementwise.broadcast, values=folded("Xor")),
        **_unary(2, "Abs Ceil Floor Neg Not Relu"),
        **_unary(5, "LeakyRelu Sqrt"),
        **_unary(7, "Exp Log"),
        **_unary(24, "Sigmoid Softplus Tan"),
        **_unary(40, "Mish"),
        **_unary(150, "Erf"),
    }
)

#: Ops of com.microsoft, ONNX Runtime's own.
CONTRIB: Mapping[str, OnnxOp] = MappingProxyType(
    {
        "FusedMatMul": OnnxOp(elementwise.fused_product),
        **_alike("DynamicQuantizeMatMul MatMulIntegerToFloat", OnnxOp(elementwise.matmul)),
        "FusedGemm": OnnxOp(elementwise.gemm),
        "FusedConv": OnnxOp(windows.convolution),
        "DynamicQuantizeLSTM": OnnxOp(indexing.recurrent),
        "Attention": OnnxOp(attended.projected, written.run_written),
        "GroupQueryAttention": OnnxOp(attended.group_query, written.run_written),
        "MultiHeadAttention": OnnxOp(attended.multi_head, written.run_written),
        "RotaryEmbedding": OnnxOp(elementwise.as_first, written.run_written),
        **_alike("QLinearAdd QLinearMul", OnnxOp(elementwise.pair)),
        **_alike(
            "BiasGelu FastGelu Gelu QuickGelu QLinearLeakyRelu QLinearSigmoid QLinearSoftmax "
            "SkipLayerNormalization SkipSimplifiedLayerNormalization",
            OnnxOp(elementwise.as_first),
        ),
        "SimplifiedLayerNormalization": OnnxOp(elementwise.normalised, reduction.run_rms_norm),
    }
)
_OTHER = OnnxOp()


def op_row(name: str, domain: str = "") -> OnnxOp:
    """The row of an op; an empty row for other ops and other domains."""
    rows = {"": OPS, "com.microsoft": CONTRIB}.get(domain, {})
    return rows.get(name, _OTHER)


def run_op(call: NodeCall) -> tuple[Array, ...]:
    """The results of an ONNX op that does not broadcast.

    Raises:
        Unfit: the op is not executed, or does not fit its operands.
    """
    kernel = op_row(call.node.op, call.node.domain).kernel
    if kernel is None:
        raise Unfit("it is not executed")
    with np.errstate(all="ignore"):
        results = kernel(call)
    return tuple(map(np.asarray, results if isinstance(results, tuple) else (results,)))


__all__ = ["CONTRIB", "OPS", "OnnxOp", "op_row", "run_op"]
