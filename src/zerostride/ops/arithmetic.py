"""Arithmetic of two operands: sums, products, quotients, remainders, powers, maximum, minimum.

Measured, but in no row of `variants`, are three facts of ncnn: the result of NaN in maximum and
minimum depends on the element's place in its vector, division uses an approximate reciprocal (so
x / 0 is NaN), and pow of a negative base returns a meaningless number. So are two of PyTorch: the
sign of a zero from maximum and minimum of 0.0 and -0.0 depends on that place, too, and nextafter of
equal float16 numbers (zeros of either sign) is the second one, where NumPy's is the first.
"""

from __future__ import annotations

from . import formulas
from .model import NO_BOOL, row

#: Engines that refuse quotients and powers of truth values.
_NO_QUOTIENT_OF_BOOL = "torch:b " + NO_BOOL

#: Paddle has kernels only for the integer types of shapes.
_PADDLE_SMALL = "paddle:bu paddle:int8 paddle:int16"

ROWS = (
    row(
        "add",
        "a + b",
        "[[7, 7], [3, 5]]",
        "onnx:Add openvino:Add ncnn:0 mnn:ADD paddle:elementwise_add",
        swap="add",
        variants={
            "refused": NO_BOOL,
        },
        facts="modular",
    ),
    row(
        "subtract",
        "a - b",
        "[[5, 3], [1, 1]]",
        "onnx:Sub openvino:Subtract ncnn:1 mnn:SUB paddle:elementwise_sub",
        reversed_names="ncnn:7,rsub",
        variants={
            "subtract_by_negation": "openvino:int8",
            "refused": "torch:b jax:b " + NO_BOOL,
        },
        facts="modular",
    ),
    row(
        "multiply",
        "a times b",
        "[[6, 10], [2, 6]]",
        "onnx:Mul openvino:Multiply ncnn:2 mnn:MUL paddle:elementwise_mul",
        swap="multiply",
        variants={
            "multiply_by_float32": "mnn:i",
            "multiply_in_16_bits": "openvino/avx2:uint8",
            "unknown": "litert:int8 litert:uint8",
            "refused": NO_BOOL,
        },
        facts="modular",
    ),
    row(
        "divide",
        "a / b, true division",
        "[[6.0, 2.5], [2.0, 1.5]]",
        "onnx:Div openvino:Divide ncnn:3 mnn:REALDIV,DIV paddle:elementwise_div",
        reversed_names="ncnn:8,rdiv",
        variants={
            "truncated_divide": "onnxruntime:iu paddle:iu mnn:i litert:int32",
            "divide_by_float32": "openvino:iu",
            "divide_in_float32": "torch:biu jax:biu",
            "divide_in_small_float": "tensorflow:iu",
            "unknown": "litert:int8 litert:uint8 litert:int16",
            "refused": "paddle:b " + NO_BOOL,
        },
        cost=3,
    ),
    row(
        "floor_divide",
        "a / b, rounded down",
        "[[6, 2], [2, 1]]",
        "ncnn:15 mnn:FLOORDIV paddle:elementwise_floordiv tensorflow:floordiv",
        reversed_names="ncnn:16,rfloor_divide",
        variants={
            "floor_divide_in_int32": "jax:b",
            "unknown": "executorch:f",
            "checked_floor_divide": "torch:iu jax:iu paddle:iu tensorflow:iu mnn:i",
            "floor_of_quotient": "tensorflow:f ncnn:f litert:f",
            "floor_of_float64_quotient": "mnn:f",
            "refused": _NO_QUOTIENT_OF_BOOL,
        },
        formula=formulas.floor_divide,
        cost=3,
    ),
    row(
        "remainder",
        "what floor division leaves: it has the sign of b",
        "[[0, 1], [0, 1]]",
        "onnx:Mod openvino:FloorMod ncnn:17 mnn:FLOORMOD "
        "paddle:elementwise_mod tensorflow:floormod",
        reversed_names="ncnn:18,rremainder",
        variants={
            "remainder_in_int32": "jax:b",
            "checked_remainder": "onnxruntime:iu torch:iu jax:iu paddle:iu tensorflow:iu",
            "checked_fmod": "mnn:i executorch:i",
            "unknown": "executorch:float64",
            "remainder_of_quotient": "openvino:f mnn:f",
            "remainder_by_float32": "openvino:iu",
            "nearest_remainder": "ncnn:f",
            "refused": "onnxruntime:f " + _NO_QUOTIENT_OF_BOOL,
        },
        formula=formulas.remainder,
        cost=3,
    ),
    row(
        "fmod",
        "what truncated division leaves: it has the sign of a",
        "[[0, 1], [0, 1]]",
        "onnx:Mod openvino:Mod ncnn:12 mnn:MOD tensorflow:truncatemod",
        reversed_names="ncnn:13,rfmod",
        variants={
            "fmod_in_int32": "jax:b",
            "checked_fmod": "onnxruntime:iu torch:iu jax:iu tensorflow:i",
            "checked_remainder": "mnn:i",
            "fmod_of_quotient": "openvino:f ncnn:f",
            "fmod_by_float32": "openvino:iu",
            "unknown": "executorch:int64",
            # TruncateMod has kernels only for the longer integers and floats.
            "refused": "tensorflow:u tensorflow:int8 tensorflow:int16 tensorflow:float16 "
            + _NO_QUOTIENT_OF_BOOL,
        },
        formula=formulas.fmod,
        cost=3,
    ),
    row(
        "pow",
        "a to the power of b",
        "[[6, 25], [2, 9]]",
        "onnx:Pow openvino:Power ncnn:6 mnn:POW paddle:elementwise_pow jax:power,pow",
        numpy="power",
        aliases="power",
        reversed_names="ncnn:9,rpow",
        variants={
            "pow_by_float64": "onnxruntime:iu mnn:i",
            "pow_of_zero_is_zero": "paddle:iu",
            "pow_in_int32": "jax:b",
            "pow_by_float32": "openvino:iu",
            "pow_in_16_bits": "openvino/avx2:uint8",
            "integer_pow": "torch:iu",
            "unknown": "executorch:iu",
            "pow_six_bits": "jax:iu",
            "pow_of_first_dtype": "onnxruntime:f",
            "refused": "onnxruntime:int8 onnxruntime:uint8 onnxruntime:int16 onnxruntime:uint16 "
            "onnxruntime:uint32 onnxruntime:uint64 tensorflow:u " + _NO_QUOTIENT_OF_BOOL,
        },
        first_decides="onnxruntime",
        cost=16,
    ),
    row(
        "maximum",
        "The larger of a and b; NaN if either is NaN",
        "[[6, 5], [2, 3]]",
        "onnx:Max openvino:Maximum ncnn:4 mnn:MAXIMUM,MAX_TEMP paddle:elementwise_max",
        swap="maximum",
        variants={
            "larger_or_second": "openvino:f mnn:f litert:f",
            "maximum_by_float32": "mnn:i",
            "refused": "onnxruntime:int16 onnxruntime:uint16 " + NO_BOOL,
        },
        facts="truths ordered",
    ),
    row(
        "minimum",
        "The smaller of a and b; NaN if either is NaN",
        "[[1, 2], [1, 2]]",
        "onnx:Min openvino:Minimum ncnn:5 mnn:MINIMUM,MIN_TEMP paddle:elementwise_min",
        swap="minimum",
        variants={
            "smaller_or_second": "openvino:f mnn:f litert:f",
            "minimum_by_float32": "mnn:i",
            "refused": "onnxruntime:int16 onnxruntime:uint16 " + NO_BOOL,
        },
        facts="truths ordered",
    ),
    row(
        "fmax",
        "The larger of a and b; the other one where one is NaN",
        "[2.0, 1.0]",
        "paddle:elementwise_fmax tensorflow:-",
        args='[1.0, float("nan")], [2.0, 1.0]',
        swap="fmax",
        variants={
            "fmax_by_float32": "paddle:int32",
            "unknown": "paddle:int64",
            "refused": _PADDLE_SMALL,
        },
        facts="truths ordered",
    ),
    row(
        "fmin",
        "The smaller of a and b; the other one where one is NaN",
        "[1.0, 1.0]",
        "paddle:elementwise_fmin tensorflow:-",
        args='[1.0, float("nan")], [2.0, 1.0]',
        swap="fmin",
        variants={
            "fmin_by_float32": "paddle:int32",
            "unknown": "paddle:int64",
            "refused": _PADDLE_SMALL,
        },
        facts="truths ordered",
    ),
    row(
        "heaviside",
        "0 where a is negative, 1 where it is positive, b where it is 0",
        "[0.0, 0.5, 1.0]",
        "paddle:elementwise_heaviside tensorflow:-",
        args="[-2.0, 0.0, 3.0], 0.5",
        variants={
            "heaviside_of_nan_is_zero": "torch:biuf paddle:int32 paddle:int64 paddle:f",
            "heaviside_in_float32": "jax:biu",
            "refused": _PADDLE_SMALL,
        },
        formula=formulas.heaviside,
    ),
    row(
        "copysign",
        "a with the sign of b",
        "[-1.0, 2.0]",
        "paddle:copysign tensorflow:-",
        args="[1.0, -2.0], [-0.0, 3.0]",
        variants={"copysign_in_float32": "torch:biu jax:biu", "unknown": "paddle:biu"},
    ),
    row(
        "nextafter",
        "The float next to a on the way to b",
        "[1.0000000000000002]",
        "paddle:nextafter",
        args="[1.0], [2.0]",
        variants={
            "nextafter_in_float32": "jax:biu",
            "refused": "torch:biu tensorflow:biu tensorflow:float16 paddle:biu",
        },
        facts="width",
    ),
    row(
        "hypot",
        "The length of the hypotenuse over a and b, without overflow",
        "[5.0, 13.0]",
        "tensorflow:-",
        args="[3.0, 5.0], [4.0, 12.0]",
        swap="hypot",
        variants={"hypot_in_float32": "jax:biu", "refused": "torch:biu"},
        cost=10,
    ),
    row(
        "logaddexp2",
        "log2(2**a + 2**b), without overflow",
        "[1.0, 2.0]",
        "tensorflow:-",
        args="[0.0, 1.0], [0.0, 1.0]",
        swap="logaddexp2",
        variants={"logaddexp2_in_float32": "jax:biu", "refused": "torch:biu"},
        cost=16,
    ),
    row(
        "atan2",
        "The angle of the point with height a and width b, in radians",
        "[[0.0, 3.141592653589793], [-0.0, -3.141592653589793]]",
        "ncnn:10 mnn:ATAN2 paddle:atan2 jax:arctan2,atan2",
        args="[[0.0], [-0.0]], [1.0, -1.0]",
        numpy="arctan2",
        aliases="arctan2",
        reversed_names="ncnn:11,ratan2",
        variants={
            "atan2_of_float32": "paddle:iu",
            "atan2_in_float32": "torch:biu jax:biu",
            "refused": "tensorflow:biu mnn:i",
        },
        cost=16,
    ),
    row(
        "logaddexp",
        "log(exp(a) + exp(b)), without overflow",
        "[0.6931471805599453, 1.6931471805599454]",
        "ncnn:14 tensorflow:-",
        args="[0.0, 1.0], [0.0, 1.0]",
        swap="logaddexp",
        variants={
            "logaddexp_in_float32": "jax:biu",
            "refused": "torch:biu",
        },
        cost=16,
    ),
    row(
        "squared_difference",
        "(a - b) squared",
        "[[25, 9], [1, 1]]",
        "openvino:SquaredDifference mnn:SquaredDifference torch:- jax:-",
        numpy="",
        swap="squared_difference",
        variants={
            "squared_difference_by_float32": "mnn:i",
            "square_of_difference": "tensorflow:float16 litert:float16",
            "unknown": "openvino:int8 openvino:uint8",  # 0, whatever the operands are
            "refused": "tensorflow:u tensorflow:int8 tensorflow:int16 " + NO_BOOL,
        },
        formula=formulas.squared_difference,
        facts="modular square",
    ),
    row(
        "clip",
        "x, or the limit that it is beyond; high wins over low, NaN over both",
        "[0, 5, 3]",
        "onnx:Clip openvino:Clamp ncnn:Clip mnn:ReLU6 paddle:clip torch:clamp,clip "
        "tensorflow:clip_by_value",
        args="[-2, 7, 3], 0, 5",
        tensors=3,
        variants={
            "clip_of_nan_is_low": "openvino:f",
            "unknown": "mnn:if paddle:biuf",
            "refused": NO_BOOL + " torch:b onnxruntime:int16 onnxruntime:uint16",
        },
        facts="truths ordered",
    ),
)
