"""Comparisons, logic and bits, and selection by a condition.

MNN's comparisons return int32; no row of `variants` says so.
"""

from __future__ import annotations

from . import formulas
from .model import NO_BOOL, row

#: Engines that refuse logic on any other type.
_BOOL_ALONE = "onnxruntime:iuf openvino:iuf tensorflow:iuf"
#: Engines that refuse to order truth values.
_NO_ORDER_OF_BOOL = "onnxruntime:b tensorflow:b"
#: Engines that refuse bit operations on truth values.
_NO_BITS_OF_BOOL = "onnxruntime:b tensorflow:b"
#: Engines that refuse bit operations on floats.
_NO_BITS_OF_FLOAT = " onnxruntime:f openvino:f torch:f tensorflow:f jax:f"
#: OpenVINO's vector kernels compare only floats; without AVX-512 they compare NaN by IEEE 754.
_BY_FLOAT = "openvino:iu"
_AS_IEEE = "openvino/avx2:f"

ROWS = (
    row(
        "equal",
        "Whether a equals b",
        "[[False, False], [False, False]]",
        "onnx:Equal openvino:Equal mnn:EQUAL paddle:equal torch:eq",
        swap="equal",
        variants={
            "equal_of_bits": "mnn:f",
            "equal_in_float32": _BY_FLOAT,
        },
        facts="comparison truths modular",
    ),
    row(
        "not_equal",
        "Whether a differs from b",
        "[[True, True], [True, True]]",
        "openvino:NotEqual mnn:NOTEQUAL paddle:not_equal",
        swap="not_equal",
        variants={"not_equal_in_float32": _BY_FLOAT, "unknown": "litert:int16"},
        facts="comparison truths modular",
    ),
    row(
        "less",
        "Whether a is less than b",
        "[[False, False], [False, False]]",
        "onnx:Less openvino:Less mnn:LESS paddle:less_than",
        reversed_names="tosa:GREATER",
        swap="greater",
        variants={
            "less_of_bits": "mnn:f",
            "less_in_float32": _BY_FLOAT,
            "refused": _NO_ORDER_OF_BOOL,
        },
        facts="comparison truths ordered",
    ),
    row(
        "less_equal",
        "Whether a is at most b",
        "[[False, False], [False, False]]",
        "onnx:LessOrEqual openvino:LessEqual mnn:LESS_EQUAL paddle:less_equal",
        reversed_names="tosa:GREATER_EQUAL",
        swap="greater_equal",
        variants={"less_equal_in_float32": _BY_FLOAT, "refused": _NO_ORDER_OF_BOOL},
        facts="comparison truths ordered",
    ),
    row(
        "greater",
        "Whether a is greater than b",
        "[[True, True], [True, True]]",
        "onnx:Greater openvino:Greater mnn:GREATER paddle:greater_than",
        swap="less",
        variants={
            "not_less_equal": "openvino:f",
            "numpy": _AS_IEEE,
            "greater_in_float32": _BY_FLOAT,
            "refused": _NO_ORDER_OF_BOOL,
        },
        facts="comparison truths ordered",
    ),
    row(
        "greater_equal",
        "Whether a is at least b",
        "[[True, True], [True, True]]",
        "onnx:GreaterOrEqual openvino:GreaterEqual mnn:GREATER_EQUAL paddle:greater_equal",
        swap="less_equal",
        variants={
            "not_less": "openvino:f",
            "numpy": _AS_IEEE,
            "greater_equal_in_float32": _BY_FLOAT,
            "refused": _NO_ORDER_OF_BOOL,
        },
        facts="comparison truths ordered",
    ),
    row(
        "logical_and",
        "Whether a and b are both true",
        "[[True, True], [True, True]]",
        "onnx:And openvino:LogicalAnd paddle:logical_and",
        swap="logical_and",
        variants={
            "refused": _BOOL_ALONE,
        },
        facts="logical truths modular",
    ),
    row(
        "logical_or",
        "Whether a or b is true",
        "[[True, True], [True, True]]",
        "onnx:Or openvino:LogicalOr mnn:LOGICALOR paddle:logical_or",
        swap="logical_or",
        variants={
            "refused": _BOOL_ALONE + " mnn:f",
        },
        facts="logical truths modular",
    ),
    row(
        "logical_xor",
        "Whether one of a and b is true, not both",
        "[[False, False], [False, False]]",
        "onnx:Xor openvino:LogicalXor mnn:LOGICALXOR paddle:logical_xor",
        swap="logical_xor",
        variants={
            "refused": _BOOL_ALONE,
        },
        facts="logical truths modular",
    ),
    row(
        "bitwise_and",
        "The bits set in both a and b",
        "[[0, 0], [0, 2]]",
        "onnx:BitwiseAnd openvino:BitwiseAnd mnn:BITWISE_AND paddle:bitwise_and",
        swap="bitwise_and",
        variants={
            "refused": _NO_BITS_OF_BOOL + _NO_BITS_OF_FLOAT + " mnn:f",
        },
        facts="truths modular",
    ),
    row(
        "bitwise_or",
        "The bits set in a or b",
        "[[7, 7], [3, 3]]",
        "onnx:BitwiseOr openvino:BitwiseOr mnn:BITWISE_OR paddle:bitwise_or",
        swap="bitwise_or",
        variants={
            "refused": _NO_BITS_OF_BOOL + _NO_BITS_OF_FLOAT + " mnn:f",
        },
        facts="truths modular",
    ),
    row(
        "bitwise_xor",
        "The bits set in one of a and b, not both",
        "[[7, 7], [3, 1]]",
        "onnx:BitwiseXor openvino:BitwiseXor mnn:BITWISE_XOR paddle:bitwise_xor",
        swap="bitwise_xor",
        variants={
            "refused": _NO_BITS_OF_BOOL + _NO_BITS_OF_FLOAT + " mnn:f",
        },
        facts="truths modular",
    ),
    row(
        "bitwise_left_shift",
        "a shifted left by b bits",
        "[[12, 20], [4, 12]]",
        "onnx:BitShift openvino:BitwiseLeftShift mnn:LEFTSHIFT paddle:bitwise_left_shift "
        "tensorflow:left_shift jax:left_shift,bitwise_left_shift",
        numpy="left_shift",
        aliases="left_shift",
        variants={
            "left_shift_in_int32": "jax:b",
            "clamped_left_shift": "tensorflow:iu",
            "wrapped_left_shift": "openvino:iu",
            "refused": "onnxruntime:i " + NO_BOOL + " torch:b" + _NO_BITS_OF_FLOAT,
        },
        formula=formulas.bitwise_left_shift,
        facts="truths modular",
    ),
    row(
        "bitwise_right_shift",
        "a shifted right by b bits, keeping its sign",
        "[[3, 1], [1, 0]]",
        "onnx:BitShift openvino:BitwiseRightShift mnn:RIGHTSHIFT paddle:bitwise_right_shift "
        "tensorflow:right_shift jax:right_shift,bitwise_right_shift",
        numpy="right_shift",
        aliases="right_shift",
        variants={
            "right_shift_in_int32": "jax:b",
            "clamped_right_shift": "tensorflow:iu litert:iu",
            "wrapped_right_shift": "openvino:iu",
            "refused": "onnxruntime:i " + NO_BOOL + " torch:b" + _NO_BITS_OF_FLOAT,
        },
        formula=formulas.bitwise_right_shift,
        facts="truths",
    ),
    row(
        "where",
        "a where c is true, b elsewhere",
        "[[6, 2], [2, 2]]",
        "onnx:Where openvino:Select mnn:Select paddle:where",
        args="[[True, False], [True, False]], [[6, 5], [2, 3]], [1, 2]",
        tensors=3,
        facts="truths modular",
        conditions=1,
    ),
)
