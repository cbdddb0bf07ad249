"""Constants among terms: their numbers, laid out by the places at which they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....sizes.dim import Dim, Number, size_order
from ...ir.graph import Array
from .axes import places_of
from .places import axes_in, index
from .term import MOST_ELEMENTS, Term, numbers_of, plain_axes

if TYPE_CHECKING:
    from .builder import Builder

Compute = Callable[[Sequence[Array]], Array]


def labels_of(term: Term) -> list[tuple[Dim, int]]:
    """The places of a constant, each with the size of the axis that it reads."""
    assert term.base.data is not None
    return list(zip(places_of(term), term.base.data.shape, strict=True))


def label_order(label: tuple[Dim, int]) -> tuple[object, ...]:
    """The sort key of labels: by the axes along which they move."""
    place, size = label
    return sorted(axes_in([place])), size_order(place), size


def laid_out(term: Term, labels: Sequence[tuple[Dim, int]]) -> Array:
    """The numbers of a constant with an axis for each label."""
    assert term.base.data is not None
    own = labels_of(term)
    if len(set(own)) < len(own):  # a diagonal
        own_axes = [own.index(label) for label in own]
        array: Array = np.einsum(term.base.data, own_axes, sorted(set(own_axes)))
        own = list(dict.fromkeys(own))
    else:
        array = term.base.data
    order = sorted(range(len(own)), key=lambda k: labels.index(own[k]))
    array = array.transpose(order)
    there = set(own)
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if label in there else 1 for label in labels])


def number_in(term: Term) -> float | None:
    """The number of a constant of floats that is one number everywhere."""
    value = term.number_of
    floats = value is not None and isinstance(value, np.floating) and np.isfinite(value)
    return float(value) if floats else None


#: Numbers up to this size may cancel in a sum; larger ones only if the sum is not so many times as
#: small.
_MOST_CANCELLED, _CANCELLED = 2.0**12, 2.0**10
#: The most products that are added up at once.
_MOST_PRODUCTS = 1 << 27
#: The difference of a number that roundings make: of a scale that was taken out and put back.
NEAR = 1e-6


def is_number(term: Term, number: int, *, near: bool = False) -> bool:
    """Whether a term is this number everywhere; with `near` also but for roundings of floats."""
    value = term.number_of
    if value is None:
        return False
    if near and isinstance(value, np.floating):
        return bool(abs(value - number) <= NEAR)
    return bool(value == number)


def is_finite(term: Term) -> bool:
    """Whether a term is a constant of finite floats."""
    data = term.base.data
    return data is not None and data.dtype.kind == "f" and bool(np.isfinite(data).all())


def cancels(terms: Sequence[Term], total: Term) -> bool:
    """Whether terms are so large beside their sum that what they are added to loses its digits.

    ``x + 12582912 - 12582912`` is x without its fraction.
    """
    sizes = [_largest(term) for term in terms]
    return max(sizes) > max(_MOST_CANCELLED, _CANCELLED * _largest(total))


def _largest(term: Term) -> float:
    data = term.base.data
    if data is None or data.dtype.kind not in "f" or not data.size:
        return 0.0
    return float(np.abs(data).max(initial=0.0, where=np.isfinite(data)))


def has_floats(term: Term) -> bool:
    """Whether a term's numbers are floats, as far as is known."""
    return term.dtype is None or term.dtype.startswith(("float", "bfloat"))


def folded(
    builder: Builder, compute: Compute, args: Sequence[Term], shape: Sequence[Number]
) -> Term | None:
    """The constant that an element-wise op makes of constants; None if it is not computed.

    Constants are read at places; a place that two of them share is an axis of the result.
    """
    labels = sorted({label for arg in args for label in labels_of(arg)}, key=label_order)
    sizes = tuple(size for _, size in labels)
    if math.prod(sizes) <= MOST_ELEMENTS:
        arrays = [laid_out(arg, labels) for arg in args]
        with np.errstate(all="ignore"):
            result = np.asarray(compute(np.broadcast_arrays(*arrays)))
        if result.shape == sizes:
            whole = builder.terms.constant(result, computed=True)
            inner = [labels[axis][0] for axis in plain_axes(whole) or ()]
            return builder.view(whole.base, shape, inner)
    every = [numbers_of(arg) for arg in args]
    if any(array is None for array in every):
        return None
    with np.errstate(all="ignore"):
        result = np.asarray(compute([a for a in every if a is not None]))
    return builder.terms.constant(result, computed=True)


def folded_dot(builder: Builder, a: Term, b: Term, shape: Sequence[Number]) -> Term | None:
    """The sums over the last axis of the products of two constants; None if not computed."""
    labels = sorted({*labels_of(a), *labels_of(b)}, key=label_order)
    over = [label for label in labels if len(shape) in axes_in([label[0]])]
    if over != [(index(len(shape)), a.shape[-1])]:
        return None  # places that depend on more than one axis, or on none
    kept = [label for label in labels if label not in over]
    if math.prod(size for _, size in labels) > _MOST_PRODUCTS:
        return None
    if math.prod(size for _, size in kept) > MOST_ELEMENTS:
        return None
    operands: list[Any] = []
    for term in (a, b):
        own = sorted(set(labels_of(term)), key=labels.index)
        operands += [laid_out(term, own), [labels.index(label) for label in own]]
    with np.errstate(all="ignore"):
        result = np.einsum(*operands, [labels.index(label) for label in kept], optimize=True)
    whole = builder.terms.constant(result, computed=True)
    inner = [kept[axis][0] for axis in plain_axes(whole) or ()]
    return builder.view(whole.base, shape, inner)


__all__ = [
    "NEAR",
    "Compute",
    "cancels",
    "folded",
    "folded_dot",
    "has_floats",
    "is_finite",
    "is_number",
    "number_in",
]
