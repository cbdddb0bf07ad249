"""Rows of :mod:`.lower` for convolutions, pools, normalisations by channel and resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Node, Value
from .words import NoWords, Words

Row = Callable[[Words], tuple[Node, ...]]

_AUTO = MappingProxyType(
    {
        "explicit": "NOTSET",
        "notset": "NOTSET",
        "same_upper": "SAME_UPPER",
        "same_lower": "SAME_LOWER",
        "valid": "VALID",
    }
)


def _window(words: Words, dilated: bool = True) -> dict[str, Any]:
    """Strides, pads and dilations."""
    automatic = _AUTO.get(words.text("auto_pad", "explicit"))
    if automatic is None:
        raise NoWords
    attributes: dict[str, Any] = {"auto_pad": automatic, "strides": words.list("strides")}
    if dilated:
        attributes["dilations"] = words.list("dilations", (1,) * len(attributes["strides"]))
    if automatic == "NOTSET":
        attributes["pads"] = (*words.list("pads_begin"), *words.list("pads_end"))
    return attributes


def _grouped(words: Words) -> tuple[Value, int]:
    """The weights with the axis of groups merged into the next, and the number of groups."""
    weights = words.input(1)
    shape = weights.shape
    if shape is None or len(shape) < 3:
        raise NoWords
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) < len(shape):
        raise NoWords
    return words.reshaped(weights, (sizes[0] * sizes[1], *sizes[2:])), sizes[0]


def _convolution(words: Words) -> tuple[Node, ...]:
    weights, group = words.input(1), 1
    if words.op.startswith("Group"):
        weights, group = _grouped(words)
    return words.last("Conv", words.input(0), weights, group=group, **_window(words))


def _transposed(words: Words) -> tuple[Node, ...]:
    if words.optional(2) is not None:
        raise NoWords  # the result's sizes are an operand
    weights, group = words.input(1), 1
    if words.op.startswith("Group"):
        weights, group = _grouped(words)
    attributes = _window(words)
    if attributes["auto_pad"] != "NOTSET":
        raise NoWords
    extra = words.list("output_padding", (0,) * len(attributes["strides"]))
    return words.last(
        "ConvTranspose", words.input(0), weights, group=group, output_padding=extra, **attributes
    )


def _starts_inside(words: Words, attributes: Mapping[str, Any]) -> bool:
    """Whether the last window begins in the data even in ceil mode: no padding, no gaps."""
    pairs = zip(attributes["strides"], attributes["kernel_shape"], strict=False)
    inside = all(stride <= width for stride, width in pairs) and not any(
        attributes.get("pads", (1,))
    )
    return words.op == "MaxPool" and words.text("rounding_type") == "ceil" and inside


def _pool(words: Words) -> tuple[Node, ...]:
    rounding = words.text("rounding_type", "floor")
    attributes = _window(words, dilated=words.op == "MaxPool")
    attributes["kernel_shape"] = words.list("kernel")
    if rounding not in ("floor", "ceil_torch") and not _starts_inside(words, attributes):
        raise NoWords  # in ceil mode OpenVINO counts a window that starts in the padding
    attributes["ceil_mode"] = int(rounding != "floor")
    if words.op == "AvgPool":
        attributes["count_include_pad"] = int(not words.flag("exclude-pad"))
        return words.last("AveragePool", words.input(0), **attributes)
    if len(words.node.outputs) > 1 and words.integer("axis", 0):
        raise NoWords  # ONNX counts indices from the first axis
    return words.last("MaxPool", words.input(0), **attributes)


def _batch_norm(words: Words) -> tuple[Node, ...]:
    order = (0, 1, 2, 3, 4) if words.node.version >= 5 else (2, 0, 1, 3, 4)
    inputs = (words.input(position) for position in order)
    return words.last("BatchNormalization", *inputs, epsilon=words.real("epsilon"))


def _group_norm(words: Words) -> tuple[Node, ...]:
    inputs = (words.input(position) for position in range(3))
    groups, epsilon = words.integer("num_groups"), words.real("epsilon")
    return words.last("GroupNormalization", *inputs, num_groups=groups, epsilon=epsilon)


_MODES = MappingProxyType({"nearest": "nearest", "linear_onnx": "linear", "cubic": "cubic"})


def _interpolate(words: Words) -> tuple[Node, ...]:
    """Interpolate-4 and -11 without padding, for ONNX's modes."""
    version = words.node.version
    mode = _MODES.get(words.text("mode"))
    plain = words.flag("antialias") or any(words.list("pads_begin") + words.list("pads_end"))
    if version < 4 or mode is None or plain:
        raise NoWords
    by_sizes = words.text("shape_calculation_mode") == "sizes"
    if version >= 11:
        target, axes = words.input(1), words.optional(2)
    else:
        target, axes = words.input(1 if by_sizes else 2), words.optional(3)
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": words.text(
            "coordinate_transformation_mode", "half_pixel"
        ),
        "nearest_mode": words.text("nearest_mode", "round_prefer_floor"),
        "cubic_coeff_a": words.real("cube_coeff", -0.75),
    }
    if axes is not None:
        numbers = words.numbers(3 if version < 11 else 2)
        attributes["axes"] = numbers
        if version >= 11 and target.shape != (len(numbers),):
            raise NoWords
    if by_sizes:
        return words.last("Resize", words.input(0), None, None, target, **attributes)
    if target.reals is not None and not all(map(math.isfinite, target.reals)):
        raise NoWords
    return words.last("Resize", words.input(0), None, target, **attributes)


#: Op to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "Convolution": _convolution,
        "GroupConvolution": _convolution,
        "ConvolutionBackpropData": _transposed,
        "GroupConvolutionBackpropData": _transposed,
        "MaxPool": _pool,
        "AvgPool": _pool,
        "BatchNormInference": _batch_norm,
        "GroupNormalization": _group_norm,
        "Interpolate": _interpolate,
    }
)
