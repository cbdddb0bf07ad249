"""Ops of one operand without parameters."""

from __future__ import annotations

import functools

from .model import NO_BOOL, row

_row = functools.partial(row, tensors=1)

#: OpenVINO rounds integers of more than 24 bits in float32; how is unknown.
_OPENVINO_LARGE = "openvino:uint32 openvino:int64 openvino:uint64"
#: Paddle has kernels only for the integer types of shapes.
_PADDLE_SMALL = "paddle:bu paddle:int8 paddle:int16"
_NO_BOOL_OF_ANY = NO_BOOL + " torch:b"
_FLOATS_ALONE = "onnxruntime:biu openvino:biu tensorflow:biu"


def _floats(
    name: str,
    *,
    jax: bool = True,
    mnn: bool = True,
    paddle: bool = False,
    refused: str = "",
    unknown: str = "",
    **more: str,
) -> dict[str, str]:
    """Variants of a function of floats: each engine's result for integers, and `more`.

    PyTorch, JAX, MNN and (for some) Paddle compute integers in float32. OpenVINO's way is unknown.
    The others refuse integers.
    """
    dtypes = "torch:biu" + " jax:biu" * jax + " mnn:i" * mnn + " paddle:int32 paddle:int64" * paddle
    refusing = f"onnxruntime:biu openvino:b tensorflow:biu {refused}" + " jax:biu" * (not jax)
    return {
        f"{name}_in_float32": dtypes,
        "unknown": f"openvino:iu {unknown}",
        "refused": f"{refusing} {_PADDLE_SMALL if paddle else 'paddle:biu'}",
        **more,
    }


ROWS = (
    _row(
        "negative",
        "-x; integers wrap around",
        "[-1, 2]",
        "onnx:Neg openvino:Negative ncnn:UnaryOp.1 mnn:NEG",
        args="[1, -2]",
        variants={"refused": _NO_BOOL_OF_ANY + " jax:b onnxruntime:u openvino:u tensorflow:u"},
    ),
    _row(
        "positive",
        "x itself",
        "[1, -2]",
        "tensorflow:-",
        args="[1, -2]",
        variants={"refused": "torch:b", "unknown": "jax:b"},
    ),
    _row(
        "abs",
        "x without its sign; the smallest integer stays what it is",
        "[1, 2]",
        "onnx:Abs openvino:Abs ncnn:UnaryOp.0,AbsVal mnn:ABS paddle:abs",
        args="[1, -2]",
        numpy="absolute",
        aliases="absolute",
        variants={
            "abs_by_float32": "mnn:i",
            "unknown": "mnn:f",
            "refused": _NO_BOOL_OF_ANY + " tensorflow:u " + _PADDLE_SMALL,
        },
    ),
    _row(
        "sign",
        "-1, 0 or 1 by the sign of x; NaN stays",
        "[1.0, -1.0, 0.0]",
        "onnx:Sign openvino:Sign ncnn:UnaryOp.20 mnn:SIGN paddle:sign",
        args="[5.0, -0.5, 0.0]",
        variants={
            "sign_of_nan_is_zero": "onnxruntime:float16 torch:f mnn:f",
            "unknown": "torch:b",
            "refused": NO_BOOL + " jax:b paddle:b",
        },
    ),
    _row(
        "sqrt",
        "The square root of x",
        "[2.0, 1.5]",
        "onnx:Sqrt openvino:Sqrt ncnn:UnaryOp.5 mnn:SQRT paddle:sqrt",
        args="[4.0, 2.25]",
        variants=_floats("sqrt", sqrt_nan_at_infinity="paddle:float32"),
    ),
    _row(
        "rsqrt",
        "1 / sqrt(x)",
        "[0.5, 2.0]",
        "ncnn:UnaryOp.6 mnn:RSQRT paddle:rsqrt",
        args="[4.0, 0.25]",
        numpy="",
        variants=_floats("rsqrt", jax=False, rsqrt_nan_at_zero="ncnn:f"),
    ),
    _row(
        "reciprocal",
        "1 / x, true division",
        "[0.25, 2.0]",
        "onnx:Reciprocal ncnn:UnaryOp.15 mnn:RECIPROCAL paddle:reciprocal",
        args="[4.0, 0.5]",
        numpy="",
        variants=_floats("reciprocal", reciprocal_nan_at_zero="ncnn:f"),
    ),
    _row(
        "square",
        "x times x",
        "[9, 4]",
        "ncnn:UnaryOp.4 mnn:SQUARE paddle:square",
        args="[3, -2]",
        variants={
            "square_in_int64": "torch:b",
            "square_in_int32": "jax:b",
            "square_in_float32": "mnn:i",
            "refused": "tensorflow:b " + _PADDLE_SMALL,
        },
    ),
    _row(
        "exp",
        "e to the power of x",
        "[1.0, inf]",
        "onnx:Exp openvino:Exp ncnn:UnaryOp.7 mnn:EXP paddle:exp",
        args="[0.0, 1000.0]",
        variants=_floats(
            "exp", paddle=True, mnn=False, unknown="mnn:if", exp_of_nan_is_infinity="openvino:f"
        ),
    ),
    _row(
        "expm1",
        "exp(x) - 1, exact near 0",
        "[0.0, 1e-20]",
        "ncnn:UnaryOp.21 mnn:EXPM1 paddle:expm1",
        args="[0.0, 1e-20]",
        variants=_floats("expm1", paddle=True, mnn=False, unknown="mnn:if"),
    ),
    _row(
        "log",
        "The natural logarithm of x",
        "[0.0, -inf]",
        "onnx:Log openvino:Log ncnn:UnaryOp.8 mnn:LOG paddle:log",
        args="[1.0, 0.0]",
        variants=_floats("log", paddle=True, log_nan_at_zero="ncnn:f"),
    ),
    _row(
        "log1p",
        "log(1 + x), exact near 0",
        "[0.0, 1e-20]",
        "ncnn:UnaryOp.27 mnn:LOG1P paddle:log1p",
        args="[0.0, 1e-20]",
        variants=_floats("log1p", paddle=True, unknown="ncnn:f"),
    ),
    _row(
        "log2",
        "The logarithm of x to the base 2",
        "[0.0, -inf]",
        "paddle:log2 tensorflow:-",
        args="[1.0, 0.0]",
        variants=_floats("log2", paddle=True, mnn=False),
    ),
    _row(
        "log10",
        "The logarithm of x to the base 10",
        "[0.0, -inf]",
        "ncnn:UnaryOp.17 paddle:log10 tensorflow:-",
        args="[1.0, 0.0]",
        variants=_floats("log10", paddle=True, mnn=False, log10_nan_at_zero="ncnn:f"),
    ),
    _row(
        "sin",
        "The sine of x radians",
        "[0.0, -0.0]",
        "onnx:Sin openvino:Sin ncnn:UnaryOp.9 mnn:SIN paddle:sin",
        args="[0.0, -0.0]",
        variants=_floats("sin"),
    ),
    _row(
        "cos",
        "The cosine of x radians",
        "[1.0, 1.0]",
        "onnx:Cos openvino:Cos ncnn:UnaryOp.10 mnn:COS paddle:cos",
        args="[0.0, -0.0]",
        variants=_floats("cos"),
    ),
    _row(
        "tan",
        "The tangent of x radians",
        "[0.0, -0.0]",
        "onnx:Tan openvino:Tan ncnn:UnaryOp.11 mnn:TAN paddle:tan",
        args="[0.0, -0.0]",
        variants=_floats("tan", refused="onnxruntime:float64"),
    ),
    _row(
        "asin",
        "The angle in radians whose sine is x",
        "[0.0, nan]",
        "onnx:Asin openvino:Asin ncnn:UnaryOp.12 mnn:ASIN paddle:asin",
        args="[0.0, 2.0]",
        numpy="arcsin",
        aliases="arcsin",
        variants=_floats("asin", refused="onnxruntime:float64"),
    ),
    _row(
        "acos",
        "The angle in radians whose cosine is x",
        "[0.0, nan]",
        "onnx:Acos openvino:Acos ncnn:UnaryOp.13 mnn:ACOS paddle:acos",
        args="[1.0, 2.0]",
        numpy="arccos",
        aliases="arccos",
        variants=_floats("acos", refused="onnxruntime:float64"),
    ),
    _row(
        "atan",
        "The angle in radians whose tangent is x",
        "[0.0, -0.0]",
        "onnx:Atan openvino:Atan ncnn:UnaryOp.14 mnn:ATAN paddle:atan",
        args="[0.0, -0.0]",
        numpy="arctan",
        aliases="arctan",
        variants=_floats("atan", refused="onnxruntime:float64"),
    ),
    _row(
        "sinh",
        "The hyperbolic sine of x",
        "[0.0, inf]",
        "onnx:Sinh openvino:Sinh ncnn:UnaryOp.22 mnn:SINH paddle:sinh",
        args="[0.0, 1000.0]",
        variants=_floats("sinh", refused="onnxruntime:float64"),
    ),
    _row(
        "cosh",
        "The hyperbolic cosine of x",
        "[1.0, inf]",
        "onnx:Cosh openvino:Cosh ncnn:UnaryOp.24 mnn:COSH paddle:cosh",
        args="[0.0, 1000.0]",
        variants=_floats("cosh", refused="onnxruntime:float64"),
    ),
    _row(
        "tanh",
        "The hyperbolic tangent of x",
        "[0.0, 1.0]",
        "onnx:Tanh openvino:Tanh ncnn:UnaryOp.16,TanH mnn:TANH paddle:tanh",
        args="[0.0, 100.0]",
        variants=_floats("tanh", unknown="mnn:f"),
    ),
    _row(
        "asinh",
        "The inverse of sinh",
        "[0.0, -0.0]",
        "onnx:Asinh openvino:Asinh ncnn:UnaryOp.23 mnn:ASINH paddle:asinh",
        args="[0.0, -0.0]",
        numpy="arcsinh",
        aliases="arcsinh",
        variants=_floats("asinh", refused="onnxruntime:float64"),
    ),
    _row(
        "acosh",
        "The inverse of cosh",
        "[0.0, nan]",
        "onnx:Acosh openvino:Acosh ncnn:UnaryOp.25 mnn:ACOSH paddle:acosh",
        args="[1.0, 0.0]",
        numpy="arccosh",
        aliases="arccosh",
        variants=_floats("acosh", refused="onnxruntime:float64", unknown="ncnn:f"),
    ),
    _row(
        "atanh",
        "The inverse of tanh",
        "[0.0, inf]",
        "onnx:Atanh openvino:Atanh ncnn:UnaryOp.26 mnn:ATANH paddle:atanh",
        args="[0.0, 1.0]",
        numpy="arctanh",
        aliases="arctanh",
        variants=_floats("atanh", refused="onnxruntime:float64", unknown="ncnn:f"),
    ),
    _row(
        "sigmoid",
        "1 / (1 + exp(-x)), without overflow",
        "[0.5, 1.0]",
        "onnx:Sigmoid openvino:Sigmoid ncnn:Sigmoid mnn:SIGMOID paddle:sigmoid",
        args="[0.0, 1000.0]",
        numpy="",
        aliases="logistic",
        variants=_floats("sigmoid", jax=False, unknown="mnn:f"),
    ),
    _row(
        "erf",
        "The error function of x",
        "[0.0, 1.0]",
        "onnx:Erf openvino:Erf ncnn:Erf mnn:ERF paddle:erf",
        args="[0.0, 100.0]",
        numpy="",
        variants=_floats(
            "erf",
            jax=False,
            refused="onnxruntime:float64",
            erf_nan_at_infinity="tensorflow:float64",
        ),
    ),
    _row(
        "floor",
        "The largest whole number that is not above x",
        "[1.0, -2.0]",
        "onnx:Floor openvino:Floor ncnn:UnaryOp.2 mnn:FLOOR paddle:floor",
        args="[1.5, -1.5]",
        variants={
            "floor_by_float32": "openvino:int32",
            "floor_in_float32": "mnn:i",
            "unknown": _OPENVINO_LARGE,
            "refused": "onnxruntime:biu openvino:b torch:b tensorflow:biu paddle:b",
        },
    ),
    _row(
        "ceil",
        "The smallest whole number that is not below x",
        "[2.0, -1.0]",
        "onnx:Ceil openvino:Ceiling ncnn:UnaryOp.3 mnn:CEIL paddle:ceil",
        args="[1.5, -1.5]",
        variants={
            "ceil_by_float32": "openvino:int32",
            "ceil_in_float32": "mnn:i",
            "unknown": _OPENVINO_LARGE,
            "refused": "onnxruntime:biu openvino:b torch:b tensorflow:biu paddle:b",
        },
    ),
    _row(
        "round",
        "The nearest whole number; a half goes to the even one",
        "[0.0, 2.0, -3.0]",
        "onnx:Round openvino:Round ncnn:UnaryOp.18 mnn:ROUND paddle:round",
        args="[0.5, 1.5, -2.6]",
        variants={
            "round_by_float32": "openvino:int32",
            "round_in_float32": "mnn:i",
            "round_half_away": "mnn:f",
            "unknown": "openvino:b " + _OPENVINO_LARGE,
            "refused": "onnxruntime:biu torch:b jax:b tensorflow:b " + _PADDLE_SMALL,
        },
    ),
    _row(
        "trunc",
        "x without its fraction",
        "[1.0, -1.0]",
        "ncnn:UnaryOp.19 paddle:trunc tensorflow:-",
        args="[1.5, -1.5]",
        variants={"unknown": "paddle:int64", "refused": "torch:b " + _PADDLE_SMALL},
    ),
    _row(
        "isnan",
        "Whether x is NaN",
        "[False, True]",
        "onnx:IsNaN openvino:IsNaN paddle:isnan_v2 tensorflow:is_nan",
        args='[1.0, float("nan")]',
        variants={"refused": _FLOATS_ALONE + " " + _PADDLE_SMALL},
    ),
    _row(
        "isinf",
        "Whether x is infinite",
        "[False, True]",
        "onnx:IsInf openvino:IsInf paddle:isinf_v2 tensorflow:is_inf",
        args='[1.0, float("inf")]',
        variants={"refused": _FLOATS_ALONE + " paddle:b"},
    ),
    _row(
        "isfinite",
        "Whether x is neither infinite nor NaN",
        "[True, False]",
        "openvino:IsFinite paddle:isfinite_v2 tensorflow:is_finite",
        args='[1.0, float("inf")]',
        variants={"refused": _FLOATS_ALONE + " " + _PADDLE_SMALL},
    ),
    _row(
        "logical_not",
        "Whether x is false",
        "[False, True]",
        "onnx:Not openvino:LogicalNot paddle:logical_not",
        args="[True, False]",
        variants={"unknown": "openvino:iuf", "refused": "onnxruntime:iuf tensorflow:iuf paddle:u"},
    ),
    _row(
        "bitwise_invert",
        "x with every bit turned over; of truth values their negation",
        "[-1, -6]",
        "onnx:BitwiseNot openvino:BitwiseNot paddle:bitwise_not torch:bitwise_not "
        "tensorflow:invert jax:invert,bitwise_invert",
        args="[0, 5]",
        numpy="invert",
        aliases="bitwise_not invert",
        variants={"refused": "onnxruntime:b tensorflow:b"},
    ),
    _row(
        "cast",
        "x in another dtype; floats lose their fraction, stop at the ends of an integer's range, "
        "and NaN is 0",
        "[-128, 2, 0]",
        "onnx:Cast openvino:Convert ncnn:Cast mnn:Cast paddle:cast torch:- tensorflow:cast jax:-",
        args='[-300.0, 2.7, float("nan")], "int8"',
        numpy="",
    ),
)
