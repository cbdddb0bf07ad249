"""Rows of :mod:`.lowering`: reductions, products, and ops that slide a window over an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, NoEquivalent, table
from .words import FIRST, LAST, Words

# Reductions and products.


def _reduced(op: str) -> Callable[[Words], None]:
    """The axes are an operand; no axes reduce nothing."""

    def build(words: Words) -> None:
        keep, axes = int(words.parameters.get("keep_dims", False)), words.stored(1)
        if axes.shape == ():
            axes = words.op("Reshape", words.as_int64(axes), words.ints(1))
        data = words.input(0)
        truths = words.node.op in ("REDUCE_ANY", "REDUCE_ALL")
        if truths:
            data = words.op("Cast", data, to=ELEMENT_TYPES["int32"])
        options: dict[str, Any] = {"keepdims": keep, "noop_with_empty_axes": 1}
        if truths:
            result = words.op(op, data, words.as_int64(axes), **options)
            words.last("Cast", result, to=ELEMENT_TYPES["bool"])
            return
        words.last(op, data, words.as_int64(axes), **options)
        return

    return build


def _picked(op: str) -> Callable[[Words], None]:
    def build(words: Words) -> None:
        index = words.op(op, words.input(0), axis=words.one(1), keepdims=0)
        words.last("Cast", index, to=words.out_type())
        return

    return build


def _product(words: Words) -> None:
    parts = []
    for position, flag in enumerate(("adj_x", "adj_y")):
        value = words.input(position)
        if words.parameters.get(flag):
            rank = words.rank(position)
            value = words.op("Transpose", value, perm=(*range(rank - 2), rank - 1, rank - 2))
        parts.append(value)
    words.last("MatMul", *parts)


def _fully_connected(words: Words) -> None:
    """Rows by the transposed weights; the data become rows unless their axes are kept."""
    data, weights, bias = words.input(0), words.input(1), words.optional(2)
    shape = words.stored(1).shape
    if words.parameters.get("weights_format") or shape is None or len(shape) != 2:
        raise NoEquivalent
    if not words.parameters.get("keep_num_dims"):
        depth = shape[1]
        if not isinstance(depth, int):
            raise NoEquivalent
        if words.rank() != 2 or words.stored(0).shape != (None, depth):
            data = words.op("Reshape", data, words.ints(-1, depth), allowzero=0)
    turned = words.op("Transpose", weights, perm=(1, 0))
    if bias is None:
        words.activated("MatMul", data, turned)
        return
    words.activated("Add", words.op("MatMul", data, turned), bias)


# Windows. Channels are last: each op is put between two transposes.


def _image(words: Words, build: Callable[[Value], Value]) -> None:
    """An op on the image with its channels first, then the activation."""
    if words.rank() != 4:
        raise NoEquivalent
    result = build(words.op("Transpose", words.input(0), perm=FIRST))
    words.activated("Transpose", result, perm=LAST)


def _window(words: Words, *size: int) -> dict[str, Any]:
    """Window, strides and padding as attributes of ONNX."""
    parameters = words.parameters
    strides = parameters.get("stride_h", 0), parameters.get("stride_w", 0)
    dilations = parameters.get("dilation_h_factor", 1), parameters.get("dilation_w_factor", 1)
    if min((*size, *strides, *dilations)) < 1:
        raise NoEquivalent
    padding = {"SAME": "SAME_UPPER", "VALID": "VALID"}.get(str(parameters.get("padding")))
    if padding is None:
        raise NoEquivalent
    return {
        "kernel_shape": size,
        "strides": strides,
        "auto_pad": padding,
        **({"dilations": dilations} if dilations != (1, 1) else {}),
    }


def _convolution(words: Words) -> None:
    """Weights (output, rows, columns, input of a group)."""
    count, rows, columns, each = _four(words, 1)
    shape = words.stored(0).shape
    channels = shape[3] if shape is not None and len(shape) == 4 else None
    group = channels // each if isinstance(channels, int) and each else 1
    if group < 1 or count % group:
        raise NoEquivalent
    weights = words.op("Transpose", words.input(1), perm=FIRST)
    attributes = _window(words, rows, columns)
    bias = words.optional(2)
    _image(words, lambda x: words.op("Conv", x, weights, bias, group=group, **attributes))


def _depthwise(words: Words) -> None:
    """Weights (1, rows, columns, output): a group for each input channel."""
    one, rows, columns, count = _four(words, 1)
    shape = words.stored(0).shape
    group = shape[3] if shape is not None and len(shape) == 4 else None
    if one != 1 or not isinstance(group, int) or group < 1 or count % group:
        raise NoEquivalent
    weights = words.op("Transpose", words.input(1), perm=(3, 0, 1, 2))
    attributes = _window(words, rows, columns)
    bias = words.optional(2)
    _image(words, lambda x: words.op("Conv", x, weights, bias, group=group, **attributes))


def _four(words: Words, position: int) -> tuple[int, int, int, int]:
    sizes = words.known_sizes(position)
    if len(sizes) != 4:
        raise NoEquivalent
    return sizes[0], sizes[1], sizes[2], sizes[3]


def _transposed(words: Words) -> None:
    """TRANSPOSE_CONV: the size of the result is an operand, and decides the padding."""
    target, (count, rows, columns, _) = words.content(0), _four(words, 1)
    image = words.known_sizes(2)
    strides = words.parameters.get("stride_h", 0), words.parameters.get("stride_w", 0)
    if len(target) != 4 or len(image) != 4 or min(strides) < 1 or target[3] != count:
        raise NoEquivalent
    same = words.parameters.get("padding") == "SAME"
    begins, ends, more = [], [], []
    for k, size in enumerate((rows, columns)):
        spread = (image[k + 1] - 1) * strides[k] + size
        total = spread - target[k + 1]
        if not same and total > 0:
            raise NoEquivalent
        begins.append(max(total, 0) // 2)
        ends.append(max(total, 0) - begins[-1])
        more.append(max(-total, 0))
    if any(extra >= stride for extra, stride in zip(more, strides, strict=True)):
        raise NoEquivalent
    weights = words.op("Transpose", words.input(1), perm=(3, 0, 1, 2))
    data = words.op("Transpose", words.input(2), perm=FIRST)
    result = words.op(
        "ConvTranspose",
        data,
        weights,
        words.optional(3),
        kernel_shape=(rows, columns),
        strides=strides,
        pads=(*begins, *ends),
        output_padding=tuple(more),
    )
    words.activated("Transpose", result, perm=LAST)


def _pooled(op: str) -> Callable[[Words], None]:
    """Pools; an average does not count the padding."""

    def build(words: Words) -> None:
        size = words.parameters.get("filter_height", 0), words.parameters.get("filter_width", 0)
        attributes = _window(words, *size)

        def pool(x: Value) -> Value:
            if op == "MaxPool":
                return words.op(op, x, **attributes)
            if words.node.op == "L2_POOL_2D":
                square = words.op("AveragePool", words.op("Mul", x, x), **attributes)
                return words.op("Sqrt", square)
            return words.op(op, x, **attributes)

        _image(words, pool)
        return

    return build


def _resized(mode: str) -> Callable[[Words], None]:
    """Axes 1 and 2 get the sizes of an operand."""

    def build(words: Words) -> None:
        corners, half = (
            bool(words.parameters.get(name)) for name in ("align_corners", "half_pixel_centers")
        )
        place = "align_corners" if corners else "half_pixel" if half else "asymmetric"
        if corners and half:
            raise NoEquivalent
        attributes: dict[str, Any] = {"coordinate_transformation_mode": place, "mode": mode}
        if mode == "nearest":
            attributes["nearest_mode"] = "floor" if place == "asymmetric" else "round_prefer_ceil"
        sizes = words.as_int64(words.stored(1))
        words.last("Resize", words.input(0), None, None, sizes, axes=(1, 2), **attributes)
        return

    return build


def _local_norm(words: Words) -> None:
    radius = words.parameters.get("radius", 0)
    size = 2 * radius + 1
    attributes = {
        "size": size,
        "alpha": words.parameters.get("alpha", 0.0) * size,
        "beta": words.parameters.get("beta", 0.0),
        "bias": words.parameters.get("bias", 0.0),
    }
    if radius < 0:
        raise NoEquivalent
    _image(words, lambda x: words.op("LRN", x, **attributes))


#: Builtin op to row.
ROWS = table(
    {
        "ARG_MAX": _picked("ArgMax"),
        "ARG_MIN": _picked("ArgMin"),
        "AVERAGE_POOL_2D": _pooled("AveragePool"),
        "BATCH_MATMUL": _product,
        "CONV_2D": _convolution,
        "DEPTHWISE_CONV_2D": _depthwise,
        "FULLY_CONNECTED": _fully_connected,
        "L2_POOL_2D": _pooled("AveragePool"),
        "LOCAL_RESPONSE_NORMALIZATION": _local_norm,
        "MAX_POOL_2D": _pooled("MaxPool"),
        "MEAN": _reduced("ReduceMean"),
        "REDUCE_ALL": _reduced("ReduceMin"),
        "REDUCE_ANY": _reduced("ReduceMax"),
        "REDUCE_MAX": _reduced("ReduceMax"),
        "REDUCE_MIN": _reduced("ReduceMin"),
        "REDUCE_PROD": _reduced("ReduceProd"),
        "RESIZE_BILINEAR": _resized("linear"),
        "RESIZE_NEAREST_NEIGHBOR": _resized("nearest"),
        "SUM": _reduced("ReduceSum"),
        "TRANSPOSE_CONV": _transposed,
    }
)
