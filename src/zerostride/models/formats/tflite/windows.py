"""Rows of :mod:`.lowering`: reductions, products, and ops that slide a window over an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.graph import Value
from ..lowering import ELEMENT_TYPES, NoEquivalent, table
from .node_writer import FIRST, LAST, OperatorWriter

# Reductions and products.


def _reduced(op: str) -> Callable[[OperatorWriter], None]:
    """The axes are an operand; no axes reduce nothing."""

    def build(writer: OperatorWriter) -> None:
        keep, axes = int(writer.parameters.get("keep_dims", False)), writer.stored(1)
        if axes.shape == ():
            axes = writer.op("Reshape", writer.as_int64(axes), writer.ints(1))
        data = writer.input(0)
        truths = writer.node.op in ("REDUCE_ANY", "REDUCE_ALL")
        if truths:
            data = writer.op("Cast", data, to=ELEMENT_TYPES["int32"])
        options: dict[str, Any] = {"keepdims": keep, "noop_with_empty_axes": 1}
        if truths:
            result = writer.op(op, data, writer.as_int64(axes), **options)
            writer.last("Cast", result, to=ELEMENT_TYPES["bool"])
            return
        writer.last(op, data, writer.as_int64(axes), **options)
        return

    return build


def _picked(op: str) -> Callable[[OperatorWriter], None]:
    def build(writer: OperatorWriter) -> None:
        index = writer.op(op, writer.input(0), axis=writer.one(1), keepdims=0)
        writer.last("Cast", index, to=writer.out_type())
        return

    return build


def _product(writer: OperatorWriter) -> None:
    parts = []
    for position, flag in enumerate(("adj_x", "adj_y")):
        value = writer.input(position)
        if writer.parameters.get(flag):
            rank = writer.rank(position)
            value = writer.op("Transpose", value, perm=(*range(rank - 2), rank - 1, rank - 2))
        parts.append(value)
    writer.last("MatMul", *parts)


def _fully_connected(writer: OperatorWriter) -> None:
    """Rows by the transposed weights; the data become rows unless their axes are kept."""
    data, weights, bias = writer.input(0), writer.input(1), writer.optional(2)
    shape = writer.stored(1).shape
    if writer.parameters.get("weights_format") or shape is None or len(shape) != 2:
        raise NoEquivalent
    if not writer.parameters.get("keep_num_dims"):
        depth = shape[1]
        if not isinstance(depth, int):
            raise NoEquivalent
        if writer.rank() != 2 or writer.stored(0).shape != (None, depth):
            data = writer.op("Reshape", data, writer.ints(-1, depth), allowzero=0)
    turned = writer.op("Transpose", weights, perm=(1, 0))
    if bias is None:
        writer.activated("MatMul", data, turned)
        return
    writer.activated("Add", writer.op("MatMul", data, turned), bias)


# Windows. Channels are last: each op is put between two transposes.


def _image(writer: OperatorWriter, build: Callable[[Value], Value]) -> None:
    """An op on the image with its channels first, then the activation."""
    if writer.rank() != 4:
        raise NoEquivalent
    result = build(writer.op("Transpose", writer.input(0), perm=FIRST))
    writer.activated("Transpose", result, perm=LAST)


def _window(writer: OperatorWriter, *size: int) -> dict[str, Any]:
    """Window, strides and padding as attributes of ONNX."""
    parameters = writer.parameters
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


def _convolution(writer: OperatorWriter) -> None:
    """Weights (output, rows, columns, input of a group)."""
    count, rows, columns, each = _four(writer, 1)
    shape = writer.stored(0).shape
    channels = shape[3] if shape is not None and len(shape) == 4 else None
    group = channels // each if isinstance(channels, int) and each else 1
    if group < 1 or count % group:
        raise NoEquivalent
    weights = writer.op("Transpose", writer.input(1), perm=FIRST)
    attributes = _window(writer, rows, columns)
    bias = writer.optional(2)
    _image(writer, lambda x: writer.op("Conv", x, weights, bias, group=group, **attributes))


def _depthwise(writer: OperatorWriter) -> None:
    """Weights (1, rows, columns, output): a group for each input channel."""
    one, rows, columns, count = _four(writer, 1)
    shape = writer.stored(0).shape
    group = shape[3] if shape is not None and len(shape) == 4 else None
    if one != 1 or not isinstance(group, int) or group < 1 or count % group:
        raise NoEquivalent
    weights = writer.op("Transpose", writer.input(1), perm=(3, 0, 1, 2))
    attributes = _window(writer, rows, columns)
    bias = writer.optional(2)
    _image(writer, lambda x: writer.op("Conv", x, weights, bias, group=group, **attributes))


def _four(writer: OperatorWriter, position: int) -> tuple[int, int, int, int]:
    sizes = writer.known_sizes(position)
    if len(sizes) != 4:
        raise NoEquivalent
    return sizes[0], sizes[1], sizes[2], sizes[3]


def _transposed(writer: OperatorWriter) -> None:
    """TRANSPOSE_CONV: the size of the result is an operand, and decides the padding."""
    target, (count, rows, columns, _) = writer.content(0), _four(writer, 1)
    image = writer.known_sizes(2)
    strides = writer.parameters.get("stride_h", 0), writer.parameters.get("stride_w", 0)
    if len(target) != 4 or len(image) != 4 or min(strides) < 1 or target[3] != count:
        raise NoEquivalent
    same = writer.parameters.get("padding") == "SAME"
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
    weights = writer.op("Transpose", writer.input(1), perm=(3, 0, 1, 2))
    data = writer.op("Transpose", writer.input(2), perm=FIRST)
    result = writer.op(
        "ConvTranspose",
        data,
        weights,
        writer.optional(3),
        kernel_shape=(rows, columns),
        strides=strides,
        pads=(*begins, *ends),
        output_padding=tuple(more),
    )
    writer.activated("Transpose", result, perm=LAST)


def _pooled(op: str) -> Callable[[OperatorWriter], None]:
    """Pools; an average does not count the padding."""

    def build(writer: OperatorWriter) -> None:
        size = writer.parameters.get("filter_height", 0), writer.parameters.get("filter_width", 0)
        attributes = _window(writer, *size)

        def pool(x: Value) -> Value:
            if op == "MaxPool":
                return writer.op(op, x, **attributes)
            if writer.node.op == "L2_POOL_2D":
                square = writer.op("AveragePool", writer.op("Mul", x, x), **attributes)
                return writer.op("Sqrt", square)
            return writer.op(op, x, **attributes)

        _image(writer, pool)
        return

    return build


def _resized(mode: str) -> Callable[[OperatorWriter], None]:
    """Axes 1 and 2 get the sizes of an operand."""

    def build(writer: OperatorWriter) -> None:
        corners, half = (
            bool(writer.parameters.get(name)) for name in ("align_corners", "half_pixel_centers")
        )
        place = "align_corners" if corners else "half_pixel" if half else "asymmetric"
        if corners and half:
            raise NoEquivalent
        attributes: dict[str, Any] = {"coordinate_transformation_mode": place, "mode": mode}
        if mode == "nearest":
            attributes["nearest_mode"] = "floor" if place == "asymmetric" else "round_prefer_ceil"
        sizes = writer.as_int64(writer.stored(1))
        writer.last("Resize", writer.input(0), None, None, sizes, axes=(1, 2), **attributes)
        return

    return build


def _local_norm(writer: OperatorWriter) -> None:
    radius = writer.parameters.get("radius", 0)
    size = 2 * radius + 1
    attributes = {
        "size": size,
        "alpha": writer.parameters.get("alpha", 0.0) * size,
        "beta": writer.parameters.get("beta", 0.0),
        "bias": writer.parameters.get("bias", 0.0),
    }
    if radius < 0:
        raise NoEquivalent
    _image(writer, lambda x: writer.op("LRN", x, **attributes))


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
