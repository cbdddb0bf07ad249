"""The range of numbers that a model's first ops take its input to have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ...errors import ModelError
from ..ir.graph import Node, Value
from ..ir.site import input_at

#: Ops that pass numbers on.
_PASSING = frozenset(
    {"Cast", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Squeeze"}
    | {"Transpose", "Unsqueeze"}
)
#: Ops that take no number below 0.
_POSITIVE = frozenset({"Acosh", "Log", "Sqrt"})
#: Comparisons, and whether they hold of a first operand that is larger.
_COMPARED: Mapping[str, bool] = MappingProxyType(
    {"Less": False, "LessOrEqual": False, "Greater": True, "GreaterOrEqual": True}
)
#: Bounds that are further apart are none.
_WIDEST = 1e6
#: Nodes that are followed from an input.
_MOST_NODES = 8
#: Pixels are from 0 to 255. A model that subtracts more than 2, or divides by more than 32, has
#: pixels as input: images from 0 to 1 have means and deviations below 1.
_LEAST_MEAN, _LEAST_DEVIATION = 2.0, 32.0
#: Types of lengths and positions, which no pixels have.
_COUNTS = frozenset({"int32", "int64"})
#: A product with a larger number takes what is masked out of a softmax.
_LEAST_MASKED = 1000.0


@dataclass(frozen=True, slots=True)
class Meant:
    """The numbers that an input is meant to have: from `least` to `most`, `whole` or any."""

    least: float
    most: float
    whole: bool = False


_PIXELS, _MASK, _UNIT = Meant(0, 255), Meant(0, 1, whole=True), Meant(0, 1)
Uses = Mapping[int, tuple[tuple[Node, int], ...]]


def input_range(value: Value, uses: Uses) -> Meant | None:
    """The numbers that an input is meant to have; None if no op tells.

    Args:
        value: the input.
        uses: the uses of every value of the graph, by identity, as `Graph.uses` gives them.
    """
    for node, position in _first(value, uses):
        if node.onnx_op == "Gather" and position == 1:
            rows = _rows(node)
            return None if rows is None else Meant(0, rows - 1, whole=True)
        if node.onnx_op == "GroupQueryAttention":
            return _lengths(node, position)
        if node.onnx_op == "Clip":
            return _bounds(node)
        if node.onnx_op == "QuantizeLinear":
            return _quantised(node)
        if node.onnx_op in _POSITIVE and not position:
            return _UNIT
        if node.onnx_op == "Equal":
            numbers = _numbers(node, 1 - position)
            return Meant(numbers[0], numbers[0]) if numbers else None
        if node.onnx_op in _COMPARED:
            return _beside(node, position)
        if node.onnx_op in ("Sub", "Add", "Div", "Mul"):
            if value.dtype in _COUNTS:
                return None
            number = _size(node, 1 - position)
            if number is None:
                return None
            divisor = 1 / number if node.onnx_op == "Mul" and number else number
            if node.onnx_op == "Mul" and number >= _LEAST_MASKED:
                return _MASK
            offset = node.onnx_op in ("Sub", "Add") and number >= _LEAST_MEAN
            if offset or (node.onnx_op in ("Div", "Mul") and divisor >= _LEAST_DEVIATION):
                return _PIXELS
    return None


def _first(value: Value, uses: Uses) -> Iterator[tuple[Node, int]]:
    """Yield the first nodes that compute with an input, and where they read it."""
    for _ in range(_MOST_NODES):
        users = uses.get(id(value), ())
        if not users:
            return
        node, position = users[0]
        if node.onnx_op not in _PASSING or position:
            yield node, position
            if node.onnx_op not in ("Sub", "Add"):  # a division or a product may follow
                return
        value = node.outputs[0]


def _numbers(node: Node, position: int) -> list[float] | None:
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None or not value.constant:
        return None
    try:
        return [float(number) for number in np.asarray(value.data()).reshape(-1)[:64]]
    except (ModelError, TypeError, ValueError):  # no numbers, or strings
        return None


def _size(node: Node, position: int) -> float | None:
    """The largest size among a constant operand's numbers."""
    numbers = _numbers(node, position)
    return max(map(abs, numbers)) if numbers else None


def _rows(node: Node) -> int | None:
    table = node.inputs[0]
    axis = int(node.attributes.get("axis", 0))
    if table is None or not table.constant or table.shape is None or not table.shape:
        return None
    if not -len(table.shape) <= axis < len(table.shape):
        return None
    size = table.shape[axis]
    return size if isinstance(size, int) and size > 0 else None


def _lengths(node: Node, position: int) -> Meant | None:
    """The keys of a sample but one, and the most keys: those of the past, and the new ones."""
    query, past, total = (input_at(node, place) for place in (0, 3, 6))
    shapes = [() if value is None else value.shape or () for value in (query, past)]
    numbers = [shape[axis] for shape, axis in zip(shapes, (1, 2), strict=True) if len(shape) > axis]
    if len(shapes[0]) != 3 or not all(isinstance(size, int) for size in numbers):
        return None
    new, *before = (int(size) for size in numbers if isinstance(size, int))
    listed = _numbers(node, 6) if total is not None else None
    keys = int(listed[0]) if listed else new + sum(before)
    ranges = {5: Meant(new - 1, keys - 1, whole=True), 6: Meant(keys, keys, whole=True)}
    return ranges.get(position) if keys >= new > 0 else None


def _beside(node: Node, position: int) -> Meant | None:
    """Numbers at which a comparison with constants holds of most: in the right quarter of them."""
    other = node.inputs[1 - position]
    if other is None or not other.constant:
        return None
    try:
        numbers = np.asarray(other.data(), np.float64).reshape(-1)
    except ModelError:
        return None
    if not numbers.size or not np.isfinite(numbers).all():
        return None
    low, high = float(numbers.min()), float(numbers.max())
    quarter = (high - low) / 4
    if _COMPARED[node.onnx_op] == (position == 0):
        return Meant(high - quarter, high)
    return Meant(low, low + quarter)


def _bounds(node: Node) -> Meant | None:
    bounds: list[float | None] = []
    for k, name in ((1, "min"), (2, "max")):
        numbers = _numbers(node, k)
        attribute = node.attributes.get(name)
        bounds.append(
            numbers[0] if numbers else attribute if isinstance(attribute, float) else None
        )
    low, high = bounds
    if low is None or high is None or not 0 < high - low < _WIDEST:
        return None
    beyond = (high - low) / 4  # so that both bounds show
    return Meant(low - beyond, high + beyond)


def _quantised(node: Node) -> Meant | None:
    scale = _size(node, 1)
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    kind = np.dtype(zero.dtype) if zero is not None and zero.dtype else np.dtype(np.uint8)
    if scale is None or kind.kind not in "iu" or kind.itemsize > 2:
        return None
    point = (_numbers(node, 2) or [0.0])[0]
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    return Meant((least - point) * scale, (most - point) * scale)


__all__ = ["Meant", "input_range"]
