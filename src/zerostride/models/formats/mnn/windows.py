"""Rows of :mod:`.lowering` for ops over axes or windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from .words import INT32, Row, Said, Unsaid, Words, axes_of, is_image, plain_order

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


def _reduce(words: Words) -> Said:
    op = _REDUCTIONS.get(str(words.parameters.get("operation")))
    if op is None:
        raise Unsaid
    keep = int(words.parameters.get("keepDims", False))
    axes = axes_of(words, "dim")
    none = axes is not None and axes.content == ()
    return words.last(op, words.input(0), axes, keepdims=keep, noop_with_empty_axes=int(none))


def _largest(words: Words) -> Said:
    """ArgMax and ArgMin; the axis is removed."""
    plain_order(words)
    if words.parameters.get("topK", 1) != 1 or words.parameters.get("outMaxVal"):
        raise Unsaid
    index = words.op(
        words.node.op, words.input(0), axis=words.parameters.get("axis", 2), keepdims=0
    )
    return words.last("Cast", index, to=INT32)


def _softmax(words: Words) -> Said:
    plain_order(words)
    return words.last("Softmax", words.input(0), axis=words.parameters.get("axis", -1))


def _layer_norm(words: Words) -> Said:
    axes, group = words.parameters.get("axes", ()), words.parameters.get("group", 1)
    if (
        group != 1
        or not axes
        or len(words.node.outputs) != 1
        or words.parameters["format"] == "NC4HW4"
    ):
        raise Unsaid
    last = set(axes)
    if min(axes) >= 0:
        last = {axis - words.rank() for axis in axes}
    if last != set(range(-len(axes), 0)):
        raise Unsaid
    data, scale, bias = words.input(0), words.optional(1), words.optional(2)
    if scale is None:
        scale = words.reals(1.0)
    elif len(axes) > 1:
        raise Unsaid
    op = "RMSNormalization" if words.parameters.get("useRMSNorm") else "LayerNormalization"
    weights = [scale] if bias is None or op == "RMSNormalization" else [scale, bias]
    return words.last(
        op, data, *weights, axis=-len(axes), epsilon=words.parameters.get("epsilon", 0.0)
    )


def _product(words: Words) -> Said:
    """A product, with operands transposed first if its flags are set."""
    flips = ("transposeA", "adjX"), ("transposeB", "adjY")
    parts = []
    for position, names in enumerate(flips):
        value = words.input(position)
        if any(words.parameters.get(name) for name in names):
            # Works for every rank, which is unknown for some tensors.
            value = words.op("Einsum", value, equation="...ij->...ji")
        parts.append(value)
    bias = words.optional(2)
    if bias is None:
        return words.last("MatMul", *parts)
    return words.last("Add", words.op("MatMul", *parts), bias)


# Windows.


def _padding(words: Words, kind: str) -> dict[str, Any]:
    """The padding of a window, in ONNX's order: top, left, bottom, right."""
    if kind == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if kind == "VALID":
        return {"pads": (0, 0, 0, 0)}
    pads = words.parameters.get("pads", ())
    if not words.parameters.get("has_pads"):
        y, x = words.parameters.get("padY", 0), words.parameters.get("padX", 0)
        return {"pads": (y, x, y, x)}
    if len(pads) < 4:
        raise Unsaid
    return {"pads": tuple(pads[:4])}


def _steps(words: Words) -> None:
    """Unsaid for strides or windows below 1."""
    names = ("kernelY", "kernelX", "strideY", "strideX")
    if any(words.parameters.get(name, 0) < 1 for name in names):
        raise Unsaid


def _convolution(words: Words) -> Said:
    is_image(words)
    _steps(words)
    parameters = words.parameters
    rank = words.rank()
    if "kernelY" not in parameters or rank not in (3, 4):
        raise Unsaid
    data, weights, bias = words.input(0), words.input(1), words.optional(2)
    if rank == 3:  # one column
        data = words.op("Unsqueeze", data, words.ints(3))
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "dilations": (parameters["dilateY"], parameters["dilateX"]),
        "group": parameters["group"],
        **_padding(words, str(parameters["padMode"])),
    }
    if weights.shape is None or len(weights.shape) != 4:
        raise Unsaid
    result = words.op("Conv", data, weights, bias, **attributes)
    if rank == 3:
        result = words.op("Squeeze", result, words.ints(3))
    return _rectified(words, result)


def _rectified(words: Words, value: Value) -> Said:
    """The result of a convolution after the activation in its parameter."""
    if words.parameters.get("relu6"):
        return words.last("Clip", value, words.reals(0.0), words.reals(6.0))
    return words.last("Relu" if words.parameters.get("relu") else "Identity", value)


def _deconvolution(words: Words) -> Said:
    is_image(words)
    _steps(words)
    parameters = words.parameters
    if "kernelY" not in parameters or words.optional(3) is not None:
        raise Unsaid
    if words.input(0).shape is not None and words.rank() != 4:
        raise Unsaid
    if (
        parameters.get("hasOutputShape")
        or parameters.get("has_outPads")
        or parameters["padMode"] != "CAFFE"
    ):
        raise Unsaid
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "dilations": (parameters["dilateY"], parameters["dilateX"]),
        "group": parameters["group"],
        **_padding(words, "CAFFE"),
    }
    operands = words.input(0), words.input(1), words.optional(2)
    return _rectified(words, words.op("ConvTranspose", *operands, **attributes))


def _pool(words: Words) -> Said:
    """Pools without ceil padding at the end, where MNN and ONNX count differently."""
    is_image(words)
    parameters = words.parameters
    if len(words.node.outputs) != 1 or "kernelX" not in parameters:
        raise Unsaid
    if words.input(0).shape is not None and words.rank() != 4:
        raise Unsaid
    largest = parameters.get("type") == 0
    if parameters.get("isGlobal"):
        return words.last("GlobalMaxPool" if largest else "GlobalAveragePool", words.input(0))
    _steps(words)
    attributes = {
        "kernel_shape": (parameters["kernelY"], parameters["kernelX"]),
        "strides": (parameters["strideY"], parameters["strideX"]),
        "ceil_mode": int(
            parameters.get("ceilModel", True) and parameters.get("padType") == "CAFFE"
        ),
        **_padding(words, str(parameters.get("padType"))),
    }
    if largest:
        return words.last("MaxPool", words.input(0), **attributes)
    padded = any(attributes.get("pads", (1,)))
    # If a file leaves it open, MNN's result depends on the kernel that runs.
    if attributes["ceil_mode"] or (padded and parameters.get("countType") not in (1, 2)):
        raise Unsaid
    counted = int(parameters.get("countType") == 1)
    return words.last("AveragePool", words.input(0), count_include_pad=counted, **attributes)


def _pool3d(words: Words) -> Said:
    is_image(words)
    if not words.parameters.get("isGlobal"):
        raise Unsaid
    largest = words.parameters.get("type") == 0
    return words.last("GlobalMaxPool" if largest else "GlobalAveragePool", words.input(0))


#: CoordinateTransformationMode: the values that ONNX also has.
_COORDINATES = {1: "align_corners", 2: "half_pixel", 3: "pytorch_half_pixel", 4: "asymmetric"}


def _resize(words: Words) -> Said:
    """ONNX's form: all sizes, or all scales, as an operand."""
    is_image(words)
    kind, where = (
        words.parameters.get("resizeType"),
        _COORDINATES.get(words.parameters.get("ctm", 0)),
    )
    size = words.input(1)
    if size.shape is not None and size.shape not in ((None,), (4,)):
        raise Unsaid
    if where is None or kind not in (1, 2) or (kind == 1 and where != "asymmetric"):
        raise Unsaid
    data = words.input(0)
    attributes = {
        "coordinate_transformation_mode": where,
        "mode": "nearest" if kind == 1 else "linear",
    }
    if kind == 1:
        attributes["nearest_mode"] = "floor"
    if size.dtype == "int32":
        return words.last("Resize", data, None, None, size, **attributes)
    if size.dtype == "float32":
        return words.last("Resize", data, None, size, **attributes)
    raise Unsaid


def _if(words: Words) -> Said:
    return words.last("If", words.input(0))


def _while(words: Words) -> Said:
    """A While that the converter wrote for ONNX's Loop or LSTM: a Loop with all operands.

    A While with a condition graph, from TensorFlow, is not translated.
    Source: alibaba/MNN express/module/WhileModule.cpp, `cond_graph() == nullptr`.
    """
    if len(words.node.bodies) != 1:
        raise Unsaid
    (body,) = words.node.bodies
    carried, count = len(words.node.inputs) - 2, len(words.node.outputs)
    fits = len(body.inputs) == carried + 2 and len(body.outputs) == count + 1
    if body.name != "body" or not 0 <= carried <= count or not fits:
        raise Unsaid
    return words.last("Loop", *words.node.inputs)


def _stft(words: Words) -> Said:
    """ONNX's form: step and window are operands; other converters write them as attributes."""
    if words.parameters.get("n_fft") or words.parameters.get("hop_length"):
        raise Unsaid
    operands = (words.input(k) for k in range(3))
    return words.last("STFT", *operands, onesided=int(words.parameters.get("abs", True)))


#: Op type to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        **dict.fromkeys(("Convolution", "ConvolutionDepthwise"), _convolution),
        "ArgMax": _largest,
        "ArgMin": _largest,
        "Deconvolution": _deconvolution,
        "If": _if,
        "Interp": _resize,
        "LayerNorm": _layer_norm,
        **dict.fromkeys(("MatMul", "BatchMatMul"), _product),
        "Pooling": _pool,
        "Pooling3D": _pool3d,
        "Reduction": _reduce,
        "Softmax": _softmax,
        "Stft": _stft,
        "While": _while,
    }
)
