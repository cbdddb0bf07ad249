"""Rules by which engines place operands of compound ops; `compound_engines` assigns them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

from ...core.alignment import Alignment, Attribute, Attributes, Rule
from ...core.plan import Plan
from ...core.rules import NCNN_RANK, RULES, right_aligned
from ...engines.aligns import equal_ranks
from ...errors import Misfit, Reason
from ...sizes import Asker, Shape
from ..ir.site import AT_AXIS, BOTH_WAYS, ONE_NUMBER, ONE_WAY, vectors_along

#: ncnn reads as many numbers as it needs from the weights' address, and checks nothing.
UNCHECKED = frozenset(
    {Reason.NOT_IDENTICAL, Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK, Reason.AXIS_RANGE}
)


# How compounds place their operands.


def _align_outermost(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn: vectors along the outermost axis of a sample."""
    return vectors_along(shapes, 0)


def _align_images(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's InstanceNorm: the same, and a sample of one or two axes is one channel to it."""
    if len(shapes[0]) < 3 and not all(map(asker.is_one, shapes[0][:1])):
        raise Misfit(Reason.RANK, f"a sample of rank {len(shapes[0])} is taken for one channel")
    return vectors_along(shapes, 0)


def _align_exact(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Every operand after the first has exactly the shape that is normalised."""
    rank, kept = len(shapes[0]), -attributes["axis"]
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != kept:
            raise Misfit(
                Reason.RANK, f"operand {k} has rank {len(shape)}; {kept} axes are normalised"
            )
    if kept > rank:
        raise Misfit(Reason.AXIS_RANGE, f"{kept} axes of data of rank {rank}")
    places = (tuple(range(rank)), *[tuple(range(rank - kept, rank))] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


def _align_flat(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Paddle: a vector of as many numbers as are normalised; the same only for one axis."""
    if len(shapes[0]) < 2:
        raise Misfit(Reason.RANK, "data of one axis; one must be left outside")
    if attributes["axis"] != -1:
        raise Misfit(Reason.RANK, "more than one axis is normalised; scale and bias must be flat")
    return _align_exact(asker, shapes, attributes)


def _align_counted(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ncnn: as exact, but it never normalises a whole sample of two axes or more."""
    if 1 < len(shapes[0]) == -attributes["axis"]:
        raise Misfit(Reason.RANK, "all axes of the sample are normalised; the layer leaves one out")
    return _align_exact(asker, shapes, attributes)


def _align_reshaped(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """OpenVINO's ONNX frontend: an operand of another rank is reshaped to what is normalised."""
    rank, kept = len(shapes[0]), -attributes["axis"]
    normalised = shapes[0][rank - kept :]
    places: list[tuple[int | None, ...]] = [tuple(range(rank))]
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) == kept:
            places.append(tuple(range(rank - kept, rank)))
            continue
        if not asker.equal(math.prod(shape), math.prod(normalised)):
            detail = f"operand {k} is {shape}, and is reshaped to {normalised}"
            raise Misfit(Reason.RANK, detail)
        long = [axis for axis, size in enumerate(normalised) if not asker.is_one(size)]
        own = [axis for axis, size in enumerate(shape) if not asker.is_one(size)]
        if len(own) != len(long) or not all(
            asker.equal(shape[a], normalised[b]) for a, b in zip(own, long, strict=True)
        ):
            detail = f"operand {k} is {shape}, and becomes {normalised} in the order of its numbers"
            raise Misfit(Reason.WRONG_RESULT, detail)
        landed = dict(zip(own, long, strict=True))
        outer = rank - kept
        places.append(
            tuple(landed[axis] + outer if axis in landed else None for axis in range(len(shape)))
        )
    every = range(rank)
    return Alignment(rank, tuple(places), ((), *[every] * (len(shapes) - 1)))


def align_addend(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Paddle's addmm: one way, and a number is not taken."""
    if len(shapes[1]) not in (1, 2):
        raise Misfit(Reason.RANK, f"the addend has rank {len(shapes[1])}; it must be 1 or 2")
    rank, places = right_aligned(shapes)
    return Alignment(rank, places, ((), range(rank)))


def _align_bias(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN's converter: a constant of as many numbers as there are columns is a row, always."""
    product, addend = shapes
    rank, places = right_aligned(shapes)
    column = len(addend) == 2 and asker.is_one(addend[1]) and not asker.is_one(addend[0])
    if column and len(product) == 2 and asker.equal(addend[0], product[1]):
        return Alignment(rank, (tuple(range(rank)), (1, None)), (range(rank), range(rank)))
    return Alignment(rank, places, (range(rank), range(rank)))


def _align_blob(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's Gemm with C at run time: a vector goes to the columns if it fits, else to the rows."""
    product, addend = shapes
    rank = len(product)
    every = tuple(range(rank))
    if len(addend) > rank:
        raise Misfit(Reason.RANK, f"the addend has rank {len(addend)}, the product {rank}")
    start = rank - len(addend)
    vector = len(addend) == 1 < rank and not asker.is_one(addend[0])
    if vector and not asker.equal(addend[0], product[1]) and asker.equal(addend[0], product[0]):
        start = 0
    return Alignment(rank, (every, tuple(range(start, start + len(addend)))), ((), every))


def _align_batches(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN: NumPy's rule; batches of equally many matrices are paired in order instead."""
    rank, places = right_aligned(shapes)
    sizes = [
        dict(zip(axes, shape, strict=True)) for axes, shape in zip(places, shapes, strict=True)
    ]
    a, b = (
        [
            size
            for axis, size in sizes[k].items()
            if not asker.is_one(size) and asker.is_one(sizes[1 - k].get(axis, 1))
        ]
        for k in (0, 1)
    )
    # Extents that only one operand has. With one each, their equality compares two sizes.
    if len(a) == len(b) == 1 and asker.equal(a[0], b[0]):
        raise Misfit(Reason.WRONG_RESULT, f"both batches have {a[0]} matrices to a row: paired")
    return Alignment(rank, places, (range(rank), range(rank)))


def _align_list(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's PReLU: the slopes are a list of numbers, along the outermost axis of a sample."""
    rank = len(shapes[0])
    long = [axis for axis, size in enumerate(shapes[1]) if not asker.is_one(size)]
    if len(long) > 1:
        raise Misfit(Reason.RANK, f"slopes of shape {shapes[1]} are read as one list")
    places = tuple(0 if axis in long else None for axis in range(len(shapes[1])))
    return Alignment(max(rank, 1), (tuple(range(rank)), places), ((), ()))


def _align_slope(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN's PRelu: slopes that fill their own axis 1 alone, or have one axis, go to axis 1."""
    data, slope = shapes
    every = tuple(range(len(data)))
    long = [axis for axis, size in enumerate(slope) if not asker.is_one(size)]
    if not long:
        return Alignment(len(data), (every, (None,) * len(slope)), ((), every))
    if long == [min(1, len(slope) - 1)]:
        if len(data) < 2:
            raise Misfit(Reason.CRASH, "slopes for data of one axis end the process now and then")
        return Alignment(
            len(data), (every, tuple(1 if k in long else None for k in range(len(slope)))), ((), ())
        )
    rank, places = right_aligned(shapes)
    return Alignment(rank, places, (range(rank), range(rank)))


def align_equal_ranks(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """TensorRT's ParametricReLU and Normalization: operands of the data's rank, which stretch."""
    rank = len(shapes[0])
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != rank:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}, the data {rank}")
    every = tuple(range(rank))
    return Alignment(rank, (every,) * len(shapes), ((), *[every] * (len(shapes) - 1)))


def align_channels(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Core ML's prelu: a list along axis 1 of data of three to five axes."""
    rank = len(shapes[0])
    if not 3 <= rank <= 5:
        raise Misfit(Reason.RANK, f"data of rank {rank}; it takes ranks 3 to 5")
    return vectors_along(shapes, 1)


def align_number(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's Clip: its bounds are parameters; a Mat has one axis at least."""
    placed = ONE_NUMBER.align(asker, shapes, {})
    return Alignment(max(1, placed.rank), placed.mapping, placed.stretch)


# Checks of finished plans that an engine does not carry.


def _uneven(plan: Plan, asker: Asker) -> None:
    if not all(plan.stretched):
        return
    counts = [math.prod(shape) for shape in plan.aligned]
    if all(_stretches(plan, k, asker) for k in range(len(plan.aligned))) and asker.equal(*counts):
        raise Misfit(Reason.WRONG_RESULT, f"both batches have {counts[0]} matrices: paired")


def _stretches(plan: Plan, k: int, asker: Asker) -> bool:
    """Whether operand `k` stretches along any axis."""
    return any(
        not asker.equal(plan.aligned[k][axis], plan.shape[axis]) for axis in plan.stretched[k]
    )


def no_zeros(plan: Plan, asker: Asker) -> None:
    """An extent of 0 is refused."""
    for size in plan.shape:
        asker.forbid(size, 0, lambda: Misfit(Reason.EXTENT_MISMATCH, "an extent of 0 is refused"))


_AXIS = MappingProxyType({"axis": Attribute(required=True)})


def own_rule(name: str, like: Rule, summary: str, **changes: object) -> Rule:
    """A rule of one engine, named after its particularity."""
    rule: Rule = replace(like, name=name, summary=summary, **changes)  # type: ignore[arg-type]
    return rule


OUTERMOST = own_rule(
    "outermost",
    AT_AXIS,
    "Vectors along the outermost axis of a sample; sizes are not checked.",
    align=_align_outermost,
    attributes=MappingProxyType({}),
    silent=UNCHECKED,
    max_rank=NCNN_RANK,
)
IMAGES = replace(OUTERMOST, align=_align_images)
EXACT = own_rule(
    "exact",
    AT_AXIS,
    "Scale and bias have exactly the shape that is normalised.",
    align=_align_exact,
    attributes=_AXIS,
)
COUNTED = own_rule(
    "counted",
    EXACT,
    "Scale and bias are counted, not checked; an axis must be left outside.",
    align=_align_counted,
    silent=UNCHECKED,
    max_rank=NCNN_RANK,
)
FLAT = own_rule("flat", EXACT, "Scale and bias are vectors.", align=_align_flat)
RESHAPED = own_rule(
    "reshaped",
    ONE_WAY,
    "One way to the axes that are normalised; an operand of another rank is reshaped to them.",
    align=_align_reshaped,
    attributes=_AXIS,
    silent=frozenset({Reason.WRONG_RESULT}),
)
BIAS = own_rule(
    "bias",
    BOTH_WAYS,
    "A constant of as many numbers as there are columns is a row, else NumPy's rule.",
    align=_align_bias,
    operands=(2, 2),
)
BLOB = own_rule(
    "gemm_c",
    ONE_WAY,
    "A vector goes to the columns if it fits there, else to the rows.",
    align=_align_blob,
    operands=(2, 2),
    silent=UNCHECKED,
)
LIST = own_rule(
    "list",
    ONE_WAY,
    "The slopes are a list of numbers, along the outermost axis of a sample.",
    align=_align_list,
    operands=(2, 2),
    silent=UNCHECKED,
    max_rank=NCNN_RANK,
)
SLOPES = own_rule(
    "slopes", ONE_WAY, "Slopes of the data's rank, which alone stretch.", align=align_equal_ranks
)
CHANNEL_SLOPES = own_rule(
    "channel_slopes",
    AT_AXIS,
    "A list along axis 1.",
    align=align_channels,
    attributes=MappingProxyType({}),
)
SLOPE = own_rule(
    "slope",
    BOTH_WAYS,
    "A list of slopes goes to axis 1, anything else is laid out as NumPy would.",
    align=_align_slope,
    operands=(2, 2),
    silent=UNCHECKED,
)
PRODUCT = replace(BOTH_WAYS, operands=(2, 2))
MNN_PRODUCT = own_rule(
    "batches",
    PRODUCT,
    "NumPy's rule, unless both batches have as many matrices: those are paired.",
    align=_align_batches,
    check=_uneven,
    max_rank=7,  # tensors end at 9 axes, two of them the matrix
    silent=frozenset({Reason.RANK_LIMIT, Reason.WRONG_RESULT}),
)
NCNN_PRODUCT = replace(
    PRODUCT, max_rank=2, silent=frozenset({Reason.EXTENT_MISMATCH}), check=no_zeros
)
#: XNNPACK, LiteRT's default: 6 axes, two of them the matrix, and no empty batch. LiteRT's own
#: kernel takes 5.
LITERT_PRODUCT = replace(PRODUCT, max_rank=4, check=no_zeros)

#: LiteRT's GPU delegate, both factors made at run time: a convolution, a filter for each matrix.
GPU_PRODUCT = own_rule(
    "gpu_batches",
    RULES["none"],
    "Identical batches of one axis or two; sizes are not checked.",
    operands=(2, 2),
    max_rank=2,
    silent=frozenset({Reason.NOT_IDENTICAL, Reason.RANK}),
)
#: Axis by axis, operands of one rank.
EQUAL_RANKS = own_rule(
    "equal_ranks", BOTH_WAYS, "Axis by axis, operands of one rank.", align=equal_ranks
)


def _one_batch(plan: Plan, asker: Asker) -> None:
    """TOSA's MATMUL has one batch axis, no more and no less."""
    if plan.rank != 1:
        raise Misfit(Reason.RANK, f"{plan.rank} batch axes; it has one")


TOSA_PRODUCT = replace(RULES["none"], check=_one_batch)
