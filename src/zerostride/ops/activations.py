"""Activations: PReLU, and ops of one tensor whose parameters are attributes in models.

Parameters have the names and defaults of ONNX's operators.
"""

from __future__ import annotations

import functools

from . import formulas
from .model import row

_row = functools.partial(row, tensors=1, numpy="")

#: ONNX, Selu: the float32 numbers of its document.
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875

_FLOATS_ALONE = "onnxruntime:biu onnxruntime:float64 torch:biu tensorflow:biu paddle:biu"
#: At infinity engines compute x times 0, which is NaN, instead of the limit.
_ALL_FLOATS = "onnxruntime:f openvino:f torch:f jax:f tensorflow:f paddle:f"

ROWS = (
    row(
        "prelu",
        "x where it is not negative, x times slope where it is",
        "[[-0.5, 2.0], [3.0, -8.0]]",
        "onnx:PRelu openvino:PRelu ncnn:PReLU mnn:PReLU paddle:prelu tensorflow:- jax:-",
        args="[[-1.0, 2.0], [3.0, -4.0]], [0.5, 2.0]",
        numpy="",
        variants={
            "prelu_by_float32": "openvino:iu",
            "prelu_of_zeros": "openvino/avx2:f",
            "unknown": "litert:int8 litert:uint8 litert:int16 openvino:b",
            "refused": "onnxruntime:biu tensorflow:b",
        },
        formula=formulas.prelu,
    ),
    _row(
        "relu",
        "x where it is above 0, 0 elsewhere; NaN stays",
        "[0.0, 2.0]",
        "onnx:Relu openvino:Relu ncnn:ReLU mnn:ReLU paddle:relu",
        args="[-1.0, 2.0]",
        variants={
            "relu_by_float32": "openvino:int32",
            "relu_of_nan_is_zero": "openvino:f paddle:f",
            "relu_in_int32": "jax:b",
            "unknown": "openvino:uint32 openvino:int64 openvino:uint64 mnn:if",
            "refused": "onnxruntime:bu onnxruntime:int16 onnxruntime:int64 openvino:b torch:b "
            "tensorflow:b paddle:biu",
        },
        formula=formulas.relu,
    ),
    _row(
        "leaky_relu",
        "x where it is not negative, alpha times x where it is",
        "[-0.01, 2.0]",
        "onnx:LeakyRelu ncnn:ReLU mnn:ReLU paddle:leaky_relu",
        args="[-1.0, 2.0]",
        parameters={"alpha": 0.01},
        variants={
            "leaky_relu_in_float32": "jax:biu tensorflow:iu",
            "unknown": "mnn:if",
            "refused": "onnxruntime:biu onnxruntime:float64 torch:biu tensorflow:b paddle:biu",
        },
        formula=formulas.leaky_relu,
    ),
    _row(
        "thresholded_relu",
        "x where it is above alpha, 0 elsewhere, for NaN too",
        "[0.0, 2.0]",
        "onnx:ThresholdedRelu paddle:thresholded_relu torch:- tensorflow:- jax:-",
        args="[0.5, 2.0]",
        parameters={"alpha": 1.0},
        variants={
            "unknown": "paddle:f",
            "refused": "onnxruntime:biu onnxruntime:float64 paddle:biu",
        },
        formula=formulas.thresholded_relu,
    ),
    _row(
        "elu",
        "x where it is above 0, alpha (exp(x) - 1) elsewhere",
        "[-1.0, 2.0]",
        "onnx:Elu openvino:Elu ncnn:ELU mnn:ELU paddle:elu",
        args="[-1000.0, 2.0]",
        parameters={"alpha": 1.0},
        variants={
            "elu_in_float32": "jax:biu",
            "unknown": "openvino:biu mnn:f",
            "refused": _FLOATS_ALONE + " mnn:i",
        },
        fixed="tensorflow",
        formula=formulas.elu,
        cost=8,
    ),
    _row(
        "selu",
        "gamma times x where it is above 0, gamma alpha (exp(x) - 1) elsewhere",
        "[0.0, 1.0507010221481323]",
        "onnx:Selu openvino:Selu ncnn:SELU mnn:Selu paddle:selu",
        args="[0.0, 1.0]",
        parameters={"alpha": SELU_ALPHA, "gamma": SELU_GAMMA},
        variants={
            "selu_in_float32": "jax:biu",
            "unknown": "mnn:f",
            "refused": _FLOATS_ALONE + " openvino:biu mnn:i",
        },
        fixed="torch jax tensorflow",
        formula=formulas.selu,
        cost=8,
    ),
    _row(
        "celu",
        "max(0, x) + min(0, alpha (exp(x / alpha) - 1))",
        "[-1.0, 2.0]",
        "onnx:Celu ncnn:CELU paddle:celu tensorflow:-",
        args="[-1000.0, 2.0]",
        parameters={"alpha": 1.0},
        variants={
            "celu_in_float32": "jax:biu",
            "refused": _FLOATS_ALONE + " onnxruntime:float16",
        },
        formula=formulas.celu,
        cost=8,
    ),
    _row(
        "gelu",
        "x times the normal distribution's share below x, by erf",
        "[0.0, 100.0]",
        "onnx:Gelu openvino:Gelu ncnn:GELU mnn:GELU_STANDARD paddle:gelu",
        args="[0.0, 100.0]",
        variants={
            "gelu_in_float32": "jax:biu",
            "gelu_nan_at_infinity": "onnxruntime:f torch:float16 torch:float64 jax:f "
            "tensorflow:f paddle:f",
            "unknown": "openvino:f torch:float32 mnn:if",
            "refused": _FLOATS_ALONE + " openvino:biu",
        },
        formula=formulas.gelu,
        cost=12,
    ),
    _row(
        "gelu_tanh",
        "gelu by its approximation with tanh",
        "[0.0, 100.0]",
        "onnx:Gelu openvino:Gelu mnn:GELU paddle:gelu torch:gelu tensorflow:gelu jax:gelu",
        args="[0.0, 100.0]",
        variants={
            "gelu_tanh_in_float32": "jax:biu",
            "gelu_tanh_nan_at_infinity": _ALL_FLOATS,
            "unknown": "mnn:if",
            "refused": "onnxruntime:biu openvino:biu torch:biu tensorflow:biu paddle:biu",
        },
        formula=formulas.gelu_tanh,
        cost=12,
    ),
    _row(
        "softplus",
        "log(1 + exp(x)), without overflow",
        "[0.0, 1000.0]",
        "onnx:Softplus openvino:SoftPlus ncnn:Softplus paddle:softplus",
        args="[-1000.0, 1000.0]",
        variants={"softplus_in_float32": "jax:biu", "refused": _FLOATS_ALONE + " openvino:biu"},
        formula=formulas.softplus,
        cost=12,
    ),
    _row(
        "softsign",
        "x / (1 + abs(x))",
        "[-0.5, 0.75]",
        "onnx:Softsign openvino:SoftSign paddle:softsign jax:soft_sign",
        args="[-1.0, 3.0]",
        variants={
            "softsign_nan_at_infinity": _ALL_FLOATS,
            "unknown": "torch:iu jax:biu",
            "refused": "onnxruntime:biu onnxruntime:float64 openvino:biu torch:b tensorflow:biu "
            "paddle:biu",
        },
        formula=formulas.softsign,
    ),
    _row(
        "mish",
        "x tanh(softplus(x))",
        "[0.0, 100.0]",
        "onnx:Mish openvino:Mish ncnn:Mish paddle:mish tensorflow:-",
        args="[0.0, 100.0]",
        variants={
            "mish_in_float32": "jax:biu",
            "mish_nan_at_infinity": _ALL_FLOATS,
            "refused": _FLOATS_ALONE + " openvino:biu",
        },
        formula=formulas.mish,
        cost=12,
    ),
    _row(
        "swish",
        "x sigmoid(alpha x)",
        "[0.0, 1000.0]",
        "onnx:Swish openvino:Swish ncnn:Swish mnn:SILU "
        "paddle:swish,silu torch:silu tensorflow:swish,silu jax:swish,silu",
        args="[0.0, 1000.0]",
        parameters={"alpha": 1.0},
        aliases="silu",
        variants={
            "swish_nan_at_infinity": _ALL_FLOATS,
            "unknown": "mnn:if",
            "refused": "onnxruntime:biu openvino:biu torch:biu jax:biu tensorflow:biu paddle:biu",
        },
        fixed="torch jax paddle ncnn",
        formula=formulas.swish,
        cost=8,
    ),
    _row(
        "hard_sigmoid",
        "alpha x + beta, within 0 and 1",
        "[0.0, 0.5]",
        "onnx:HardSigmoid openvino:HardSigmoid ncnn:HardSigmoid "
        "paddle:hard_sigmoid torch:- tensorflow:- jax:-",
        args="[-9.0, 0.0]",
        parameters={"alpha": 0.2, "beta": 0.5},
        variants={
            "unknown": "openvino:biuf",
            "refused": "onnxruntime:biu onnxruntime:float64 paddle:biu",
        },
        formula=formulas.hard_sigmoid,
    ),
    _row(
        "hard_swish",
        "x times x / 6 + 1/2, which is kept within 0 and 1",
        "[0.0, 9.0]",
        "onnx:HardSwish openvino:HSwish mnn:HARDSWISH paddle:hard_swish torch:hardswish "
        "tensorflow:-",
        args="[0.0, 9.0]",
        variants={
            "hard_swish_in_float32": "jax:biu",
            "hard_swish_nan_at_infinity": _ALL_FLOATS,
            "unknown": "openvino:iu mnn:if",
            "refused": "onnxruntime:biu onnxruntime:float64 openvino:b torch:biu paddle:biu",
        },
        formula=formulas.hard_swish,
    ),
    _row(
        "shrink",
        "x + bias below -lambd, x - bias above lambd, 0 between, for NaN too",
        "[-1.0, 0.0]",
        "onnx:Shrink torch:- tensorflow:- jax:-",
        args="[-1.0, 0.25]",
        parameters={"bias": 0.0, "lambd": 0.5},
        variants={"shrink_by_float32": "onnxruntime:iu", "refused": "onnxruntime:b"},
        formula=formulas.shrink,
    ),
)
