"""Parts, rows and orders of axes, in the few forms that converters read as they are meant.

A converter may take the first axis for samples. So the numbers lie in one sample, (1, before,
axis, after), while one axis of them is cut, joined or moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from .rewriting import Rewriting, Shape, attributes_of

if TYPE_CHECKING:
    import onnx

#: Copies of a tensor that stand for an Expand, and slices that stand for a Gather.
_MOST_COPIES = 16
#: Axes that converters and engines permute.
_MOST_AXES = 4
#: Modes of Pad that take the data's own numbers; NumPy has them by the same names.
_MARGINS = frozenset({"edge", "reflect", "wrap"})


# --- Parts -------------------------------------------------------------------------------------


def part(
    graph: Rewriting, name: str, shape: Shape, axis: int, start: int, end: int, step: int = 1
) -> str:
    """Numbers from start to end along an axis, in steps; (1, before, numbers after)."""
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    bounds = [start * after, end * after], [1], [2]
    name = graph.reshaped(name, (1, before, shape[axis] * after))
    if step > 1:
        # The axis is split into (n/step, step), and one of each step is kept.
        name = graph.reshaped(name, (1, before, shape[axis] // step, step * after))
        bounds = [(start % step) * after, (start % step + 1) * after], [1], [3]
    cut, _, axes = bounds
    numbers = (graph.constant(np.array([n], np.int64)) for n in (*cut, *axes))
    return graph.add("Slice", name, *numbers)


def sliced(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A slice along an axis after the other, each in one sample."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    cuts = _cuts(graph, node, shape) if shape is not None else None
    if shape is None or result is None or cuts is None or not math.prod(result):
        return False
    known = len(cuts) == 1 and cuts[0][0] and cuts[0][3] == 1  # behind the first, in steps of one
    if not cuts or (known and len(shape) <= _MOST_AXES):
        return False
    name = node.input[0]
    for axis, first, last, step in cuts:
        places = range(first, last, step)
        if _is_one_part(shape[axis], places):
            name = part(graph, name, shape, axis, first, last, step)
        else:
            parts = [part(graph, name, shape, axis, place, place + 1) for place in places]
            name = graph.add("Concat", *parts, axis=2)
        shape = (*shape[:axis], len(places), *shape[axis + 1 :])
    graph.reshaped(name, result, to=node.output[0])
    return True


def _cuts(
    graph: Rewriting, node: onnx.NodeProto, shape: Shape
) -> list[tuple[int, int, int, int]] | None:
    """(axis, start, end, step) of each axis that is cut; None if they are too many parts."""
    names = [*node.input[1:], "", ""][:4]
    arrays = [graph.array(name) if name else None for name in names]
    if any(name and array is None for name, array in zip(names, arrays, strict=True)):
        return None
    starts, ends = (array if array is not None else np.zeros(0) for array in arrays[:2])
    axes = np.arange(len(starts)) if arrays[2] is None else arrays[2]
    steps = np.ones(len(starts)) if arrays[3] is None else arrays[3]
    cuts = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[int(axis)]
        first, last, stride = slice(int(start), int(end), int(step)).indices(size)
        places = range(first, last, stride)
        if not _is_one_part(size, places) and not 0 < len(places) <= _MOST_COPIES:
            return None
        if (first, last, stride) != (0, size, 1):
            cuts.append((int(axis) % len(shape), first, last, stride))
    return cuts


def _is_one_part(size: int, places: range) -> bool:
    """Whether places follow one another, or are one of each step of the whole axis."""
    step = places.step
    return step == 1 or (step > 1 and size % step == 0 and len(places) == size // step)


def split(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A split is a slice for each result."""
    shape = graph.shape(node.input[0])
    results = [graph.shape(name) for name in node.output]
    if shape is None or any(result is None for result in results):
        return False
    axis, start = attributes_of(node).get("axis", 0) % len(shape), 0
    for name, result in zip(node.output, results, strict=True):
        end = start + (result or ())[axis]
        graph.reshaped(part(graph, node.input[0], shape, axis, start, end), result or (), to=name)
        start = end
    return True


# --- Rows --------------------------------------------------------------------------------------


def gather(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Constant rows are slices; rows of a table that come as samples are said to be."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    rows = graph.array(node.input[1])
    if shape is None or result is None or not math.prod(result):
        return False
    axis = attributes_of(node).get("axis", 0) % len(shape)
    if rows is None:
        return _rows_of_a_table(graph, node, axis, result)
    if graph.array(node.input[0]) is not None:
        return False
    taken = [int(row) % shape[axis] for row in rows.reshape(-1)]
    return _rows(graph, node, axis, shape, taken, result)


def _rows_of_a_table(graph: Rewriting, node: onnx.NodeProto, axis: int, result: Shape) -> bool:
    """A pool over one number each, which changes nothing, tells pnnx the axis of samples."""
    table = graph.array(node.input[0])
    if table is None or table.ndim != 2 or axis or len(result) != 3 or result[0] != 1:
        return False
    if table.dtype != np.float32:
        return False
    rows = graph.add("Gather", *node.input)
    graph.add("MaxPool", rows, to=node.output[0], kernel_shape=[1])
    return True


def gather_nd(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Constant places of leading axes are rows of these axes in one."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    places = graph.array(node.input[1])
    if shape is None or result is None or places is None or not math.prod(result):
        return False
    if attributes_of(node).get("batch_dims", 0) or graph.array(node.input[0]) is not None:
        return False
    count = places.shape[-1]
    sizes = np.array(shape[:count])
    columns = (places.reshape(-1, count) % sizes).T
    taken = np.ravel_multi_index(tuple(columns), tuple(sizes)) if count else np.zeros(1, int)
    leading = math.prod(shape[:count]), *shape[count:]
    return _rows(graph, node, 0, leading, [int(row) for row in taken], result)


def _rows(
    graph: Rewriting, node: onnx.NodeProto, axis: int, shape: Shape, taken: list[int], result: Shape
) -> bool:
    """Writes rows along an axis: a slice for those that follow one another."""
    ends = [k for k, (row, later) in enumerate(pairwise(taken), 1) if later != row + 1]
    runs = [*pairwise([0, *ends, len(taken)])]
    if len(runs) > _MOST_COPIES:
        return False
    parts = [
        part(graph, node.input[0], shape, axis, taken[first], taken[last - 1] + 1)
        for first, last in runs
    ]
    name = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=2)
    graph.reshaped(name, result, to=node.output[0])
    return True


def expanded(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """An axis of 1 that is repeated a few times is a tensor beside itself."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if shape is None or result is None or len(shape) != len(result):
        return False
    axes = [axis for axis, size in enumerate(shape) if size != result[axis]]
    if len(axes) != 1 or not 1 < result[axes[0]] <= _MOST_COPIES:
        return False
    before, after = math.prod(shape[: axes[0]]), math.prod(shape[axes[0] + 1 :])
    one = graph.reshaped(node.input[0], (1, before, after))
    copies = graph.add("Concat", *[one] * result[axes[0]], axis=2)
    graph.reshaped(copies, result, to=node.output[0])
    return True


def joined(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Tensors along the first axis lie one behind the other."""
    shapes, result = [graph.shape(name) for name in node.input], graph.shape(node.output[0])
    if result is None or any(shape is None for shape in shapes):
        return False
    if attributes_of(node)["axis"] % len(result) or len(result) < 2:
        return False
    if all(graph.array(name) is not None for name in node.input):
        return False
    pairs = zip(node.input, shapes, strict=True)
    lines = [graph.reshaped(name, (1, math.prod(shape or ()))) for name, shape in pairs]
    graph.reshaped(graph.add("Concat", *lines, axis=1), result, to=node.output[0])
    return True


def padded(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Margins of the data's own numbers are rows taken again; beside constants, some are cuts."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    pads = graph.array(node.input[1]) if len(node.input) > 1 else None
    mode: Any = attributes_of(node).get("mode", b"constant").decode()
    if shape is None or result is None or pads is None or len(pads) != 2 * len(shape):
        return False
    name = node.input[0]
    if mode == "constant" and (pads < 0).any():
        lines = [np.maximum(-pads[: len(shape)], 0), shape + np.minimum(pads[len(shape) :], 0)]
        cuts = [graph.constant(line.astype(np.int64)) for line in lines]
        margins = graph.constant(np.maximum(pads, 0))
        graph.repeat(node, [graph.add("Slice", name, *cuts), margins, *node.input[2:]])
        return True
    if mode not in _MARGINS:
        return False
    for axis in range(len(shape)):
        if not pads[axis] and not pads[axis + len(shape)]:
            continue
        first, last = int(pads[axis]), int(pads[axis + len(shape)])
        rows = np.arange(max(-first, 0), shape[axis] - max(-last, 0))  # below 0: so many fewer
        rows = np.pad(rows, (max(first, 0), max(last, 0)), mode=mode)
        name = graph.add("Gather", name, graph.constant(rows), axis=axis)
    graph.add("Identity", name, to=node.output[0])
    return True


# --- Orders ------------------------------------------------------------------------------------


def moved(
    graph: Rewriting, name: str, sizes: Sequence[int], order: Sequence[int], to: str | None = None
) -> str:
    """Axes in another order, by transposes of three axes behind one of 1.

    Args:
        graph: what writes them.
        name: a tensor.
        sizes: of its axes, as they are read.
        order: the axes of the result.
        to: the result's name, if it is the caller's.
    """
    blocks = _blocks_of(sizes, order)
    place = {block: k for k, block in enumerate(sorted(blocks))}
    lengths = [math.prod(sizes[axis] for axis in block) for block in sorted(blocks)]
    now, goal = [*range(len(blocks))], [place[block] for block in blocks]
    few = len(now) < _MOST_AXES
    for shape, perm in [(lengths, goal)] if few else _steps(now, goal, lengths):
        whole = graph.reshaped(name, (1, *shape))
        name = graph.add("Transpose", whole, perm=[0, *(k + 1 for k in perm)])
    return graph.reshaped(name, [sizes[axis] for axis in order], to=to)


def _blocks_of(sizes: Sequence[int], order: Sequence[int]) -> list[tuple[int, ...]]:
    """Axes that stay beside one another, in their new order; axes of 1 go anywhere."""
    blocks: list[tuple[int, ...]] = []
    kept = [axis for axis in range(len(sizes)) if sizes[axis] != 1]
    place = {axis: k for k, axis in enumerate(kept)}
    for axis in (axis for axis in order if sizes[axis] != 1):
        if blocks and place[blocks[-1][-1]] + 1 == place[axis]:
            blocks[-1] = (*blocks[-1], axis)
        else:
            blocks.append((axis,))
    return blocks


def _steps(
    now: list[int], goal: Sequence[int], lengths: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield a transpose, (passed, axis, behind), for each axis that comes to the front.

    Axes at the end of the goal that are in its order among themselves stay.
    """
    places = [now.index(axis) for axis in goal]
    ordered = [one < later for one, later in pairwise(places)]
    moving = len(ordered) - ordered[::-1].index(False) if False in ordered else 0
    for axis in reversed(goal[:moving]):
        place = now.index(axis)
        if place:
            parts = now[:place], [axis], now[place + 1 :]
            yield [math.prod(lengths[n] for n in part) for part in parts], [1, 0, 2]
            now = [axis, *parts[0], *parts[2]]


def transposed(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Axes that stay together are one; more than four take several steps."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if shape is None or result is None or len(shape) <= _MOST_AXES or not math.prod(shape):
        return False
    order = attributes_of(node).get("perm", [*range(len(shape))][::-1])
    moved(graph, node.input[0], shape, order, to=node.output[0])
    return True


def in_order(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A result as one line for each sample, and in its shape again.

    A converter that lays channels last keeps them so until a reshape, and may lay the operands of a
    later op otherwise.
    """
    shape = graph.shape(node.output[0])
    if not _has_order(shape) or len(node.output) > 1:
        return False
    _laid(graph, graph.again(node), shape, to=node.output[0])
    return True


def operands_in_order(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Operands of several shapes, each laid as :func:`in_order` does."""
    shapes = [graph.shape(name) for name in node.input]
    if len(set(shapes)) == 1 or not any(map(_has_order, shapes)):
        return False
    operands = zip(node.input, shapes, strict=True)
    laid = [_laid(graph, name, shape) if _has_order(shape) else name for name, shape in operands]
    graph.repeat(node, laid)
    return True


def _has_order(shape: Shape | None) -> TypeGuard[Shape]:
    return shape is not None and len(shape) > 2 and math.prod(shape) > 0


def _laid(graph: Rewriting, name: str, shape: Shape, to: str | None = None) -> str:
    line = graph.reshaped(name, (shape[0], math.prod(shape[1:])))
    return graph.reshaped(line, shape, to=to)


def blocks(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """Blocks of an image become channels, or channels blocks, in ONNX's order.

    pnnx takes both for PyTorch's order, in which the channels come first.
    """
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    attributes = attributes_of(node)
    if shape is None or result is None or attributes.get("mode", b"DCR") != b"DCR":
        return False
    (batch, channels, height, width), size = shape, attributes["blocksize"]
    if node.op_type == "SpaceToDepth":
        sizes = (batch, channels, height // size, size, width // size, size)
        order = (0, 3, 5, 1, 2, 4)
    else:
        sizes = (batch, size, size, channels // size**2, height, width)
        order = (0, 3, 4, 1, 5, 2)
    graph.reshaped(moved(graph, node.input[0], sizes, order), result, to=node.output[0])
    return True


def reshaped_again(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A reshape of a reshape is one."""
    maker, result = graph.makers.get(node.input[0]), graph.shape(node.output[0])
    if result is None or maker is None or maker.op_type not in _RESHAPES:
        return False
    graph.reshaped(maker.input[0], result, to=node.output[0])
    return True


def even_reshaped(graph: Rewriting, node: onnx.NodeProto) -> bool:
    """A reshape of even axes is one of the operands of the ops before it.

    A converter that tells the order of axes by their sizes takes a tensor of (n, k, k) for one with
    the channels last, but for the result of a product.
    """
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if shape is None or result is None or not _is_even(shape):
        return False
    name = _before(graph, node.input[0], shape, result)
    if name is None:
        return False
    graph.add("Identity", name, to=node.output[0])
    return True


def _is_even(shape: Shape) -> bool:
    return len(shape) > 2 and shape[1] > 1 and len({*shape[1:]}) == 1


def _before(graph: Rewriting, name: str, shape: Shape, result: Shape) -> str | None:
    """A tensor in another shape, that is given to what makes it; None where it is of another op."""
    array, maker = graph.array(name), graph.makers.get(name)
    if array is not None:
        whole = np.broadcast_to(array, shape).reshape(result)
        for axis in range(whole.ndim):
            first = whole.take([0], axis)
            whole = first if np.array_equal(np.broadcast_to(first, whole.shape), whole) else whole
        return graph.constant(whole)
    if maker is None or graph.shape(name) != shape:
        return None
    if maker.op_type in _RESHAPES or maker.op_type in _PRODUCTS:
        source = maker.input[0] if maker.op_type in _RESHAPES else name
        return graph.reshaped(source, result)
    if maker.op_type not in _ELEMENTWISE:
        return None
    operands = [_before(graph, operand, shape, result) for operand in maker.input]
    if None in operands:
        return None
    return graph.add(maker.op_type, *filter(None, operands), **attributes_of(maker))


#: Ops of one number of each operand.
_ELEMENTWISE = frozenset(
    {"Abs", "Add", "Div", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu"}
    | {"Mul", "Neg", "Relu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"}
)
_PRODUCTS = frozenset({"Gemm", "MatMul"})
#: Ops that change a shape and no number.
_RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})

__all__ = [
    "blocks",
    "even_reshaped",
    "expanded",
    "gather",
    "gather_nd",
    "in_order",
    "joined",
    "moved",
    "padded",
    "part",
    "reshaped_again",
    "sliced",
    "split",
    "transposed",
]
