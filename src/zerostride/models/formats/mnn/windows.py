"""Rows of :mod:`.lowering` for ops over axes or windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from ..lowering import NoEquivalent, becomes, checked, table, whole
from .node_writer import INT32, OpWriter

# Reductions and products.

_REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "SUM": "ReduceSum",
        "ASUM": "ReduceL1",
        "SUMSQ": "ReduceSumSquare",
        "MEAN": "ReduceMean",
        "MAXIMUM": "ReduceMax",
        "MINIMUM": "ReduceMin",
        "PROD": "ReduceProd",
        # Of truth values, which are 0 and 1 in MNN.
        "ANY": "ReduceMax",
        "ALL": "ReduceMin",
    }
)


def _reduce(w: OpWriter) -> None:
    op = _REDUCTIONS.get(str(w.node.attributes.get("operation")))
    if op is None:
        raise NoEquivalent
    keep = int(w.flag("keepDims"))
    axes = w.axes("dim")
    none = axes is not None and axes.content == ()
    return w.last(op, w.input(), axes, keepdims=keep, noop_with_empty_axes=int(none))


def _largest(w: OpWriter) -> None:
    """ArgMax and ArgMin; the axis is removed."""
    w.plain_order()
    if w.whole("topK", 1) != 1 or w.flag("outMaxVal"):
        raise NoEquivalent
    index = w.op(w.node.op, w.input(), axis=w.whole("axis", 2), keepdims=0)
    return w.last("Cast", index, to=INT32)


def _layer_norm(w: OpWriter) -> None:
    axes, group = w.listed("axes"), w.whole("group", 1)
    if (
        group != 1
        or not axes
        or len(w.node.outputs) != 1
        or w.node.attributes["format"] == "NC4HW4"
    ):
        raise NoEquivalent
    last = set(axes)
    if min(axes) >= 0:
        last = {axis - w.rank() for axis in axes}
    if last != set(range(-len(axes), 0)):
        raise NoEquivalent
    data, scale, bias = w.input(), w.optional(1), w.optional(2)
    if scale is None:
        scale = w.number(1.0)
    elif len(axes) > 1:
        raise NoEquivalent
    op = "RMSNormalization" if w.flag("useRMSNorm") else "LayerNormalization"
    weights = [scale] if bias is None or op == "RMSNormalization" else [scale, bias]
    return w.last(op, data, *weights, axis=-len(axes), epsilon=w.real("epsilon", 0.0))


def _product(w: OpWriter) -> None:
    """A product, with operands transposed first if its flags are set."""
    parts = []
    for position, names in enumerate((("transposeA", "adjX"), ("transposeB", "adjY"))):
        value = w.input(position)
        if any(map(w.flag, names)):
            # Works for every rank, which is unknown for some tensors.
            value = w.op("Einsum", value, equation="...ij->...ji")
        parts.append(value)
    product, bias = w.op("MatMul", *parts), w.optional(2)
    w.finish(product if bias is None else w.op("Add", product, bias))


# Windows.


def _padding(w: OpWriter, kind: str) -> dict[str, Any]:
    """The padding of a window, in ONNX's order: top, left, bottom, right."""
    if kind == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if kind == "VALID":
        return {"pads": (0, 0, 0, 0)}
    pads = w.listed("pads")
    if not w.flag("has_pads"):
        y, x = w.whole("padY", 0), w.whole("padX", 0)
        return {"pads": (y, x, y, x)}
    if len(pads) < 4:
        raise NoEquivalent
    return {"pads": tuple(pads[:4])}


def _window(w: OpWriter, padding: str) -> dict[str, Any]:
    """Window, strides and pads, which must be at least 1."""
    pairs = {"kernel_shape": "kernel", "strides": "stride"}
    window = {name: (w.whole(f"{key}Y"), w.whole(f"{key}X")) for name, key in pairs.items()}
    if min(map(min, window.values())) < 1:
        raise NoEquivalent
    return {**window, **_padding(w, padding)}


def _filters(w: OpWriter, padding: str) -> dict[str, Any]:
    """The window of a convolution, with dilations and groups."""
    dilations = (w.whole("dilateY"), w.whole("dilateX"))
    return {**_window(w, padding), "dilations": dilations, "group": w.whole("group")}


def _convolution(w: OpWriter) -> None:
    w.is_image()
    rank, attributes = w.rank(), _filters(w, w.text("padMode").upper())
    if rank not in (3, 4):
        raise NoEquivalent
    data, weights, bias = w.input(), w.input(1), w.optional(2)
    if rank == 3:  # one column
        data = w.op("Unsqueeze", data, w.ints(3))
    if weights.shape is None or len(weights.shape) != 4:
        raise NoEquivalent
    result = w.op("Conv", data, weights, bias, **attributes)
    if rank == 3:
        result = w.op("Squeeze", result, w.ints(3))
    return _rectified(w, result)


def _rectified(w: OpWriter, value: Value) -> None:
    """The result of a convolution after the activation in its parameter."""
    if w.flag("relu6"):
        return w.last("Clip", value, w.number(0.0), w.number(6.0))
    return w.last("Relu" if w.flag("relu") else "Identity", value)


def _plane(w: OpWriter) -> None:
    """Refuses data that are known to have other axes than a batch of images."""
    w.is_image()
    if w.input().shape is not None and w.rank() != 4:
        raise NoEquivalent


def _deconvolution(w: OpWriter) -> None:
    _plane(w)
    cut = w.flag("hasOutputShape") or w.flag("has_outPads") or w.optional(3) is not None
    if cut or w.text("padMode") != "caffe":
        raise NoEquivalent
    operands = w.input(), w.input(1), w.optional(2)
    return _rectified(w, w.op("ConvTranspose", *operands, **_filters(w, "CAFFE")))


def _pool(w: OpWriter) -> None:
    """Pools without ceil padding at the end, where MNN and ONNX count differently."""
    _plane(w)
    parameters = w.node.attributes
    if len(w.node.outputs) != 1 or "kernelX" not in parameters:
        raise NoEquivalent
    if w.flag("isGlobal"):
        return _global_pool(w)
    padding = str(parameters.get("padType"))
    ceil = bool(parameters.get("ceilModel", True)) and padding == "CAFFE"
    attributes = {**_window(w, padding), "ceil_mode": int(ceil)}
    if parameters.get("type") == 0:
        return w.last("MaxPool", w.input(), **attributes)
    padded = any(attributes.get("pads", (1,)))
    # If a file leaves it open, MNN's result depends on the kernel that runs.
    if ceil or (padded and parameters.get("countType") not in (1, 2)):
        raise NoEquivalent
    counted = int(parameters.get("countType") == 1)
    return w.last("AveragePool", w.input(), count_include_pad=counted, **attributes)


def _global_pool(w: OpWriter) -> None:
    largest = w.node.attributes.get("type") == 0
    w.last("GlobalMaxPool" if largest else "GlobalAveragePool", w.input())


def _pool3d(w: OpWriter) -> None:
    w.is_image()
    if not w.flag("isGlobal"):
        raise NoEquivalent
    _global_pool(w)


#: CoordinateTransformationMode: the values that ONNX also has.
_COORDINATES = {1: "align_corners", 2: "half_pixel", 3: "pytorch_half_pixel", 4: "asymmetric"}


def _resize(w: OpWriter) -> None:
    """ONNX's form: all sizes, or all scales, as an operand."""
    w.is_image()
    kind, where = w.node.attributes.get("resizeType"), _COORDINATES.get(w.whole("ctm", 0))
    size = w.input(1)
    if size.shape is not None and size.shape not in ((None,), (4,)):
        raise NoEquivalent
    if where is None or kind not in (1, 2) or (kind == 1 and where != "asymmetric"):
        raise NoEquivalent
    data = w.input()
    attributes = {
        "coordinate_transformation_mode": where,
        "mode": "nearest" if kind == 1 else "linear",
    }
    if kind == 1:
        attributes["nearest_mode"] = "floor"
    if size.dtype == "int32":
        return w.last("Resize", data, None, None, size, **attributes)
    if size.dtype == "float32":
        return w.last("Resize", data, None, size, **attributes)
    raise NoEquivalent


def _while(w: OpWriter) -> None:
    """A While that the converter wrote for ONNX's Loop or LSTM: a Loop with all operands.

    A While with a condition graph, from TensorFlow, is not translated.
    Source: alibaba/MNN express/module/WhileModule.cpp, `cond_graph() == nullptr`.
    """
    if len(w.node.bodies) != 1:
        raise NoEquivalent
    (body,) = w.node.bodies
    carried, count = len(w.node.inputs) - 2, len(w.node.outputs)
    fits = len(body.inputs) == carried + 2 and len(body.outputs) == count + 1
    if body.name != "body" or not 0 <= carried <= count or not fits:
        raise NoEquivalent
    return w.last("Loop", *w.node.inputs)


def _stft(w: OpWriter) -> None:
    """ONNX's form: step and window are operands; other converters write them as attributes."""
    if w.flag("n_fft") or w.flag("hop_length"):
        raise NoEquivalent
    operands = (w.input(k) for k in range(3))
    return w.last("STFT", *operands, onesided=int(w.flag("abs")))


#: Op type to row.
ROWS = table(
    ("Convolution ConvolutionDepthwise", _convolution),
    ("ArgMax ArgMin", _largest),
    ("MatMul BatchMatMul", _product),
    {
        "Deconvolution": _deconvolution,
        "If": "If",
        "Interp": _resize,
        "LayerNorm": _layer_norm,
        "Pooling": _pool,
        "Pooling3D": _pool3d,
        "Reduction": _reduce,
        "Softmax": checked(OpWriter.plain_order, becomes("Softmax", axis=whole("axis", -1))),
        "Stft": _stft,
        "While": _while,
    },
)
