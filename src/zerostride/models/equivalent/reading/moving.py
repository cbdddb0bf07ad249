"""Rows of ops that move elements: each result is a view of its operand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ....sizes.condition import ge
from ....sizes.dim import Dim, Number, dim, plain
from ...onnx_ops.sizes.facts import FAR
from ..terms.joining import runs_of, woven
from ..terms.places import Space, index, own_places, reshaped
from ..terms.term import Term
from .call import Call, Opaque, Row, axis_of


def _same(call: Call) -> list[Term]:
    return [call.arg(0)]


def _transposed(call: Call) -> list[Term]:
    term = call.arg(0)
    rank = len(term.shape)
    order = call.attribute("perm") or tuple(range(rank))[::-1]
    if sorted(order) != list(range(rank)):
        raise Opaque
    return [call.view(term, [index(order.index(axis)) for axis in range(rank)])]


def _reshaped(call: Call) -> list[Term]:
    """Reshape, Flatten, Squeeze, Unsqueeze: the elements stay in row-major order."""
    term = call.arg(0)
    return [call.view(term, reshaped(term.shape, call.builder.space(call.shape)))]


def _expanded(call: Call) -> list[Term]:
    return [call.right(call.arg(0), call.shape)]


def _tiled(call: Call) -> list[Term]:
    term, space = call.arg(0), call.builder.space(call.shape)
    if len(term.shape) != len(call.shape):
        raise Opaque
    places = []
    for axis, (size, whole) in enumerate(zip(term.shape, call.shape, strict=True)):
        if size == 1:
            places.append(dim(0))
        elif size == whole:
            places.append(index(axis))
        else:
            places.append(index(axis) - dim(size) * space.divided(index(axis), size))
    return [call.view(term, places)]


def _cut(call: Call) -> list[Term]:
    term = call.arg(0)
    rank = len(term.shape)
    starts, ends = call.content(1, "starts"), call.content(2, "ends")
    if starts is None or ends is None:
        raise Opaque
    axes, steps = call.whole(3, "axes"), call.whole(4, "steps")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    places = list(own_places(term.shape))
    for start, axis, step in zip(starts, axes, steps, strict=True):
        axis = axis_of(axis, rank)
        size = term.shape[axis]
        places[axis] = _first(call, start, size, step) + step * index(axis)
    return [call.view(term, places)]


def _first(call: Call, start: Number, size: Number, step: int) -> Dim:
    """The first index of a slice, clamped to the axis."""
    space = call.builder.space(call.shape)
    if step < 0 and isinstance(start, int) and start >= FAR:
        return dim(size) - 1
    if space.holds(ge(start, 0)):
        if step < 0:
            return space.least(dim(start), dim(size) - 1)
        return dim(start)  # a slice that begins behind the axis has no element
    if space.holds(ge(-1, start)):
        first = dim(size) + start
        if space.holds(ge(first, 0)):
            return first
        if step > 0 and isinstance(start, int) and isinstance(size, int):
            return dim(0)
    raise Opaque


def _split(call: Call) -> list[Term]:
    term = call.arg(0)
    axis = axis_of(call.attribute("axis", 0), len(term.shape))
    before: Number = 0
    parts = []
    for shape in call.shapes:
        if shape is None:
            raise Opaque
        places = list(own_places(shape))
        places[axis] = dim(before) + (0 if shape[axis] == 1 else index(axis))
        parts.append(call.view(term, places, shape))
        before = before + shape[axis]
    return parts


def _gathered(call: Call) -> list[Term]:
    """Gather by a constant index, or by indices that are evenly apart."""
    term, indices = call.arg(0), call.arg(1)
    axis = axis_of(call.attribute("axis", 0), len(term.shape))
    listed = call.content(1)
    rank = len(indices.shape)
    if listed is None or rank > 1 or not listed:
        raise Opaque
    size = dim(term.shape[axis])
    space = call.builder.space(call.shape)
    numbers = []
    for number in listed:
        if space.holds(ge(number, 0)):
            numbers.append(dim(number))
        elif space.holds(ge(-1, number)):
            numbers.append(size + number)
        else:
            raise Opaque
    place = _place_of(numbers, axis, space)
    before = [index(k) for k in range(axis)]
    after = [index(k + rank - 1) for k in range(axis + 1, len(term.shape))]
    return [call.view(term, [*before, place, *after])]


def _place_of(numbers: Sequence[Dim], axis: int, space: Space) -> Dim:
    """The place of numbers along an axis, if they are evenly apart, or in blocks that are."""
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if len(steps) < 2:
        return numbers[0] + (steps.pop() * index(axis) if steps else 0)
    listed = [plain(number) for number in numbers]
    known = [number for number in listed if isinstance(number, int)]
    runs = runs_of(known) if len(known) == len(listed) else None
    if runs is None:
        raise Opaque
    return numbers[0] + woven(runs, index(axis), 1, space)


def _joined(call: Call) -> list[Term]:
    args = [call.arg(k) for k in range(len(call.args))]
    axis = axis_of(call.attribute("axis", 0), len(call.shape))
    return [call.builder.concat(args, axis, call.shape)]


def _blocks(call: Call) -> list[Term]:
    """DepthToSpace and SpaceToDepth: a reshape, a transpose, a reshape."""
    term, block = call.arg(0), call.attribute("blocksize")
    if len(term.shape) != 4 or not isinstance(block, int) or block < 1:
        raise Opaque
    n, c, h, w = map(dim, term.shape)
    inner: tuple[Number, ...]
    if call.node.op == "DepthToSpace":
        channels = dim(call.shape[1])
        if call.attribute("mode", "DCR") == "CRD":
            inner, order = (n, channels, block, block, h, w), (0, 1, 4, 2, 5, 3)
        else:
            inner, order = (n, block, block, channels, h, w), (0, 3, 4, 1, 5, 2)
    else:
        _, _, height, width = map(dim, call.shape)
        inner, order = (n, c, height, block, width, block), (0, 3, 5, 1, 2, 4)
    builder = call.builder
    split = builder.view(term, inner, reshaped(term.shape, builder.space(inner)))
    moved_shape = tuple(inner[axis] for axis in order)
    moved = builder.view(split, moved_shape, [index(order.index(k)) for k in range(6)])
    return [call.view(moved, reshaped(moved_shape, builder.space(call.shape)))]


MOVES: Mapping[str, Row] = MappingProxyType(
    {
        "Identity": _same,
        "Transpose": _transposed,
        **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshaped),
        "Expand": _expanded,
        "Tile": _tiled,
        "Slice": _cut,
        "Split": _split,
        "Gather": _gathered,
        "Concat": _joined,
        **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    }
)


__all__ = ["MOVES"]
