"""Reductions over axes in one form: axes that a reshape joined are apart, in an order of their own.

``ReduceMax`` of a reshaped tensor and of the tensor itself so read the same places.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....sizes.atoms import Symbol
from ....sizes.dim import Dim, Number, dim
from ....sizes.functions import exact_quotient
from .axes import places_of
from .fingerprints import fingerprint
from .places import axes_in, index, lone_axis, magnitude
from .term import CONSTANT, REDUCE, Term

if TYPE_CHECKING:
    from .builder import Builder

#: Reductions whose result does not depend on the order of what they take, not even by rounding.
_ANY_ORDER = frozenset(["Max", "Min"])
#: Those that rounding alone makes depend on it.
_ANY_ORDER_BUT_ROUNDED = frozenset(
    [*_ANY_ORDER, "Sum", "Mean", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]
)
#: A reduction of reductions of these kinds is one over all axes.
_NESTED = frozenset([*_ANY_ORDER, "Sum", "Mean", "Prod"])


def fold_operand(builder: Builder, kind: str, arg: Term, rank: int) -> Term:
    """The operand of a reduction over its axes from `rank` on, in one form.

    Args:
        builder: builds it.
        kind: of the reduction.
        arg: the operand.
        rank: the axes before those that are reduced.
    """
    if kind not in (_ANY_ORDER if builder.exact else _ANY_ORDER_BUT_ROUNDED):
        return arg
    if arg.op == REDUCE and arg.attributes == (kind,) and kind in _NESTED:
        return fold_operand(builder, kind, arg.args[0], rank)
    arg = _split(builder, arg, rank)
    keys = [_key(builder, arg, axis) for axis in range(rank, len(arg.shape))]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order == list(range(len(keys))):
        return arg
    moved = [*range(rank), *(rank + k for k in order)]
    places = [index(moved.index(axis)) for axis in range(len(arg.shape))]
    return builder.view(arg, [arg.shape[axis] for axis in moved], places)


def _leaves(builder: Builder, term: Term) -> Iterator[Term]:
    """Yield the views that an element-wise term is computed of, each once."""
    seen: set[int] = set()
    stack = [term]
    while stack:
        one = stack.pop()
        if one.number in seen:
            continue
        seen.add(one.number)
        if one.op in builder.element_wise:
            stack += one.args
        elif one.op != CONSTANT:
            yield one


def _split(builder: Builder, arg: Term, rank: int) -> Term:
    """A term whose reduced axes are split where floors in its places divide them."""
    shape: list[Number] = list(arg.shape[:rank])
    places: list[Dim] = [index(axis) for axis in range(rank)]
    for axis in range(rank, len(arg.shape)):
        sizes = _parts(arg.shape[axis], _radices(builder, arg, axis))
        place = dim(0)
        for size in sizes:
            place = place * size + index(len(shape))
            shape.append(size)
        places.append(place)
    return arg if len(shape) == len(arg.shape) else builder.view(arg, shape, places)


def _radices(builder: Builder, arg: Term, axis: int) -> list[Dim]:
    """The divisors of the index along an axis, from the least to the greatest."""
    radices: set[Dim] = set()
    for leaf in _leaves(builder, arg):
        for place in places_of(leaf):
            for monomial, _ in place.terms:
                for atom in monomial:
                    if isinstance(atom, Symbol) or atom.function != "floordiv":
                        continue
                    if lone_axis(dim(atom.arguments[0])) == axis:
                        radices.add(dim(atom.arguments[1]))
    return sorted(radices, key=magnitude)


def _parts(size: Number, radices: list[Dim]) -> list[Number]:
    """The sizes of the axes into which an axis is split; its own size if they are not known."""
    steps = [dim(1), *radices, dim(size)]
    parts = [exact_quotient(b, a) for a, b in itertools.pairwise(steps)]
    known = [part for part in parts if part is not None and not axes_in([part])]
    return list(reversed(known)) if len(known) == len(parts) else [size]


def _key(builder: Builder, arg: Term, axis: int) -> list[tuple[int, int]]:
    """The sort key of a reduced axis: the tensors that it moves in, and the axes there."""
    return sorted(
        (fingerprint(leaf.base, builder.fingerprints), position)
        for leaf in _leaves(builder, arg)
        for position, place in enumerate(places_of(leaf))
        if axis in axes_in([place])
    )


__all__ = ["fold_operand"]
