"""Constants that scale a term, in its weights: of a product of matrices, of a convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....sizes.atoms import Symbol
from ....sizes.dim import Number, dim
from .axes import places_of
from .constants import NEAR, folded, folded_dot, has_floats, is_finite, number_in
from .fingerprints import fingerprint
from .places import axes_in, index, lone_axis
from .term import DOT, PRODUCT, SUM, Term, numbers_of, plain_axes

if TYPE_CHECKING:
    from .builder import Builder

#: Ops that a number above 0 may scale before or after.
_KEPT_BY_SCALES = ("Max", "Min")


def scaled(builder: Builder, scale: Term, term: Term, shape: Sequence[Number]) -> Term | None:
    """A constant times a term, where it goes into the term; None where it does not."""
    if not has_floats(term) or not is_finite(scale):
        return None
    if term.op == SUM:
        return builder.total([builder.product([scale, arg], shape) for arg in term.args], shape)
    number = number_in(scale)
    if term.op in _KEPT_BY_SCALES and number is not None and number > 0:
        args = [builder.product([scale, arg], shape) for arg in term.args]
        return builder.pointwise(term.op, args, shape, term.attributes, term.dtype)
    if number is not None:
        return None  # a number stays before a product of matrices
    if term.op == DOT:
        return _scaled_dot(builder, scale, term)
    if term.base.op in ("Conv", "ConvTranspose"):
        return _scaled_conv(builder, scale, term)
    return None


def _scaled_dot(builder: Builder, scale: Term, term: Term) -> Term | None:
    places = places_of(scale)
    for k, arg in enumerate(term.args):
        axes = plain_axes(arg)
        if not arg.constant or axes is None or not axes_in(places) <= set(axes):
            continue
        wide = builder.view(scale.base, arg.shape, places)
        known = folded(builder, lambda two: np.multiply(*two), [arg, wide], arg.shape)
        if known is not None:
            args = [known if j == k else other for j, other in enumerate(term.args)]
            return builder.dot(args[0], args[1], term.shape)
    return None


def _scaled_conv(builder: Builder, scale: Term, view: Term) -> Term | None:
    """The scale of each channel in the weights of the convolution that a view reads."""
    term = view.base
    places = places_of(view)
    # A view of one channel has no axis for it.
    along = lone_axis(places[1]) if places[1] != 0 else None
    own = places_of(scale)
    weights = numbers_of(term.args[1])
    channels = term.shape[1]
    if weights is None or not isinstance(channels, int):
        return None
    if not axes_in(own) <= {along} or (along is None and channels != 1):
        return None
    if along is not None and view.shape[along] != channels:
        return None
    values: dict[Symbol, Number] = {} if along is None else {index(along).symbols[0]: index(0)}
    each = builder.view(scale.base, (channels,), [dim(p.substitute(values)) for p in own])
    numbers = numbers_of(each)
    axis = 0 if term.op == "Conv" else 1
    if numbers is None or weights.shape[axis] != channels:
        return None  # a transposed convolution in groups
    spread = [-1 if k == axis else 1 for k in range(weights.ndim)]
    product = weights * numbers.reshape(spread).astype(weights.dtype)
    known = builder.terms.constant(product, computed=True)
    known, largest = by_largest(builder, known)
    scaled = builder.terms.get(
        term.op, (term.args[0], known), term.shape, term.attributes, dtype=term.dtype
    )
    shown = builder.view(scaled, view.shape, places)
    return builder.product([builder.number(largest, shown, view.shape), shown], view.shape)


def by_largest(builder: Builder, weights: Term) -> tuple[Term, float]:
    """Weights divided by the one of their numbers with the largest absolute value; that number.

    Weights that differ by a scale or by a sign so become equal.
    """
    data = weights.base.data
    if builder.exact or data is None or data.dtype.kind != "f" or not data.size:
        return weights, 1.0
    size = np.abs(data)
    largest = float(size.max())
    if largest == 0 or not np.isfinite(largest):
        return weights, 1.0
    first = int(np.argmax(size >= largest * (1 - NEAR)))  # of several, perhaps but for rounding
    largest = math.copysign(largest, data.flat[first])
    if largest == 1:
        return weights, 1.0
    base = builder.terms.constant(data / data.dtype.type(largest), computed=weights.base.computed)
    if base.shape != data.shape or base.op != weights.base.op:
        return weights, 1.0
    return builder.view(base, weights.shape, places_of(weights)), largest


def led_by_one(
    builder: Builder, factors: Sequence[Term], shape: Sequence[Number]
) -> tuple[list[Term], list[Term]]:
    """Factors without the numbers by which they are scaled; and these numbers.

    ``x * (0.5 + 0.5*y)`` is so ``x * (1 + y) * 0.5``, and ``x * Min(y, 6)`` is
    ``x * Min(y/6, 1) * 6``.
    """
    led, numbers = [], []
    for factor in factors:
        number = _lead(builder, factor)
        if abs(number - 1) <= NEAR:
            led.append(factor)
            continue
        led.append(builder.product([builder.number(1 / number, factor, shape), factor], shape))
        numbers.append(builder.number(number, factor, shape))
    return led, numbers


def _lead(builder: Builder, term: Term) -> float:
    """The number by which a sum, or the larger or smaller of terms, is scaled; 1 for others."""
    op = term.base.op
    if op not in (SUM, *_KEPT_BY_SCALES) or not has_floats(term):
        return 1.0
    parts = builder.parts_of(term, op)
    number = next((n for n in map(number_in, parts) if n), None)
    if op != SUM:
        return 1.0 if number is None else abs(number)
    if number is not None:
        return number
    split = [builder.without_number(part) for part in parts if not part.constant]
    if not split:
        return 1.0
    # The same whichever order the terms have.
    largest = max(abs(number) for _, number in split)
    signs = {number > 0 for _, number in split}
    if len(signs) == 1:
        return largest if True in signs else -largest
    _, first = min(split, key=lambda pair: fingerprint(pair[0], builder.fingerprints))
    return math.copysign(largest, first)


def constants_apart(builder: Builder, a: Term, b: Term, shape: Sequence[Number]) -> Term | None:
    """``(x + c) @ w`` as ``x @ w + c @ w`` for constants c and w; None for other products."""
    for term, weights in ((a, b), (b, a)):
        if term.base.op != SUM or not is_finite(weights) or not has_floats(term):
            continue
        parts = builder.parts_of(term, SUM)
        known = [part for part in parts if is_finite(part)]
        dots = [folded_dot(builder, part, weights, shape) for part in known]
        rest = [part for part in parts if part not in known]
        if dots and rest and None not in dots:
            inner = builder.dot(builder.total(rest, term.shape), weights, shape)
            return builder.total([inner, *(one for one in dots if one is not None)], shape)
    return None


def taken_out(builder: Builder, arg: Term, rank: int) -> tuple[Term, list[Term]]:
    """A factor of a dot without its constants that do not depend on the axis of the sum."""
    if arg.base.op == SUM:
        led, numbers = led_by_one(builder, [arg], arg.shape)
        return led[0], numbers
    if arg.constant:
        weights, largest = by_largest(builder, arg)
        return weights, [] if largest == 1 else [builder.number(largest, arg, arg.shape)]
    factors = builder.parts_of(arg, PRODUCT)
    if len(factors) < 2 or not has_floats(arg):
        return arg, []
    outer = [
        factor
        for factor in factors
        if is_finite(factor) and all(axis < rank for axis in axes_in(places_of(factor)))
    ]
    if not outer:
        return arg, []
    inner = [factor for factor in factors if factor not in outer]
    return builder.product(inner, arg.shape), outer


__all__ = ["by_largest", "constants_apart", "led_by_one", "scaled", "taken_out"]
