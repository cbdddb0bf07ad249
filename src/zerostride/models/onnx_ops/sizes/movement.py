"""Rows of ops that rearrange a tensor: reshape, permute, join, cut, repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ....sizes import Answer, is_one
from ....sizes.condition import any_of, eq, ge
from ....sizes.dim import Number, dim, of_atom, plain
from ....sizes.functions import exact_quotient, floordiv, maximum
from .facts import (
    UNKNOWN,
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
    known,
    place,
    places,
    product,
    rounded_up,
    target_sizes,
)
from .numbers import array, listed


def reshape(call: OpCall) -> Results:
    """Reshape: 0 keeps a size, −1 is the remaining size; the number of elements stays."""
    data = call.fact(0).shape
    numbers = call.whole(1, "shape")
    if numbers is None:
        raise Unclear("the target is left out")
    sizes = _target(call, data, numbers)
    total = None if data is None else product(data)
    hidden = [axis for axis, size in enumerate(sizes) if isinstance(size, Open)]
    elements = product(known(size) for size in sizes if not isinstance(size, Open))
    if total is None:
        return Fact(sizes)
    if not hidden:
        shapes = f"({', '.join(map(str, data or ()))}) and ({', '.join(map(str, sizes))})"
        call.need(eq(total, elements), f"Reshape keeps the number of elements: {shapes}")
    elif len(hidden) == 1 and (at_least(elements, 1) or -1 in numbers):
        if not at_least(elements, 1):
            call.need(ge(elements, 1), "Reshape's -1 has no answer beside a size of 0")
        sizes = tuple(
            _divided(call, total, elements, "Reshape's -1") if isinstance(size, Open) else size
            for size in sizes
        )
    return Fact(sizes, _kept(call.fact(0), sizes))


def _target(
    call: OpCall, data: tuple[Number, ...] | None, numbers: tuple[Number | None, ...]
) -> tuple[Size, ...]:
    """The target's numbers as sizes; −1 and unknown numbers are open."""
    literal = bool(call.integer("allowzero"))
    if [item for item in numbers if isinstance(item, int)].count(-1) > 1:
        raise NoSizes("more than one -1 in the target")
    if literal and -1 in numbers and 0 in numbers:
        raise NoSizes("both 0 and -1 in the target, with allowzero")
    sizes: list[Size] = []
    for axis, item in enumerate(numbers):
        if item is None or item == -1:
            sizes.append(Open())
            continue
        if isinstance(item, int) and item < -1:
            raise NoSizes(f"a size of {item} in the target")
        if isinstance(item, int) and (item > 0 or literal):
            sizes.append(item)
            continue
        if data is not None and axis < len(data) and (item == 0 or item == data[axis]):
            sizes.append(data[axis])
            continue
        if item == 0:
            if data is not None:
                raise NoSizes(f"0 in the target at axis {axis}, which the data does not have")
            sizes.append(Open())
            continue
        # An expression may be 0 or −1 for some sizes, which have special meanings: a need.
        stays = [ge(item, 0 if literal else 1)]
        if not literal and data is not None and axis < len(data):
            stays.append(eq(data[axis], 0) if at_least(item, 0) else any_of([]))
        call.need(any_of(stays), f"Reshape's target has {item}, where 0 means the data's size")
        sizes.append(item)
    return tuple(sizes)


def _divided(call: OpCall, total: Number, divisor: Number, what: str) -> Number:
    """The quotient of two numbers of elements; a need if there may be a remainder."""
    if isinstance(total, int) and isinstance(divisor, int):
        if divisor == 0 or total % divisor:
            raise NoSizes(f"{what}: {divisor} does not divide {total}")
        return total // divisor
    exact = exact_quotient(total, divisor)
    if exact is not None:
        return plain(exact)
    for symbol in dim(divisor).symbols:  # B*N elements, 160*B to a row: N // 160 rows
        factor = of_atom(symbol)
        less, fewer = exact_quotient(total, factor), exact_quotient(divisor, factor)
        if less is not None and fewer is not None:
            call.need(ge(factor, 1), f"{what}: {divisor} must divide {total}")
            return _divided(call, plain(less), plain(fewer), what)
    quotient = floordiv(total, divisor)
    call.need(eq(dim(total), quotient * divisor), f"{what}: {divisor} must divide {total}")
    return plain(quotient)


def _kept(fact: Fact, shape: tuple[Size, ...]) -> Any:
    """The numbers of a tensor whose elements stay in order."""
    return fact.content if count_of(shape) is not None else None


def _moved(
    call: OpCall, shape: tuple[Size, ...], move: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> Fact:
    """The fact of a rearranged tensor, with its numbers rearranged."""
    values = array(call.fact(0))
    return Fact(shape, None if values is None else listed(move(values)))


def flatten(call: OpCall) -> Results:
    """Flatten: two axes, the product of those before `axis` and of the others."""
    shape = call.shape(0)
    axis = call.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise NoSizes(f"axis {axis} of a tensor of rank {len(shape)}")
    axis += len(shape) if axis < 0 else 0
    return Fact((product(shape[:axis]), product(shape[axis:])))


def squeeze(call: OpCall) -> Results:
    """Squeeze: removes the listed axes of size 1; without a list all of them."""
    shape = call.shape(0)
    try:
        axes_listed = call.fixed(1, "axes")
    except Unclear:
        return Fact(tuple(Open() for _ in shape[len(call.whole(1, "axes") or ()) :]))
    # Runtimes take an empty list for no list.
    if not axes_listed and (axes_listed is None or call.has(1)):
        answers = [is_one(size) for size in shape]
        if Answer.UNKNOWN in answers:
            raise Unclear("which sizes are 1 is not known")
        axes = tuple(axis for axis, answer in enumerate(answers) if answer is Answer.YES)
    else:
        axes = places(axes_listed, len(shape))
    for axis in axes:
        call.need(eq(shape[axis], 1), f"Squeeze takes axis {axis} away, of {shape[axis]}")
    remaining = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return Fact(remaining, _kept(call.fact(0), remaining))


def unsqueeze(call: OpCall) -> Results:
    """Unsqueeze: adds axes of size 1 at these positions of the result."""
    shape = call.shape(0)
    try:
        axes_listed = call.fixed(1, "axes") or ()
    except Unclear:
        return Fact(tuple(Open() for _ in (*shape, *(call.whole(1, "axes") or ()))))
    axes = places(axes_listed, len(shape) + len(axes_listed))
    rest = iter(shape)
    sizes = tuple(1 if k in axes else next(rest) for k in range(len(shape) + len(axes)))
    return Fact(sizes, _kept(call.fact(0), sizes))


def transpose(call: OpCall) -> Results:
    """Transpose: axes in the order of `perm`; reversed without it."""
    shape = call.shape(0)
    order = call.integers("perm")
    if order is None:
        order = tuple(reversed(range(len(shape))))
    elif sorted(order) != list(range(len(shape))):
        raise NoSizes(f"perm {list(order)} of a tensor of rank {len(shape)}")
    return _moved(call, tuple(shape[axis] for axis in order), lambda v: v.transpose(order))


def concat(call: OpCall) -> Results:
    """Concat: sizes add up along the axis, all others are equal."""
    ranks = {len(fact.shape) for fact in call.facts if fact is not None and fact.shape is not None}
    if not ranks:
        return UNKNOWN
    if len(ranks) > 1:
        raise NoSizes(f"Concat of ranks {sorted(ranks)}")
    (rank,) = ranks
    axis = call.axis(rank, 1)
    shapes = [fact.shape for fact in call.facts if fact is not None]
    joined: list[Size] = []
    for place_, sizes in enumerate(zip(*(s for s in shapes if s is not None), strict=True)):
        if place_ == axis:
            whole = None not in shapes
            total: Number = 0
            for size in sizes:
                total = total + size
            joined.append(plain(total) if whole else Open())
            continue
        first = next((size for size in sizes if isinstance(size, int)), sizes[0])
        for size in sizes:
            call.same(first, size, f"Concat's axis {place_}")
        joined.append(first)
    return Fact(tuple(joined), _joined(call, axis, rank))


def _joined(call: OpCall, axis: int, rank: int) -> Any:
    """The numbers of joined tensors; None for each number of an unknown operand."""
    if all(fact is None or fact.content is None for fact in call.facts):
        return None
    rows = []
    for fact in call.facts:
        if fact is None or count_of(fact.shape) is None or fact.shape is None:
            return None
        values = array(fact)
        rows.append(np.full(fact.shape, None, object) if values is None else values)
    if len({tuple(np.delete(row.shape, axis)) for row in rows}) > 1:
        return None
    return listed(np.concatenate(rows, axis))


def split(call: OpCall) -> Results:
    """Split: parts of given sizes, or one equal part for each result."""
    shape = call.shape(0)
    axis = call.axis(len(shape))
    size, count = shape[axis], call.outputs
    lengths = call.whole(1, "split")
    parts: list[Size]
    if lengths is not None:
        if len(lengths) != count:
            raise NoSizes(f"{len(lengths)} sizes for {count} results")
        parts = list(target_sizes(call, lengths))
        hidden = [k for k, part in enumerate(parts) if isinstance(part, Open)]
        total: Number = 0
        for part in parts:
            total = total if isinstance(part, Open) else plain(total + part)
        if not hidden:
            call.need(eq(total, size), f"Split's sizes must add up to {size}")
        elif len(hidden) == 1:
            parts[hidden[0]] = plain(size - total)
    elif call.version >= 18:
        if call.integer("num_outputs", count) != count:
            raise NoSizes(f"num_outputs is not the number of results, {count}")
        chunk = rounded_up(size, count)
        last = size - chunk * (count - 1) if count != 2 else floordiv(size, 2)
        parts = [*[chunk] * (count - 1), plain(last)]
    else:
        part = _divided(call, size, count, "Split into equal parts")
        parts = [part for _ in range(count)]
    facts = [Fact((*shape[:axis], part, *shape[axis + 1 :])) for part in parts]
    values = array(call.fact(0))
    if values is not None and all(isinstance(part, int) for part in parts):
        ends = np.cumsum([part for part in parts if isinstance(part, int)])[:-1]
        pieces = np.split(values, ends, axis)
        facts = [Fact(f.shape, listed(piece)) for f, piece in zip(facts, pieces, strict=True)]
    return tuple(facts)


def tile(call: OpCall) -> Results:
    """Tile: each size times its repeat."""
    shape = call.shape(0)
    if call.version < 6:
        return _tile_axis(call, shape)
    repeats = call.whole(1)
    if repeats is None or len(repeats) != len(shape):
        raise NoSizes(f"{len(repeats or ())} repeats for a tensor of rank {len(shape)}")
    times = target_sizes(call, repeats)
    sizes = tuple(
        Open() if isinstance(by, Open) else plain(dim(size) * by)
        for size, by in zip(shape, times, strict=True)
    )
    if all(isinstance(by, int) for by in times) and count_of(sizes) is not None:
        return _moved(call, sizes, lambda v: np.tile(v, times))  # type: ignore[arg-type]
    return Fact(sizes)


def _tile_axis(call: OpCall, shape: tuple[Number, ...]) -> Fact:
    """Tile before opset 6: repeats one axis."""
    (times,), (axis,) = call.fixed(1) or (1,), call.fixed(2) or (0,)
    axis = place(axis, len(shape))
    return Fact((*shape[:axis], plain(dim(shape[axis]) * times), *shape[axis + 1 :]))


def pad(call: OpCall) -> Results:
    """Pad: elements added before and after each axis; a number below 0 removes elements."""
    shape = call.shape(0)
    pads = call.whole(1, "pads" if "pads" in call.attributes else "paddings")
    if pads is None:
        raise Unclear("the pads are left out")
    axes = tuple(range(len(shape)))
    if call.has(3):
        try:
            axes = places(call.fixed(3) or (), len(shape))
        except Unclear:
            return Fact(tuple(Open() for _ in shape))
    if len(pads) != 2 * len(axes):
        raise NoSizes(f"{len(pads)} pads for {len(axes)} axes")
    sizes: list[Size] = list(shape)
    for position, axis in enumerate(axes):
        before, after = pads[position], pads[position + len(axes)]
        if before is None or after is None:
            sizes[axis] = Open()
        else:
            sizes[axis] = plain(dim(shape[axis]) + before + after)
    return Fact(tuple(sizes))


def depth_to_space(call: OpCall) -> Results:
    """DepthToSpace: channels become blocks of the plane."""
    batch, channels, height, width = _image(call)
    block = call.integer("blocksize", 1)
    if block < 1:
        raise NoSizes(f"a block of {block}")
    depth = _divided(call, channels, block * block, "DepthToSpace's channels")
    return Fact((batch, depth, plain(dim(height) * block), plain(dim(width) * block)))


def space_to_depth(call: OpCall) -> Results:
    """SpaceToDepth: blocks of the plane become channels."""
    batch, channels, height, width = _image(call)
    block = call.integer("blocksize", 1)
    if block < 1:
        raise NoSizes(f"a block of {block}")
    rows, columns = (_divided(call, s, block, "SpaceToDepth's plane") for s in (height, width))
    return Fact((batch, plain(dim(channels) * block * block), rows, columns))


def _image(call: OpCall) -> tuple[Number, Number, Number, Number]:
    shape = call.shape(0)
    if len(shape) != 4:
        raise NoSizes(f"{call.op} of a tensor of rank {len(shape)}; it takes 4 axes")
    return shape[0], shape[1], shape[2], shape[3]


def counted(call: OpCall) -> Results:
    """Range: the numbers from start to limit."""
    numbers = [call.content(position) for position in range(3)]
    if any(content is None or len(content) != 1 for content in numbers):
        return Fact((Open(),))
    start, limit, step = (content[0] for content in numbers if content is not None)
    if not isinstance(step, int) or step == 0:
        return Fact((Open(),))
    if isinstance(start, int) and isinstance(limit, int):
        span = range(start, limit, step)
        return Fact((len(span),), tuple(span) if len(span) <= 64 else None)
    if not is_number(start) or not is_number(limit):
        return Fact((Open(),))
    distance = dim(limit) - start if step > 0 else dim(start) - limit
    return Fact((plain(maximum(rounded_up(distance, abs(step)), 0)),))
