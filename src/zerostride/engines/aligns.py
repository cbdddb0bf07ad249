"""Align functions of single engines, measured on them; `core.rules` has those of documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.alignment import Alignment, Attributes
from ..core.rules import (
    NCNN_RANK,
    align_ncnn,
    align_numpy,
    align_paddle,
    align_unidirectional,
    check_axes,
    check_fits,
    one_way_axis,
    right_aligned,
)
from ..errors import Misfit, Reason
from ..sizes import Asker, Shape, Size

#: Axes of a target of expand: "Expected expand_shape.size() <= 8" in its shape inference.
PADDLE_TARGET_RANK = 8


def openvino_pdpd(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PDPD as OpenVINO infers it: trailing ones of B count, and zeros are compared by size.

    Along an axis B may not be larger than A, so B's 1 does not stretch to 0, but A's 1 becomes B's
    0.
    """
    a, b = shapes
    axis = one_way_axis(a, b, attributes["axis"])
    check_fits(axis, len(b), len(a))
    mapping = tuple(range(axis, axis + len(b)))
    shrinks = frozenset(k for k, size in zip(mapping, b, strict=True) if asker.equal(size, 0))
    grows = frozenset(k for k in mapping if not asker.equal(a[k], 0))
    return Alignment(len(a), (tuple(range(len(a))), mapping), (shrinks, grows))


def openvino_bidirectional(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """Bidirectional as OpenVINO runs it: the data's 1 stays 1 against a target of 0.

    The data's 0 against a target of 1 is refused.
    """
    alignment = align_numpy(asker, shapes, attributes)
    data, target = shapes
    first = len(data) - len(target)  # the data's axis that lies on the target's axis 0
    lands: list[int | None] = list(alignment.mapping[1])
    for k, size in enumerate(target):
        if first + k < 0:
            continue
        above = data[first + k]
        if asker.equal(size, 0) and asker.is_one(above):
            lands[k] = None
        elif asker.equal(above, 0) and asker.is_one(size):
            raise Misfit(Reason.ONE_WAY, "0 of the data against a target of 1")
    return Alignment(alignment.rank, (alignment.mapping[0], tuple(lands)), alignment.stretch)


def openvino_explicit(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Explicit as OpenVINO runs it: rank-0 data may carry one axis where the target is 1.

    Repeated axes are accepted. Of those only the last may have an extent other than 1; otherwise
    the result is garbage. Sizes are checked first.
    """
    data, target = shapes
    axes = attributes["axes_mapping"]
    scalar = not data and len(axes) == 1
    if len(axes) != len(data) and not scalar:
        raise Misfit(
            Reason.ATTRIBUTE, f"axes_mapping has {len(axes)} entries for {len(data)} data axes"
        )
    check_axes(tuple(sorted(set(axes))), len(target))
    if list(axes) != sorted(axes):
        raise Misfit(
            Reason.TRANSPOSES, f"axes_mapping {list(axes)} is not sorted; that would transpose"
        )
    if scalar and not asker.is_one(target[axes[0]]):
        raise Misfit(Reason.ATTRIBUTE, "rank-0 data carries an axis only where the target is 1")
    every = tuple(range(len(target)))
    if scalar or len(set(axes)) == len(axes):
        return Alignment(len(target), (axes if data else (), every), (every, ()))
    for size, axis in zip(data, axes, strict=True):
        if not (asker.equal(size, target[axis]) or asker.is_one(size)):
            raise Misfit(Reason.EXTENT_MISMATCH, f"{size} against {target[axis]} on axis {axis}")
    lands: list[int | None] = list(axes)
    for k, axis in enumerate(axes[:-1]):
        if axis == axes[k + 1]:
            if not asker.is_one(data[k]):
                raise Misfit(
                    Reason.DUPLICATE_AXES, f"axes_mapping {list(axes)} repeats axis {axis}"
                )
            lands[k] = None
    return Alignment(len(target), (tuple(lands), every), (every, ()))


def jax_dims(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """jax.lax.broadcast_in_dim: axes are distinct and in range; unsorted ones would transpose.

    With no dimensions and data of the target's rank, it returns the data, whatever the target.
    """
    data, target = shapes
    axes = attributes["axes_mapping"]
    if data and not axes and len(data) == len(target):
        axes = tuple(range(len(data)))
        if not all(map(asker.equal, data, target)):
            raise Misfit(
                Reason.WRONG_RESULT, f"without dimensions the data come back as {tuple(data)}"
            )
    if len(axes) != len(data):
        raise Misfit(
            Reason.ATTRIBUTE, f"broadcast_dimensions has {len(axes)} entries, data {len(data)} axes"
        )
    check_axes(axes, len(target))
    every = tuple(range(len(target)))
    return Alignment(len(target), (axes, every), (every, ()))


def equal_ranks_or_scalar(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """jax.lax's element-wise functions: operands of one rank, or of rank 0."""
    rank = max(map(len, shapes))
    if any(len(shape) not in (0, rank) for shape in shapes):
        raise Misfit(Reason.RANK, "ranks differ and neither is 0")
    mapping = tuple(tuple(range(len(shape))) for shape in shapes)
    return Alignment(rank, mapping, (range(rank),) * len(shapes))


def equal_ranks(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Axis by axis: operands have one rank, scalars included."""
    rank = max(map(len, shapes))
    if any(len(shape) != rank for shape in shapes):
        ranks = " and ".join(str(len(shape)) for shape in shapes)
        raise Misfit(Reason.RANK, f"ranks {ranks} differ; it takes operands of one rank")
    return Alignment(rank, (tuple(range(rank)),) * len(shapes), (range(rank),) * len(shapes))


def identical(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Nothing stretches, and the ranks must be equal; `resolve` refuses sizes that differ."""
    alignment = equal_ranks(asker, shapes, attributes)
    return Alignment(alignment.rank, alignment.mapping, ((),) * len(shapes))


def identical_or_scalar_condition(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """A selection whose condition is one truth value, or has the shape of the other operands."""
    condition, *rest = shapes
    alignment = identical(asker, tuple(rest), attributes)
    if len(condition) not in (0, alignment.rank):
        raise Misfit(
            Reason.RANK, f"the condition has rank {len(condition)}, not {alignment.rank} or 0"
        )
    places = (tuple(range(len(condition))), *alignment.mapping)
    return Alignment(alignment.rank, places, ((),) * len(shapes))


#: The meaning of a tensor's axes (batch, height, width, channels) by its rank:
#: tflite/delegates/gpu/common/model_builder_helper.cc, ExtractTensorShape.
_BHWC = ((), (0,), (0, 3), (0, 2, 3), (0, 1, 2, 3))


def bhwc(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """LiteRT's GPU delegate lays out each operand separately as batch, height, width, channels.

    So operands of unequal ranks align in unexpected ways.
    """
    rank = max(map(len, shapes))
    if rank >= len(_BHWC):
        raise Misfit(Reason.RANK_LIMIT, f"{rank} axes; the most it carries is {len(_BHWC) - 1}")
    if rank and not all(shapes):
        raise Misfit(Reason.RANK, "a tensor of rank 0 is refused unless it is a constant")
    places = [tuple(_BHWC[rank].index(axis) for axis in _BHWC[len(shape)]) for shape in shapes]
    return Alignment(rank, tuple(places), ((), *[range(rank)] * (len(shapes) - 1)))


def bhwc_sum(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ADD and MUL of LiteRT's GPU delegate, which checks their ranks before it lays them out."""
    _check_sum(asker, shapes)
    return bhwc(asker, shapes, attributes)


def constant_sum(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ADD and MUL of a constant, which is aligned right after the same check."""
    _check_sum(asker, shapes)
    rank, mapping = right_aligned(shapes)
    every = range(rank)
    return Alignment(rank, mapping, (every,) * len(shapes))


def _check_sum(asker: Asker, shapes: tuple[Shape, ...]) -> None:
    """Ranks above 1 are equal, but for three pairs of shapes.

    Source: tflite/tools/versioning/gpu_compatibility.cc, CheckAddMulBroadcastCompatibility.
    """
    short, long = sorted(shapes[:2], key=len)
    if len(short) in (0, 1, len(long)):
        return
    if len(long) == 4:
        single = asker.is_one(long[0])
        if single and (len(short) == 3 or all(map(asker.is_one, short))):
            return
        if len(short) == 2 and asker.equal(long[0], short[0]) and asker.equal(long[3], short[1]):
            return
    detail = f"ADD and MUL of ranks {len(long)} and {len(short)} are not taken in these sizes"
    raise Misfit(Reason.RANK, detail)


def bhwc_select(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """SELECT_V2 of LiteRT's GPU delegate: values have the result's shape, or are one number.

    Only the condition stretches, laid out as in `bhwc`.
    """
    rank = max(map(len, shapes))
    condition = bhwc(asker, (shapes[0], (1,) * rank), attributes)
    places: list[tuple[int | None, ...]] = [condition.mapping[0]]
    stretch: list[range | tuple[int, ...]] = [range(rank)]
    for k, shape in enumerate(shapes[1:], start=1):
        number = len(shape) < 2 and all(map(asker.is_one, shape))
        if not number and len(shape) != rank:
            detail = f"operand {k} has rank {len(shape)}, the result {rank}; it must be one number"
            raise Misfit(Reason.RANK, detail)
        if not number and rank == 2:
            raise Misfit(Reason.RANK, f"operand {k} has two axes; it takes 1, 3 or 4")
        places.append((None,) * len(shape) if number else tuple(range(rank)))
        stretch.append(range(rank) if number else ())
    return Alignment(rank, tuple(places), tuple(stretch))


def ncnn(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ncnn's BinaryOp: the documented alignment, without empty blobs.

    Each result extent is the larger of the two, so 0 against n is n, and the kernel reads outside
    of the operand. Only if both are 0 is nothing allocated, and ncnn refuses.
    """
    alignment = align_ncnn(asker, shapes, attributes)
    if alignment.rank <= NCNN_RANK:
        for size in (*shapes[0], *shapes[1]):
            asker.forbid(size, 0, lambda: _empty_blob(asker, shapes, alignment))
    return alignment


def ncnn_not_empty(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """The documented alignment; an empty blob is refused."""
    for size in (*shapes[0], *shapes[1]):
        asker.forbid(size, 0, lambda: Misfit(Reason.BAD_EXTENT, "it has no empty blobs"))
    return align_ncnn(asker, shapes, attributes)


def ncnn_one_way(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ncnn before 20230816: one operand stretches, to the other's shape, from the outermost axis.

    The one that stretches is a single number, the operand of fewer axes, or the smaller one.
    """
    ranks = [max(len(shape), 1) for shape in shapes]
    if max(ranks) > NCNN_RANK:
        return align_ncnn(asker, shapes, attributes)  # which no Mat holds
    for size in (*shapes[0], *shapes[1]):
        asker.forbid(size, 0, lambda: _empty_result(asker, shapes))
    single = [all(map(asker.is_one, shape)) for shape in shapes]
    if single[0] != single[1]:
        moves = single.index(True)
    elif ranks[0] != ranks[1]:
        moves = 1 if single[0] or ranks[0] > ranks[1] else 0
    else:
        pairs = zip(*shapes, strict=False)
        moves = 0 if any(asker.is_one(a) and not asker.is_one(b) for a, b in pairs) else 1
    rank = ranks[1 - moves]
    if not single[moves]:
        _read_in_order(asker, shapes[moves], shapes[1 - moves])
    mapping: list[tuple[int | None, ...]] = [tuple(range(len(shape))) for shape in shapes]
    if single[moves] and ranks[moves] > rank:
        mapping[moves] = (None,) * ranks[moves]
    stretch: list[Iterable[int]] = [range(rank), range(rank)]
    stretch[1 - moves] = ()
    return Alignment(rank, tuple(mapping), tuple(map(tuple, stretch)))


def _read_in_order(asker: Asker, moving: Shape, whole: Shape) -> None:
    """Raises Misfit for an operand with a 1 before other sizes that ncnn's kernels do not skip.

    Ones at both ends are read rightly unless the outermost axis is packed by fours.
    """
    ones = [asker.is_one(size) for size in moving]
    split = ones != sorted(ones)
    if len(moving) < len(whole) and split:
        raise Misfit(Reason.OVERRUN, "an operand of fewer axes has a 1 before other sizes")
    if not split or not ones[-1]:
        return
    four = len(moving) == NCNN_RANK
    if four and ones[1] and not ones[2] and not asker.is_one(whole[-1]):
        raise Misfit(Reason.WRONG_RESULT, "an operand has a 1 before other sizes and one after")
    if ones[0] and not asker.is_one(whole[0]):
        raise Misfit(Reason.OVERRUN, "an operand has ones before other sizes and after them")


def _empty_result(asker: Asker, shapes: tuple[Shape, ...]) -> Misfit:
    """The effect of an empty operand on a result of one operand's shape: that of more axes, or of
    more elements.
    """
    a, b = (any(asker.equal(size, 0) for size in shape) for shape in shapes)
    higher = len(shapes[0] or (1,)) < len(shapes[1]) and not all(map(asker.is_one, shapes[1]))
    if (a and b) or (higher and b):
        return Misfit(Reason.BAD_EXTENT, "it has no empty blobs, and the result would be one")
    return Misfit(Reason.WRONG_RESULT, "an empty operand is read as if it had elements")


def _empty_blob(asker: Asker, shapes: tuple[Shape, ...], alignment: Alignment) -> Misfit:
    """The effect of an operand without elements."""
    landing: list[list[Any]] = [[] for _ in range(alignment.rank)]
    for shape, mapping in zip(shapes, alignment.mapping, strict=True):
        for size, axis in zip(shape, mapping, strict=True):
            assert axis is not None
            landing[axis].append(size)
    padded = [sizes if len(sizes) == len(shapes) else [*sizes, 1] for sizes in landing]
    if any(all(asker.equal(size, 0) for size in sizes) for sizes in padded):
        return Misfit(Reason.BAD_EXTENT, "it has no empty blobs, and the result would be one")
    return Misfit(Reason.WRONG_RESULT, "an empty operand is read as if it had elements")


def paddle_compared(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Paddle's comparisons: beside one element of lower rank the axis need only be -1 or 0..rank.

    Nothing runs for an empty result, and nothing reads the axis.
    """
    if any(asker.equal(size, 0) for shape in shapes for size in shape):
        return align_numpy(asker, shapes, {})
    smaller, larger = sorted(shapes, key=len)
    axis, rank = attributes["axis"], len(larger)
    if (smaller and len(smaller) == rank) or not all(map(asker.is_one, smaller)):
        if axis == rank:
            raise Misfit(Reason.OVERRUN, f"axis {axis} lies beyond the last of {rank}")
        placed = align_paddle(asker, shapes, attributes)
        single = all(map(asker.is_one, larger))  # the numbers keep their order
        return align_numpy(asker, shapes, {}) if single else placed
    if rank and not -1 <= axis <= rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} is not in -1..{rank}")
    return align_numpy(asker, shapes, {})


def paddle_unplaced(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Paddle's ops of two operands that have the attribute `axis` and do not read it."""
    return align_numpy(asker, shapes, {})


def paddle_target(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Paddle's expand and broadcast_to: an empty target leaves the data unchanged."""
    data, target = shapes
    if not target:
        every = tuple(range(len(data)))
        return Alignment(len(data), (every, ()), (every, ()))
    return paddle_whole_target(asker, shapes, attributes)


def paddle_whole_target(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """The same before 3.3: an empty target is one like others."""
    _, target = shapes
    if len(target) > PADDLE_TARGET_RANK:
        raise Misfit(
            Reason.RANK_LIMIT, f"{len(target)} axes; the most it carries is {PADDLE_TARGET_RANK}"
        )
    return align_unidirectional(asker, shapes, attributes)


def has_zero(asker: Asker, sizes: Iterable[Size]) -> bool:
    """Whether one of the sizes is 0."""
    return any(asker.equal(size, 0) for size in sizes)
