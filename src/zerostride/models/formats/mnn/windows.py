"""Rows of :mod:`.lowering` for ops over axes or windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from ..lowering import NoEquivalent, becomes, checked, table, whole
from .words import INT32, OpWriter

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
    flips = ("transposeA", "adjX"), ("transposeB", "adjY")
    parts = []
    for position, names in enumerate(flips):
        value = w.input(position)
        if any(w.node.attributes.get(name) for name in names):
            # Works for every rank, which is unknown for some tensors.
            value = w.op("Einsum", value, equation="...ij->...ji")
        parts.append(value)
    bias = w.optional(2)
    if bias is None:
        return w.last("MatMul", *parts)
    return w.last("Add", w.op("MatMul", *parts), bias)


# Windows.


def _padding(w: OpWriter, kind: str) -> dict[str, Any]:
    """The padding of a window, in ONNX's order: top, left, bottom, right."""
    if kind == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if kind == "VALID":
        return {"pads": (0, 0, 0, 0)}
    pads = w.listed("pads")
    if not w.node.attributes.get("has_pads"):
        y, x = w.whole("padY", 0), w.whole("padX", 0)
        return {"pads": (y, x, y, x)}
    if len(pads) < 4:
        raise NoEquivalent
    return {"pads": tuple(pads[:4])}


def _steps(w: OpWriter) -> None:
    """NoEquivalent for strides or windows below 1."""
    names = ("kernelY", "kernelX", "strideY", "strideX")
    if any(w.node.attributes.get(name, 0) < 1 for name in names):
        raise NoEquivalent


def _convolution(w: OpWriter) -> None:
    w.is_image()
    _steps(w)
    parameters = w.node.attributes
    rank = w.rank()
    if "kernelY" not in parameters or rank not in (3, 4):
        raise NoEquivalent
    data, weights, bias = w.input(), w.input(1), w.optional(2)
    if rank == 3:  # one column
        data = w.op("Unsqueeze", data, w.ints(3))
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "dilations": (parameters["dilateY"], parameters["dilateX"]),
        "group": parameters["group"],
        **_padding(w, str(parameters["padMode"])),
    }
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


def _deconvolution(w: OpWriter) -> None:
    w.is_image()
    _steps(w)
    parameters = w.node.attributes
    if "kernelY" not in parameters or w.optional(3) is not None:
        raise NoEquivalent
    if w.input().shape is not None and w.rank() != 4:
        raise NoEquivalent
    if (
        parameters.get("hasOutputShape")
        or parameters.get("has_outPads")
        or parameters["padMode"] != "CAFFE"
    ):
        raise NoEquivalent
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "dilations": (parameters["dilateY"], parameters["dilateX"]),
        "group": parameters["group"],
        **_padding(w, "CAFFE"),
    }
    operands = w.input(), w.input(1), w.optional(2)
    return _rectified(w, w.op("ConvTranspose", *operands, **attributes))


def _pool(w: OpWriter) -> None:
    """Pools without ceil padding at the end, where MNN and ONNX count differently."""
    w.is_image()
    parameters = w.node.attributes
    if len(w.node.outputs) != 1 or "kernelX" not in parameters:
        raise NoEquivalent
    if w.input().shape is not None and w.rank() != 4:
        raise NoEquivalent
    largest = parameters.get("type") == 0
    if parameters.get("isGlobal"):
        return w.last("GlobalMaxPool" if largest else "GlobalAveragePool", w.input())
    _steps(w)
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "ceil_mode": int(
            parameters.get("ceilModel", True) and parameters.get("padType") == "CAFFE"
        ),
        **_padding(w, str(parameters.get("padType"))),
    }
    if largest:
        return w.last("MaxPool", w.input(), **attributes)
    padded = any(attributes.get("pads", (1,)))
    # If a file leaves it open, MNN's result depends on the kernel that runs.
    if attributes["ceil_mode"] or (padded and parameters.get("countType") not in (1, 2)):
        raise NoEquivalent
    counted = int(parameters.get("countType") == 1)
    return w.last("AveragePool", w.input(), count_include_pad=counted, **attributes)


def _pool3d(w: OpWriter) -> None:
    w.is_image()
    if not w.node.attributes.get("isGlobal"):
        raise NoEquivalent
    largest = w.node.attributes.get("type") == 0
    return w.last("GlobalMaxPool" if largest else "GlobalAveragePool", w.input())


#: CoordinateTransformationMode: the values that ONNX also has.
_COORDINATES = {1: "align_corners", 2: "half_pixel", 3: "pytorch_half_pixel", 4: "asymmetric"}


def _resize(w: OpWriter) -> None:
    """ONNX's form: all sizes, or all scales, as an operand."""
    w.is_image()
    kind, where = (
        w.node.attributes.get("resizeType"),
        _COORDINATES.get(w.whole("ctm", 0)),
    )
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
