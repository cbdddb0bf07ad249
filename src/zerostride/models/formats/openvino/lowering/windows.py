"""Rows of :mod:`.elements` for convolutions, pools, normalisations by channel and resizing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ....ir.graph import Value
from ...lowering import NoEquivalent, becomes, real, table, whole
from .writer import IrWriter

_AUTO = MappingProxyType(
    {
        "explicit": "NOTSET",
        "notset": "NOTSET",
        "same_upper": "SAME_UPPER",
        "same_lower": "SAME_LOWER",
        "valid": "VALID",
    }
)


def _window(w: IrWriter, dilated: bool = True) -> dict[str, Any]:
    """Strides, pads and dilations."""
    automatic = _AUTO.get(w.text("auto_pad", "explicit"))
    if automatic is None:
        raise NoEquivalent
    attributes: dict[str, Any] = {"auto_pad": automatic, "strides": w.listed("strides")}
    if dilated:
        attributes["dilations"] = w.listed("dilations", (1,) * len(attributes["strides"]))
    if automatic == "NOTSET":
        attributes["pads"] = (*w.listed("pads_begin"), *w.listed("pads_end"))
    return attributes


def _grouped(w: IrWriter) -> tuple[Value, int]:
    """The weights with the axis of groups merged into the next, and the number of groups."""
    weights = w.input(1)
    shape = weights.shape
    if shape is None or len(shape) < 3:
        raise NoEquivalent
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) < len(shape):
        raise NoEquivalent
    return w.reshaped(weights, (sizes[0] * sizes[1], *sizes[2:])), sizes[0]


def _convolution(w: IrWriter) -> None:
    weights, group = w.input(1), 1
    if w.kind.startswith("Group"):
        weights, group = _grouped(w)
    return w.last("Conv", w.input(0), weights, group=group, **_window(w))


def _transposed(w: IrWriter) -> None:
    if w.optional(2) is not None:
        raise NoEquivalent  # the result's sizes are an operand
    weights, group = w.input(1), 1
    if w.kind.startswith("Group"):
        weights, group = _grouped(w)
    attributes = _window(w)
    if attributes["auto_pad"] != "NOTSET":
        raise NoEquivalent
    extra = w.listed("output_padding", (0,) * len(attributes["strides"]))
    return w.last(
        "ConvTranspose", w.input(0), weights, group=group, output_padding=extra, **attributes
    )


def _starts_inside(w: IrWriter, attributes: Mapping[str, Any]) -> bool:
    """Whether the last window begins in the data even in ceil mode: no padding, no gaps."""
    pairs = zip(attributes["strides"], attributes["kernel_shape"], strict=False)
    inside = all(stride <= width for stride, width in pairs) and not any(
        attributes.get("pads", (1,))
    )
    return w.kind == "MaxPool" and w.text("rounding_type") == "ceil" and inside


def _pool(w: IrWriter) -> None:
    rounding = w.text("rounding_type", "floor")
    attributes = _window(w, dilated=w.kind == "MaxPool")
    attributes["kernel_shape"] = w.listed("kernel")
    if rounding not in ("floor", "ceil_torch") and not _starts_inside(w, attributes):
        raise NoEquivalent  # in ceil mode OpenVINO counts a window that starts in the padding
    attributes["ceil_mode"] = int(rounding != "floor")
    if w.kind == "AvgPool":
        attributes["count_include_pad"] = int(not w.flag("exclude-pad"))
        return w.last("AveragePool", w.input(0), **attributes)
    if len(w.node.outputs) > 1 and w.whole("axis", 0):
        raise NoEquivalent  # ONNX counts indices from the first axis
    return w.last("MaxPool", w.input(0), **attributes)


def _batch_norm(w: IrWriter) -> None:
    order = (0, 1, 2, 3, 4) if w.node.version >= 5 else (2, 0, 1, 3, 4)
    w.last("BatchNormalization", *map(w.input, order), epsilon=w.real("epsilon"))


_MODES = MappingProxyType({"nearest": "nearest", "linear_onnx": "linear", "cubic": "cubic"})


def _interpolate(w: IrWriter) -> None:
    """Interpolate-4 and -11 without padding, for ONNX's modes."""
    version = w.node.version
    mode = _MODES.get(w.text("mode"))
    plain = w.flag("antialias") or any(w.listed("pads_begin") + w.listed("pads_end"))
    if version < 4 or mode is None or plain:
        raise NoEquivalent
    by_sizes = w.text("shape_calculation_mode") == "sizes"
    if version >= 11:
        target, axes = w.input(1), w.optional(2)
    else:
        target, axes = w.input(1 if by_sizes else 2), w.optional(3)
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": w.text("coordinate_transformation_mode", "half_pixel"),
        "nearest_mode": w.text("nearest_mode", "round_prefer_floor"),
        "cubic_coeff_a": w.real("cube_coeff", -0.75),
    }
    if axes is not None:
        numbers = w.content(3 if version < 11 else 2)
        attributes["axes"] = numbers
        if version >= 11 and target.shape != (len(numbers),):
            raise NoEquivalent
    if by_sizes:
        return w.last("Resize", w.input(0), None, None, target, **attributes)
    if target.reals is not None and not all(map(math.isfinite, target.reals)):
        raise NoEquivalent
    return w.last("Resize", w.input(0), None, target, **attributes)


_GROUP_NORM = becomes(
    "GroupNormalization", 0, 1, 2, num_groups=whole("num_groups"), epsilon=real("epsilon")
)
#: Op to row.
ROWS = table(
    ("Convolution GroupConvolution", _convolution),
    ("ConvolutionBackpropData GroupConvolutionBackpropData", _transposed),
    ("MaxPool AvgPool", _pool),
    {
        "BatchNormInference": _batch_norm,
        "GroupNormalization": _GROUP_NORM,
        "Interpolate": _interpolate,
    },
)
