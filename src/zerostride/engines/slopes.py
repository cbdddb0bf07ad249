"""Places operands of PRelu as engines do: where the slope goes, and what is checked."""

from __future__ import annotations

from ..core.alignment import Alignment, Attributes
from ..core.rules import right_aligned
from ..errors import Misfit, Reason
from ..sizes import Asker, Shape
from .aligns import has_zero


def prelu_channel(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PRelu: a vector that fits axis 1 goes there, even if the last axis has its length too.

    Sizes that do not combine are refused along the last axis. Along others the plugin compares
    those of its inner loop or two, which depend on the sizes and on the number of threads; along
    the rest it reads beyond the slope.
    """
    data, slope = shapes
    rank = len(data)
    every = range(rank)
    start = rank - len(slope)
    if len(slope) == 1 and rank > 1 and asker.equal(slope[0], data[1]):
        start = 1
    if has_zero(asker, (*data, *slope)):  # nothing runs, and nothing is checked
        for size, other in zip(data[max(start, 0) :], slope[max(-start, 0) :], strict=False):
            if start >= 0 and not (asker.equal(size, other) or asker.is_one(other)):
                raise Misfit(Reason.WRONG_RESULT, f"{other} against {size} is not checked")
    else:
        _check_slope(asker, data, slope, start)
    if start < 0:
        raise Misfit(Reason.RANK, f"the slope has rank {len(slope)}, more than the data's {rank}")
    return Alignment(rank, (tuple(every), tuple(range(start, start + len(slope)))), ((), every))


def _check_slope(asker: Asker, data: Shape, slope: Shape, start: int) -> None:
    """Raises Misfit for sizes of the data and a slope from axis `start` on that do not combine."""
    unchecked: Misfit | None = None
    for axis in range(max(start, 0), min(start + len(slope), len(data))):
        size, other = data[axis], slope[axis - start]
        if asker.equal(size, other) or asker.is_one(other) or asker.is_one(size):
            continue
        if axis == len(data) - 1:
            raise Misfit(Reason.EXTENT_MISMATCH, f"{other} against {size}, and neither is 1")
        unchecked = Misfit(Reason.OVERRUN, f"{other} against {size} may not be checked")
    if unchecked is not None:
        raise unchecked


def prelu_of_integers(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """As `prelu_channel`, but sizes are checked, and a slope may not enlarge the data."""
    data, slope = shapes
    start = len(data) - len(slope)
    fits = len(slope) == 1 and len(data) > 1 and asker.equal(slope[0], data[1])
    if not fits and not has_zero(asker, (*data, *slope)):
        for size, other in zip(((1,) * -start + data)[max(start, 0) :], slope, strict=True):
            if not (asker.equal(size, other) or asker.is_one(other)):
                raise Misfit(Reason.ONE_WAY, f"{other} of the slope against {size}")
    return prelu_channel(asker, shapes, attributes)


def prelu_channel_of_axes(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """As `prelu_channel`, but a slope with axes for data without any is refused."""
    data, slope = shapes
    if slope and not data:
        raise Misfit(Reason.AXIS_RANGE, f"a slope of {slope} for data of rank 0")
    return prelu_channel(asker, shapes, attributes)


def prelu_axis_1(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PRelu compiled before its sizes are known: a vector goes to axis 1, and both may stretch."""
    data, slope = shapes
    rank = len(data)
    if len(slope) > rank:
        raise Misfit(Reason.RANK, f"the slope has rank {len(slope)}, more than the data's {rank}")
    start = 1 if len(slope) == 1 and rank > 1 else rank - len(slope)
    every = range(rank)
    return Alignment(rank, (tuple(every), tuple(range(start, start + len(slope)))), (every, every))


def channel_slope(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PReLU of PyTorch and Paddle: a slope of one element, or a vector along axis 1."""
    return _slope(asker, shapes, channel=1, vector_data=False)


def one_way_slope(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PRELU of LiteRT: the slope is right-aligned to the data, which do not stretch."""
    rank, mapping = right_aligned(shapes)
    if rank > len(shapes[0]):
        raise Misfit(Reason.RANK, f"the slope has rank {rank}, more than the data's")
    return Alignment(rank, mapping, ((), range(rank)))


def paddle_slope(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """The same; a slope without elements is refused."""
    if len(shapes[1]) == 1 and asker.equal(shapes[1][0], 0):
        raise Misfit(Reason.BAD_EXTENT, "a slope without elements")
    return _slope(asker, shapes, channel=1, vector_data=False)


def mnn_slope(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PReLU of MNN: one number, or a list along axis 1; along axis 0 of a vector.

    An empty list gives results that cannot be read, unless they are empty too.
    """
    data, slope = shapes
    if len(slope) == 1 and asker.equal(slope[0], 0) and not has_zero(asker, data):
        raise Misfit(Reason.BAD_EXTENT, "a slope without elements")
    return _slope(asker, shapes, channel=1, vector_data=True)


def ncnn_slope(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PReLU of ncnn: one number, or a list along the outermost axis."""
    data, slope = shapes
    for size in (*data, *slope):
        asker.forbid(size, 0, lambda: Misfit(Reason.BAD_EXTENT, "it has no empty blobs or weights"))
    return _slope(asker, (data or (1,), slope), channel=0, vector_data=True, scalar=not data)


def _slope(
    asker: Asker,
    shapes: tuple[Shape, ...],
    *,
    channel: int,
    vector_data: bool,
    scalar: bool = False,
) -> Alignment:
    """A slope of one element anywhere, a vector on the channel axis; the result is the data's.

    Args:
        asker: answers for sizes.
        shapes: the data's and the slope's.
        channel: the channel axis.
        vector_data: data of one axis have their channels there; else they have one channel.
        scalar: the data were of rank 0 before the engine gave them an axis.
    """
    data, slope = shapes
    rank = len(data)
    every = tuple(range(rank))
    if len(slope) > 1:
        raise Misfit(Reason.OPERAND_COUNT, f"the slope is one number or a vector, not {slope}")
    single = not slope or asker.is_one(slope[0])
    if not single and (scalar or rank == 0 or (rank == 1 and not vector_data)):
        raise Misfit(Reason.RANK, f"a slope of {slope[0]} elements for data with one channel")
    places: tuple[int | None, ...] = ()
    if slope:
        places = (None if rank == 0 else min(channel, rank - 1),)
    return Alignment(rank, (() if scalar else every, places), ((), every))
