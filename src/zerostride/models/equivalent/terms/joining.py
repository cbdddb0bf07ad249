"""Concatenated views of one tensor as one view of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....sizes.dim import Dim, Number, dim, plain
from .axes import places_of
from .places import Places, Space, index
from .term import UNORDERED, Term

if TYPE_CHECKING:
    from .builder import Builder


def joined(
    builder: Builder, args: Sequence[Term], axis: int, shape: Sequence[Number]
) -> Term | None:
    """The parts joined along an axis, as one view of their tensor; None if no view does it."""
    base = args[0].base
    if any(arg.base is not base for arg in args):
        return _of_joined(builder, args, axis, shape)
    space = builder.space(shape)
    places = _behind(builder, args, axis, space) or _woven(args, axis, space)
    return None if places is None else builder.view(base, shape, places)


def _of_joined(
    builder: Builder, args: Sequence[Term], axis: int, shape: Sequence[Number]
) -> Term | None:
    """The element-wise op of joined operands, if all are that op of parts of the same tensors."""
    first = args[0]
    if first.op not in builder.element_wise or any(
        (arg.op, arg.attributes, len(arg.args)) != (first.op, first.attributes, len(first.args))
        for arg in args
    ):
        return None
    lists = [arg.args for arg in args]
    if first.op in UNORDERED:
        lists = [tuple(sorted(own, key=lambda term: term.base.number)) for own in lists]
    whole = []
    for parts in zip(*lists, strict=True):
        one = joined(builder, parts, axis, shape)
        if one is None:
            return None
        whole.append(one)
    return builder.again(first, whole, tuple(map(plain, shape)))


def _behind(builder: Builder, args: Sequence[Term], axis: int, space: Space) -> Places | None:
    """The places of parts, if each begins where the one before ends."""
    starts: list[Number] = [0]
    for arg in args[:-1]:
        starts.append(starts[-1] + arg.shape[axis])
    along = index(axis).symbols[0]
    long = next((k for k, arg in enumerate(args) if arg.shape[axis] != 1), None)
    if long is None:
        return None
    back = {along: index(axis) - starts[long]}
    wanted = [dim(place.substitute(back)) for place in places_of(args[long])]
    for arg, start in zip(args, starts, strict=True):
        own = builder.space(arg.shape)
        there = {along: dim(start) + (0 if arg.shape[axis] == 1 else index(axis))}
        expected = tuple(own.refined(dim(place.substitute(there))) for place in wanted)
        if expected != places_of(arg):
            return None
    return tuple(map(space.refined, wanted))


def _woven(args: Sequence[Term], axis: int, space: Space) -> Places | None:
    """The places of parts of one size that differ by numbers: a tensor's blocks, its strides."""
    size = args[0].shape[axis]
    if any(arg.shape != args[0].shape for arg in args):
        return None
    along = index(axis)
    number = space.divided(along, size)
    inside = {along.symbols[0]: along - dim(size) * number}
    places = []
    for every in zip(*map(places_of, args), strict=True):
        shifts = [plain(place - every[0]) for place in every]
        numbers = [shift for shift in shifts if isinstance(shift, int)]
        runs = runs_of(numbers) if len(numbers) == len(shifts) else None
        if runs is None:
            return None
        place = dim(every[0].substitute(inside))
        places.append(space.refined(place + woven(runs, along, size, space)))
    return tuple(places)


def woven(runs: Sequence[tuple[int, int, int]], along: Dim, size: Number, space: Space) -> Dim:
    """Numbers that `runs_of` took apart, of places ``along // size``."""
    total = dim(0)
    for step, each, count in runs:
        whole = space.divided(along, dim(size) * each)
        total = total + step * (whole - count * space.divided(along, dim(size) * each * count))
    return total


def runs_of(numbers: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Numbers, without the first, as a sum of runs; None if they are no such sum.

    A run `(step, each, count)` has ``step * ((k // each) % count)`` at position k.
    """
    length = len(numbers)
    if length < 2:
        return []
    step = numbers[1] - numbers[0]
    long = next((k for k in range(1, length) if numbers[k] - numbers[k - 1] != step), length)
    for count in range(long, 1, -1):
        if length % count:
            continue
        first = numbers[::count]
        if all(numbers[k] - first[k // count] == k % count * step for k in range(length)):
            rest = runs_of(first)
            if rest is not None:
                return [(step, 1, count), *((s, each * count, n) for s, each, n in rest)]
    return None


__all__ = ["joined", "runs_of", "woven"]
