"""The place of an operand's axis in a node's result: the same axis, another one, or none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..ir.graph import Node, Value

#: The place of the axis in a result; None where the result does not have it.
Follower = Callable[[Node, Value, Value, int], "int | None"]


def new_axis(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """The axis of `after` that is `axis` of `before`, or None.

    Args:
        node: what makes `after` of `before`.
        before: an operand of the node.
        after: a result of the node, whose rank is known.
        axis: an axis of the operand.
    """
    if before.shape is None or after.shape is None:
        return None
    name = "Reduce" if node.onnx_op.startswith("Reduce") else node.onnx_op
    place = _FOLLOWERS.get(name, _same)(node, before, after, axis)
    return place if place is not None and 0 <= place < len(after.shape) else None


def axes_given(node: Node, position: int = 1) -> tuple[int, ...] | None:
    """The axes of a Squeeze, Unsqueeze or reduction: an attribute once, an input today."""
    axes = node.attributes.get("axes", node.attributes.get("axis"))
    if axes is None and position < len(node.inputs):
        value = node.inputs[position]
        axes = value.content if value is not None else None
    if axes is None:
        return None
    listed = axes if isinstance(axes, tuple) else (axes,)
    return listed if all(isinstance(axis, int) for axis in listed) else None


def normal(axes: Sequence[int], rank: int) -> set[int]:
    """The axes, counted from the first axis."""
    return {axis + rank if axis < 0 else axis for axis in axes}


def summed_axis(node: Node, value: Value) -> int:
    """The axis of an operand that a product sums over."""
    rank = len(value.shape or ())
    second = len(node.inputs) > 1 and value is node.inputs[1]
    flipped = bool(node.attributes.get("transB" if second else "transA"))
    return rank - 2 if second != flipped and rank > 1 else rank - 1


def _rank(value: Value) -> int:
    return len(value.shape or ())


def _same(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """Most ops keep axes in place as long as they keep their number."""
    return axis if _rank(before) == _rank(after) else None


def _aligned(node: Node, before: Value, after: Value, axis: int) -> int | None:
    return axis + _rank(after) - _rank(before)


def _lost(node: Node, before: Value, after: Value, axis: int) -> int | None:
    return None


def _transposed(node: Node, before: Value, after: Value, axis: int) -> int | None:
    order = node.attributes.get("perm", tuple(range(_rank(before)))[::-1])
    return order.index(axis) if axis in order else None


def _without(axes: set[int], axis: int) -> int | None:
    return None if axis in axes else axis - sum(gone < axis for gone in axes)


def _squeezed(node: Node, before: Value, after: Value, axis: int) -> int | None:
    axes = axes_given(node)
    if axes is None:
        ones = [k for k, size in enumerate(before.shape or ()) if size == 1]
        return _without(set(ones), axis) if _rank(before) - len(ones) == _rank(after) else None
    return _without(normal(axes, _rank(before)), axis)


def _unsqueezed(node: Node, before: Value, after: Value, axis: int) -> int | None:
    axes = axes_given(node)
    if axes is None:
        return None
    put = normal(axes, _rank(after))
    kept = [place for place in range(_rank(after)) if place not in put]
    return kept[axis] if axis < len(kept) else None


def _reduced(node: Node, before: Value, after: Value, axis: int) -> int | None:
    if node.attributes.get("keepdims", 1):
        return axis
    axes = axes_given(node)
    if axes is None and node.op in ("ArgMax", "ArgMin"):
        axes = (0,)
    return None if axes is None else _without(normal(axes, _rank(before)), axis)


def _reshaped(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """The axis of the same size with as many elements outside it: the same place, if it fits."""
    old, new = before.shape or (), after.shape or ()
    outside = _count(old[:axis])
    inside = _count(old[axis + 1 :])
    fits = [
        place
        for place, size in enumerate(new)
        if size == old[axis]
        and (
            old[:axis] == new[:place]
            or old[axis + 1 :] == new[place + 1 :]
            or (outside is not None and outside == _count(new[:place]))
            or (inside is not None and inside == _count(new[place + 1 :]))
        )
    ]
    return axis if axis in fits else fits[0] if len(fits) == 1 else None


def _count(shape: Sequence[Any]) -> Any:
    return math.prod(shape) if all(size is not None and size != 0 for size in shape) else None


def _joined(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """Ops that join or pick along one axis."""
    along = normal((node.attributes.get("axis", 0),), _rank(before))
    return None if axis in along else _same(node, before, after, axis)


def _gathered(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """The indices' axes replace the axis along which the op picks."""
    data, indices = node.inputs[:2]
    if data is None or indices is None or data.shape is None:
        return None
    (picked,) = normal((node.attributes.get("axis", 0),), len(data.shape))
    if before is not data:
        return picked + axis
    if picked == axis:
        return None
    return axis if axis < picked else axis + len(indices.shape or ()) - 1


def _multiplied(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """A product sums over the rows of its second operand, and over the columns of its first."""
    second = len(node.inputs) > 1 and before is node.inputs[1]
    if axis == summed_axis(node, before):
        return None
    if node.op == "Gemm":
        return None if second else 0
    other = node.inputs[0 if second else 1] if len(node.inputs) > 1 else None
    if other is not None and len(other.shape or ()) == 1:
        return axis if axis < summed_axis(node, before) else axis - 1
    return _aligned(node, before, after, axis)


def _einsum(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """An Einsum keeps an axis where its letter stands in the result."""
    terms, arrow, result = str(node.attributes.get("equation", "")).replace(" ", "").partition("->")
    position = next((k for k, value in enumerate(node.inputs) if value is before), 0)
    words = terms.split(",")
    if not arrow or "." in terms + result or position >= len(words):
        return None
    word = words[position]
    return result.find(word[axis]) if axis < len(word) else None


def _recurrent(node: Node, before: Value, after: Value, axis: int) -> int | None:
    """X is (time, batch, ...) and states are (directions, batch, ...), or `layout` puts it first.

    Y is (time, directions, batch, hidden), or (batch, time, directions, hidden).
    """
    first = bool(node.attributes.get("layout"))
    if axis != (0 if first else 1):
        return None
    return 0 if first else 2 if _rank(after) == 4 else 1


_FOLLOWERS: Mapping[str, Follower] = MappingProxyType(
    {
        "Transpose": _transposed,
        "Squeeze": _squeezed,
        "Unsqueeze": _unsqueezed,
        "Reshape": _reshaped,
        "Flatten": _reshaped,
        "Concat": _joined,
        "Gather": _gathered,
        "GatherElements": _joined,
        "ScatterElements": _joined,
        "GatherND": _lost,
        "MatMul": _multiplied,
        "Gemm": _multiplied,
        "Einsum": _einsum,
        "Expand": _aligned,
        "LSTM": _recurrent,
        "GRU": _recurrent,
        "RNN": _recurrent,
        # What a body returns is not followed, and an engine of samples runs no bodies.
        "If": _lost,
        "Loop": _lost,
        "Scan": _lost,
        "Reduce": _reduced,
        "ArgMax": _reduced,
        "ArgMin": _reduced,
    }
)
