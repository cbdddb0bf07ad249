"""Rows of :mod:`.lowering` for ops over axes or windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..lowering import ELEMENT_TYPES, NoEquivalent, becomes, table, whole
from .node_writer import OpWriter

# Reductions and products.


def _reduce(op: str) -> Callable[[OpWriter], None]:
    """A row for a reduction; the axes are an operand, or the attribute `axis`."""

    def write(w: OpWriter) -> None:
        axes = w.axes(1, "axis")
        data = w.input()
        dtype = w.node.attributes.get("dtype")
        if dtype in ELEMENT_TYPES and dtype != data.dtype:
            data = w.as_type(data, str(dtype))
        operands = (data,) if axes is None else (data, w.ints(*axes))
        w.last(op, *operands, keepdims=int(w.flag("keepdim")))

    return write


def _truths(op: str) -> Callable[[OpWriter], None]:
    """A row for all and any: the least or greatest truth value."""

    def write(w: OpWriter) -> None:
        truths = w.op("Cast", w.as_type(w.input(), "bool"), to=ELEMENT_TYPES["int32"])
        axes = w.axes(1, "axis")
        operands = (truths,) if axes is None else (truths, w.ints(*axes))
        result = w.op(op, *operands, keepdims=int(w.flag("keepdim")))
        w.last("Cast", result, to=ELEMENT_TYPES["bool"])

    return write


def _mean_all(w: OpWriter) -> None:
    w.last("ReduceMean", w.input(), keepdims=0)


def _extreme(op: str) -> Callable[[OpWriter], None]:
    """A row for the index of the greatest or least element."""

    def write(w: OpWriter) -> None:
        data, keep = w.input(), int(w.flag("keepdims"))
        if w.flag("flatten"):
            if keep:
                raise NoEquivalent
            data = w.op("Reshape", data, w.ints(-1))
            index = w.op(op, data, axis=0, keepdims=0)
        else:
            index = w.op(op, data, axis=w.one(1), keepdims=keep)
        dtype = w.node.outputs[0].dtype or "int64"
        w.last("Cast", index, to=ELEMENT_TYPES[dtype])

    return write


def _top(w: OpWriter) -> None:
    axis = w.whole("axis", -1)
    largest = int(bool(w.node.attributes.get("largest", True)))
    ordered = int(bool(w.node.attributes.get("sorted", True)))
    count = w.numbers_at(1)
    w.last("TopK", w.input(), count, axis=axis, largest=largest, sorted=ordered)


def _sorted(w: OpWriter) -> None:
    """All elements of an axis, in order."""
    axis = w.whole("axis", -1)
    count = w.op("Shape", w.input())
    count = w.op("Gather", count, w.ints(axis), axis=0)
    w.last("TopK", w.input(), count, axis=axis, largest=int(w.flag("descending")), sorted=1)


def _cumulative(w: OpWriter) -> None:
    if w.flag("flatten"):
        raise NoEquivalent
    axis = w.number(w.one(1), "int64")
    flags = {name: int(w.flag(name)) for name in ("exclusive", "reverse")}
    w.last("CumSum", w.input(), axis, **flags)


def _product(w: OpWriter) -> None:
    """A product, with the last two axes of an operand exchanged first if its flag is set."""
    parts = []
    for position, name in enumerate(("transpose_x", "transpose_y")):
        value = w.input(position)
        if w.flag(name) and w.rank(position) > 1:
            rank = w.rank(position)
            order = (*range(rank - 2), rank - 1, rank - 2)
            value = w.op("Transpose", value, perm=order)
        parts.append(value)
    factor = w.real("alpha", 1.0)
    if factor == 1.0:
        return w.last("MatMul", *parts)
    return w.last("Mul", w.op("MatMul", *parts), w.number(factor, w.dtype()))


def _flat_product(w: OpWriter) -> None:
    """Both operands as matrices; the result has the axes that are left."""
    x, y = w.input(), w.input(1)
    columns, rows = w.whole("x_num_col_dims", 1), w.whole("y_num_col_dims", 1)
    if not 0 < columns < w.rank() or not 0 < rows < w.rank(1):
        raise NoEquivalent
    matrices = w.op("Flatten", x, axis=columns), w.op("Flatten", y, axis=rows)
    target = w.joined([w.lengths(x, 0, columns), w.lengths(y, rows, None)])
    w.last("Reshape", w.op("MatMul", *matrices), target, allowzero=1)


def _addmm(w: OpWriter) -> None:
    factors = {"alpha": w.real("alpha", 1.0), "beta": w.real("beta", 1.0)}
    w.last("Gemm", w.input(1), w.input(2), w.input(0), **factors)


# Normalisations.


def _batch_norm(w: OpWriter) -> None:
    """With the statistics of the model: data, mean, variance, scale, bias."""
    w.channels_first()
    if not (w.flag("is_test") or w.flag("use_global_stats")):
        raise NoEquivalent
    data, mean, variance = (w.input(k) for k in range(3))
    scale, bias = w.input(3), w.input(4)
    epsilon = w.real("epsilon", 1e-5)
    w.result(0, "BatchNormalization", data, scale, bias, mean, variance, epsilon=epsilon)


def _layer_norm(w: OpWriter) -> None:
    """Scale and bias are vectors of as many numbers as are normalised."""
    data, rank = w.input(), w.rank()
    begin = w.whole("begin_norm_axis", 1)
    scale, bias = w.optional(1), w.optional(2)
    if not 0 < begin < rank or (begin != rank - 1 and (scale or bias)):
        raise NoEquivalent
    if scale is None:
        scale = w.number(1.0, w.dtype())
    weights = [scale] if bias is None else [scale, bias]
    epsilon = w.real("epsilon", 1e-5)
    w.result(0, "LayerNormalization", data, *weights, axis=begin - rank, epsilon=epsilon)


def _instance_norm(w: OpWriter) -> None:
    epsilon = w.real("epsilon", 1e-5)
    w.result(0, "InstanceNormalization", w.input(), w.input(1), w.input(2), epsilon=epsilon)


def _group_norm(w: OpWriter) -> None:
    w.channels_first()
    more = {"num_groups": w.whole("groups", -1), "epsilon": w.real("epsilon", 1e-5)}
    w.result(0, "GroupNormalization", w.input(), w.input(1), w.input(2), **more)


def _affine(w: OpWriter) -> None:
    """A scale and a shift of every channel."""
    w.channels_first()
    ones = w.ints(-1, *[1] * (w.rank() - 2))
    scale, bias = (w.op("Reshape", w.input(k), ones) for k in (1, 2))
    w.last("Add", w.op("Mul", w.input(), scale), bias)


# Windows.


def _padding(w: OpWriter, axes: int) -> dict[str, Any]:
    """The pads of a window: one for each axis, or begin and end of each."""
    kind = w.text("padding_algorithm", "explicit")
    if kind == "valid":
        return {"pads": (0,) * (2 * axes)}
    if kind == "same":
        return {"auto_pad": "SAME_UPPER"}
    pads = w.listed("paddings", (0,) * axes)
    if len(pads) == axes:
        return {"pads": (*pads, *pads)}
    if len(pads) != 2 * axes:
        raise NoEquivalent
    return {"pads": (*pads[::2], *pads[1::2])}


def _convolution(axes: int) -> Callable[[OpWriter], None]:
    """A row for a convolution over so many axes."""

    def write(w: OpWriter) -> None:
        w.channels_first()
        if w.rank() != axes + 2:
            raise NoEquivalent
        more = _padding(w, axes)
        dilations = w.listed("dilations", (1,) * axes)
        if "auto_pad" in more and set(dilations) != {1}:
            raise NoEquivalent  # Paddle then sets them to 1
        w.last(
            "Conv",
            w.input(),
            w.input(1),
            strides=w.listed("strides", (1,) * axes),
            dilations=dilations,
            group=w.whole("groups", 1),
            **more,
        )

    return write


def _transposed(w: OpWriter) -> None:
    w.channels_first()
    more = _padding(w, 2)
    if w.axes(2) is not None or "auto_pad" in more:
        raise NoEquivalent
    w.last(
        "ConvTranspose",
        w.input(),
        w.input(1),
        strides=w.listed("strides", (1, 1)),
        dilations=w.listed("dilations", (1, 1)),
        group=w.whole("groups", 1),
        output_padding=w.listed("output_padding") or None,
        **more,
    )


def _pool(w: OpWriter) -> None:
    """Pooling over a window, over everything, or to a number of parts."""
    w.channels_first()
    axes = w.rank() - 2
    kernel = w.content(1) if w.optional(1) is not None else w.listed("kernel_size")
    largest = w.text("pooling_type") == "max"
    if len(kernel) != axes:
        raise NoEquivalent
    if w.flag("global_pooling") or (w.flag("adaptive") and set(kernel) == {1}):
        w.result(0, "GlobalMaxPool" if largest else "GlobalAveragePool", w.input())
        return
    if w.flag("adaptive"):
        _adaptive(w, kernel, largest=largest)
        return
    more: dict[str, Any] = {"strides": w.listed("strides", (1,) * axes), **_padding(w, axes)}
    ceil = w.flag("ceil_mode")
    if largest:
        w.result(0, "MaxPool", w.input(), kernel_shape=kernel, ceil_mode=int(ceil), **more)
        return
    inside = bool(w.node.attributes.get("exclusive", True))
    if ceil and not inside:
        raise NoEquivalent
    more |= {"ceil_mode": int(ceil), "count_include_pad": int(not inside)}
    w.result(0, "AveragePool", w.input(), kernel_shape=kernel, **more)


def _adaptive(w: OpWriter, parts: tuple[int, ...], *, largest: bool) -> None:
    """Parts of equal size."""
    sizes = w.sizes(w.input())[2:]
    window = []
    for size, count in zip(sizes, parts, strict=True):
        if not isinstance(size, int) or count < 1 or size % count:
            raise NoEquivalent
        window.append(size // count)
    op = "MaxPool" if largest else "AveragePool"
    w.result(0, op, w.input(), kernel_shape=tuple(window), strides=tuple(window))


def _resize(mode: str) -> Callable[[OpWriter], None]:
    """A row for a resizing of images: by sizes, else by scales."""

    def write(w: OpWriter) -> None:
        w.channels_first()
        data, rank = w.input(), w.rank()
        aligned = w.flag("align_corners")
        old = w.whole("align_mode", 1) == 1 and mode == "linear"
        where = "align_corners" if aligned else "asymmetric" if old else "half_pixel"
        if mode == "nearest":
            where = "align_corners" if aligned else "asymmetric"
        more: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where}
        if mode == "nearest":
            more["nearest_mode"] = "round_prefer_ceil" if aligned else "floor"
        if mode == "cubic":
            more["cubic_coeff_a"] = -0.75
        position = next((k for k in (2, 1) if w.optional(k) is not None), None)
        names = ("out_d", "out_h", "out_w")[-(rank - 2) :]
        sizes = [w.whole(name, -1) for name in names]
        wanted = None
        if position is not None:
            wanted = w.numbers_at(position)
        elif min(sizes) > 0:
            wanted = w.ints(*sizes)
        if wanted is None:
            scales = w.node.attributes.get("scale", ())
            scales = scales if isinstance(scales, tuple) else (scales,)
            positive = all(isinstance(s, int | float) and 0 < s < math.inf for s in scales)
            if w.optional(3) is not None or len(scales) not in (1, rank - 2) or not positive:
                raise NoEquivalent
            factors = scales if len(scales) == rank - 2 else scales * (rank - 2)
            return w.last("Resize", data, None, w.reals(1.0, 1.0, *factors), **more)
        target_shape = w.joined([w.lengths(data, 0, 2), wanted])
        return w.last("Resize", data, None, None, target_shape, **more)

    return write


def _norm(w: OpWriter) -> None:
    """The norm along one axis, of order 1 or 2."""
    order = w.real("porder", 2.0)
    op = {1.0: "ReduceL1", 2.0: "ReduceL2"}.get(order)
    if op is None or w.flag("asvector"):
        raise NoEquivalent
    w.last(op, w.input(), w.ints(w.whole("axis", -1)), keepdims=int(w.flag("keepdim")))


def _condition(w: OpWriter) -> None:
    if len(w.node.bodies) != 2:
        raise NoEquivalent
    w.last("If", w.number_at(0))


#: Op to row.
ROWS = table(
    ("matmul bmm", _product),
    ("conv2d depthwise_conv2d", _convolution(2)),
    ("max amax", _reduce("ReduceMax")),
    ("min amin", _reduce("ReduceMin")),
    ("bilinear_interp linear_interp trilinear_interp", _resize("linear")),
    {
        "addmm": _addmm,
        "affine_channel": _affine,
        "all": _truths("ReduceMin"),
        "any": _truths("ReduceMax"),
        "argmax": _extreme("ArgMax"),
        "argmin": _extreme("ArgMin"),
        "argsort": _sorted,
        "batch_norm": _batch_norm,
        "bicubic_interp": _resize("cubic"),
        "conv2d_transpose": _transposed,
        "conv3d": _convolution(3),
        "cumsum": _cumulative,
        "group_norm": _group_norm,
        "if": _condition,
        "instance_norm": _instance_norm,
        "layer_norm": _layer_norm,
        "log_softmax": becomes("LogSoftmax", axis=whole("axis", -1)),
        "logsumexp": _reduce("ReduceLogSumExp"),
        "matmul_with_flatten": _flat_product,
        "mean": _reduce("ReduceMean"),
        "mean_all": _mean_all,
        "nearest_interp": _resize("nearest"),
        "p_norm": _norm,
        "pool2d": _pool,
        "pool3d": _pool,
        "prod": _reduce("ReduceProd"),
        "softmax": becomes("Softmax", axis=whole("axis", -1)),
        "sum": _reduce("ReduceSum"),
        "topk": _top,
    },
)
