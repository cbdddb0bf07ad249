"""Rows of ops that pick elements: slices, gathers, scatters, reductions, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....sizes.condition import ge
from ....sizes.dim import Number, bounds, dim, plain
from ....sizes.functions import maximum, minimum
from .facts import (
    FAR,
    Content,
    Fact,
    NoSizes,
    OpCall,
    Open,
    Results,
    Size,
    Unclear,
    at_least,
    count_of,
    is_number,
    place,
    places,
    product,
    rounded_up,
    target_sizes,
)
from .numbers import BINARY, Sure, array, folded, listed


def cut(call: OpCall) -> Results:
    """Slice: along some axes the indices from start to end, by steps."""
    shape = call.shape(0)
    starts, ends = call.whole(1, "starts"), call.whole(2, "ends")
    if starts is None or ends is None or len(starts) != len(ends):
        raise NoSizes("Slice needs as many ends as starts")
    try:
        axes = call.fixed(3, "axes")
    except Unclear:
        return Fact(tuple(Open(0, bounds(size)[1]) for size in shape))
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = call.whole(4)
    steps = (1,) * len(starts) if steps is None else steps
    if not len(axes) == len(steps) == len(starts):
        raise NoSizes("Slice needs as many axes and steps as starts")
    sizes: list[Any] = list(shape)
    axes = places(axes, len(shape))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        sizes[axis] = sliced(shape[axis], start, end, step, call.sure)
    content: Content = None
    values = array(call.fact(0))
    if values is not None and all(isinstance(n, int) for n in (*starts, *ends, *steps)):
        index = [slice(None)] * len(shape)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            index[axis] = slice(start, end, step)
        content = listed(values[tuple(index)])
        if count_of(tuple(sizes)) != (None if content is None else len(content)):
            content = None
    return Fact(tuple(sizes), content)


def sliced(
    size: Number,
    start: Number | None,
    end: Number | None,
    step: Number | None,
    sure: Sure = at_least,
) -> Size:
    """The number of indices in a slice.

    >>> from zerostride.sizes.dim import Dim
    >>> print(sliced(Dim("N"), 1, 2**63 - 1, 1), sliced(Dim("N"), -2, FAR, 1), sliced(7, 0, 5, 2))
    max(0, N - 1) min(2, N) 3
    """
    top = bounds(size)[1]
    if not isinstance(step, int) or step == 0 or start is None or end is None:
        return Open(0, top)
    count = _backwards(size, start, end) if step < 0 else _length(size, start, end, sure)
    if count is None:
        return Open(0, top)
    return rounded_up(count, abs(step))


def _sign(number: Number, sure: Sure) -> int | None:
    """0 if a number counts from the front, −1 if from the end, None if unknown."""
    if sure(number, 0):
        return 0
    high = bounds(number)[1]
    return -1 if high is not None and high < 0 else None


def _far(number: Number) -> bool:
    return isinstance(number, int) and number >= FAR


def _length(size: Number, start: Number, end: Number, sure: Sure) -> Number | None:
    """The number of indices from start to end, both clamped to the axis."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(size)[start:end])
    first, last = _sign(start, sure), _sign(end, sure)
    if first is None or last is None:
        return None
    if first == 0:
        if isinstance(start, int) and start == 0 and last == 0:
            return size if _far(end) else minimum(end, size)
        if _far(end) or end == size:
            return maximum(dim(size) - start, 0)
        if last == 0:
            return maximum(minimum(end, size) - start, 0)
        return maximum(dim(size) + end - start, 0)
    if _far(end) or end == size:
        return minimum(-dim(start), size)
    if last == -1:
        width = dim(end) - start
        return minimum(maximum(dim(size) + end, 0), maximum(width, 0))
    return maximum(minimum(end, size) - maximum(dim(size) + start, 0), 0)


def _backwards(size: Number, start: Number, end: Number) -> Number | None:
    """The number of indices with a step below 0; None where NumPy and ONNX differ."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        if start < -size:
            return None  # ONNX's document clamps start to 0, NumPy gives an empty slice
        return len(range(size)[start:end:-1])
    # Down to the front: from the last index, or from one counted from the end.
    if not (isinstance(end, int) and end <= -FAR):
        return None
    if _far(start) or start == -1:
        return size
    return None


def gather(call: OpCall) -> Results:
    """Gather: the axis is replaced by the axes of the indices."""
    data, indices = call.shape(0), call.fact(1).shape
    axis = call.axis(len(data))
    if indices is None:
        raise Unclear("the rank of the indices is unknown")
    shape = (*data[:axis], *indices, *data[axis + 1 :])
    values, picks = array(call.fact(0)), call.content(1)
    if picks is None:
        return Fact(shape)
    for pick in sorted({pick for pick in picks if isinstance(pick, int)}):
        least = pick + 1 if pick >= 0 else -pick
        call.need(ge(data[axis], least), f"index {pick} of an axis of size {data[axis]}")
    if values is None or not all(isinstance(pick, int) for pick in picks):
        return Fact(shape)
    # np.array: one index of a vector must also give an array.
    return Fact(shape, listed(np.take(values, np.array(picks, np.intp), axis)))


def gather_nd(call: OpCall) -> Results:
    """GatherND: the extent of the indices' last axis is the number of indexed axes."""
    data, indices = call.shape(0), call.shape(1)
    batch = call.integer("batch_dims")
    if not indices or not 0 <= batch < len(indices):
        raise NoSizes(f"GatherND with indices of rank {len(indices)}, batch_dims {batch}")
    depth = plain(indices[-1])
    if not isinstance(depth, int):
        raise Unclear("how many axes are picked from is not known")
    if batch + depth > len(data):
        raise NoSizes(f"GatherND picks from {batch + depth} axes of {len(data)}")
    for axis in range(batch):
        call.same(data[axis], indices[axis], f"GatherND's batch axis {axis}")
    return Fact((*indices[:-1], *data[batch + depth :]))


def gather_elements(call: OpCall) -> Results:
    """GatherElements: the indices' shape."""
    data, indices = call.shape(0), call.shape(1)
    if len(data) != len(indices):
        raise NoSizes(f"GatherElements of ranks {len(data)} and {len(indices)}")
    place(call.integer("axis"), len(data))
    return Fact(indices)


def scatter(call: OpCall) -> Results:
    """ScatterElements: the data's shape; updates have the indices' shape."""
    data = call.shape(0)
    indices, updates = call.fact(1).shape, call.fact(2).shape
    if indices is not None and updates is not None:
        _same_shape(call, indices, updates)
    return Fact(data)


def scatter_nd(call: OpCall) -> Results:
    """ScatterND: the data's shape; updates have the shape that the indices pick."""
    data = call.shape(0)
    indices, updates = call.fact(1).shape, call.fact(2).shape
    if indices and updates is not None and isinstance(indices[-1], int):
        if indices[-1] > len(data):
            raise NoSizes(f"ScatterND picks from {indices[-1]} axes of {len(data)}")
        _same_shape(call, (*indices[:-1], *data[indices[-1] :]), updates)
    return Fact(data)


def _same_shape(call: OpCall, expected: tuple[Number, ...], actual: tuple[Number, ...]) -> None:
    if len(expected) != len(actual):
        raise NoSizes(f"updates of rank {len(actual)}; they must have {len(expected)} axes")
    for axis, (a, b) in enumerate(zip(expected, actual, strict=True)):
        call.same(a, b, f"{call.op}'s updates, axis {axis}")


# Reductions.

#: Reductions whose numbers are followed.
_FOLDS = {"ReduceSum": "Add", "ReduceProd": "Mul", "ReduceMax": "Max", "ReduceMin": "Min"}


def reduce(call: OpCall) -> Results:
    """Reductions: axes become 1, or are removed."""
    fact = call.fact(0)
    keep = bool(call.integer("keepdims", 1))
    try:
        axes_listed = call.fixed(1, "axes")
    except Unclear:
        if fact.shape is None:
            raise
        gone = 0 if keep else len(call.whole(1, "axes") or ())
        return Fact(tuple(Open() for _ in fact.shape[gone:]))
    if not axes_listed and call.integer("noop_with_empty_axes"):
        return fact
    if fact.shape is None:
        if not axes_listed and not keep:
            return Fact(())
        raise Unclear("the rank of an operand is unknown")
    rank = len(fact.shape)
    axes = tuple(range(rank)) if not axes_listed else places(axes_listed, rank)
    shape = _without(fact.shape, axes, keep)
    values, op = array(fact), BINARY.get(_FOLDS.get(call.op, ""))
    if values is None or op is None or not values.size:
        return Fact(shape)
    for axis in axes:
        values = folded(op, values, axis)
    content = listed(values)
    return Fact(shape, content if count_of(shape) is not None else None)


def _without(shape: tuple[Number, ...], axes: tuple[int, ...], keep: bool) -> tuple[Number, ...]:
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def arg_extreme(call: OpCall) -> Results:
    """ArgMax, ArgMin: one axis becomes 1, or is removed."""
    shape = call.shape(0)
    axis = call.axis(len(shape))
    return Fact(_without(shape, (axis,), bool(call.integer("keepdims", 1))))


def top(call: OpCall) -> Results:
    """TopK: k along one axis; values and indices."""
    shape = call.shape(0)
    axis = call.axis(len(shape), -1)
    listed_ = call.content(1) if call.has(1) else call.integers("k")
    count = listed_[0] if listed_ is not None and len(listed_) == 1 else None
    if not is_number(count):
        extent: Size = Open(0, bounds(shape[axis])[1])
    else:
        call.need(ge(count, 0), f"TopK takes {count}")
        call.need(ge(shape[axis], count), f"TopK takes {count} of {shape[axis]}")
        extent = count
    fact = Fact((*shape[:axis], extent, *shape[axis + 1 :]))
    return fact, fact


def nonzero(call: OpCall) -> Results:
    """NonZero: one row for each axis, one column for each element that is not 0."""
    shape = call.fact(0).shape
    total = None if shape is None else product(shape)
    most = total if isinstance(total, int) else None
    return Fact((len(shape) if shape else Open(), Open(0, most if shape else None)))


def one_hot(call: OpCall) -> Results:
    """OneHot: one more axis, as long as the number of classes."""
    shape = call.shape(0)
    axis = place(call.integer("axis", -1), len(shape) + 1)
    depth = call.content(1)
    classes = depth[0] if depth is not None and len(depth) == 1 else None
    extent: Size = Open()
    if is_number(classes):
        extent = classes
    return Fact((*shape[:axis], extent, *shape[axis:]))


def compress(call: OpCall) -> Results:
    """Compress: the elements that a list of truth values picks, along an axis or flat."""
    if call.attributes.get("axis") is None:
        return Fact((Open(),))
    shape = call.shape(0)
    axis = call.axis(len(shape))
    return Fact((*shape[:axis], Open(0, bounds(shape[axis])[1]), *shape[axis + 1 :]))


def unique(call: OpCall) -> Results:
    """Unique: along an axis, or flat; the indices are vectors."""
    count = Open()
    if call.attributes.get("axis") is None:
        shape = call.fact(0).shape
        first: tuple[Any, ...] = (count,)
        whole: Size = Open() if shape is None else product(shape)
    else:
        data = call.shape(0)
        axis = call.axis(len(data))
        first, whole = (*data[:axis], count, *data[axis + 1 :]), data[axis]
    return Fact(first), Fact((count,)), Fact((whole,)), Fact((count,))


def select_boxes(call: OpCall) -> Results:
    """NonMaxSuppression: three numbers for each kept box."""
    return Fact((Open(), 3))


def grid_sample(call: OpCall) -> Results:
    """GridSample: batch and channels of the data, the plane of the grid."""
    data, grid = call.shape(0), call.shape(1)
    if len(grid) != len(data) or len(data) < 3:
        raise NoSizes(f"GridSample of ranks {len(data)} and {len(grid)}")
    call.same(data[0], grid[0], "GridSample's batch")
    call.same(grid[-1], len(data) - 2, "GridSample's coordinates")
    return Fact((*data[:2], *grid[1:-1]))


def roi_align(call: OpCall) -> Results:
    """RoiAlign: a plane of fixed size for each region."""
    data, regions = call.shape(0), call.shape(1)
    if len(data) != 4 or not regions:
        raise NoSizes(f"RoiAlign of a tensor of rank {len(data)}")
    height, width = call.integer("output_height", 1), call.integer("output_width", 1)
    return Fact((regions[0], data[1], height, width))


def recurrent(call: OpCall) -> Results:
    """LSTM, GRU, RNN: all states, the last state, and an LSTM's last cell."""
    data = call.shape(0)
    if len(data) != 3:
        raise NoSizes(f"{call.op} of a tensor of rank {len(data)}")
    both = str(call.attributes.get("direction", "forward")) == "bidirectional"
    directions = 2 if both else 1
    hidden: Size = Open()
    weights = call.fact(2).shape if call.has(2) else None
    if "hidden_size" in call.attributes:
        hidden = call.integer("hidden_size")
    elif weights is not None and len(weights) == 3:
        hidden = weights[-1]
    if call.integer("layout"):
        last = Fact((data[0], directions, hidden))
        return Fact((data[0], data[1], directions, hidden)), last, last
    last = Fact((directions, data[1], hidden))
    return Fact((data[0], directions, data[1], hidden)), last, last


def loss(call: OpCall) -> Results:
    """Losses: one number, or one for each target; then the log-probabilities."""
    scores, target = call.fact(0).shape, call.fact(1).shape
    each = str(call.attributes.get("reduction", "mean")) == "none"
    return Fact(target if each else ()), Fact(scores)


def window(call: OpCall) -> Results:
    """Window functions: as many numbers as the operand gives."""
    size = call.content(0)
    if size is None or len(size) != 1 or not is_number(size[0]):
        return Fact((Open(),))
    return Fact(target_sizes(call, (size[0],)))
