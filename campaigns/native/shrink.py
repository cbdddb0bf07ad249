"""Shrinks calls that differ: fewer axes, elements, options; simpler memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from .cases import DrawnCall, Memory, Number, View, contiguous, dtype_of


class Remade(Protocol):
    """A case that can be made; TypeError or ValueError where its parts do not fit."""

    def make(self) -> object:
        """Makes its arrays."""


Case = TypeVar("Case", bound=Remade)


def shrunk(
    case: Case,
    simpler: Callable[[Case], Iterable[Case]],
    fails: Callable[[Case], bool],
    tries: int,
) -> Case:
    """A simpler case that still fails: crude, but enough to be read."""
    again = True
    while again:
        again = False
        for other in simpler(case):
            tries -= 1
            if tries < 0:
                return case
            if other != case and _can_be_made(other) and fails(other):
                case, again = other, True
                break
    return case


def _can_be_made(case: Remade) -> bool:
    try:
        case.make()
    except (TypeError, ValueError):
        return False
    return True


def smaller_views(views: Iterable[View]) -> Iterator[Callable[[View], View]]:
    """Changes of all views alike: without an axis, or with fewer elements along one.

    Axes are counted from the right, as most rules do; elsewhere the call fails otherwise.
    """
    views = list(views)
    rank = max((len(view.shape) for view in views), default=0)
    for axis in range(-1, -rank - 1, -1):
        yield functools.partial(without, axis=axis)
        longest = max((view.shape[axis] for view in views if -axis <= len(view.shape)), default=1)
        for n in sorted({1, 2, longest // 2, longest - 1}):
            if 0 < n < longest:
                yield functools.partial(cut, axis=axis, n=n)


def shrink(call: DrawnCall, fails: Callable[[DrawnCall], bool], tries: int = 400) -> DrawnCall:
    """A simpler call that still fails."""
    return shrunk(_tidy(call), lambda call: map(_tidy, _simpler(call)), fails, tries)


def _tidy(call: DrawnCall) -> DrawnCall:
    """Without memory that nothing lies in."""
    views = [view for view in (*call.operands, call.out) if isinstance(view, View)]
    used = sorted({view.memory for view in views})
    smaller = _mapped(call, lambda view: replace(view, memory=used.index(view.memory)))
    return replace(smaller, memories=tuple(call.memories[k] for k in used))


def _simpler(call: DrawnCall) -> list[DrawnCall]:
    """Each with one thing less."""
    listed = [
        replace(call, options={key: other for key, other in call.options.items() if key != name})
        for name in call.options
        if not (call.op == "cast" and name == "dtype")
    ]
    if call.out is not None:
        listed.append(replace(call, out=None))
    views = [view for view in (*call.operands, call.out) if isinstance(view, View)]
    listed += [_mapped(call, change) for change in smaller_views(views)]
    for k, operand in enumerate(call.operands):
        if isinstance(operand, View):
            listed += _plainer(call, k, operand)
    return listed


def _mapped(call: DrawnCall, change: Callable[[View], View]) -> DrawnCall:
    operands: list[View | Number] = [
        change(operand) if isinstance(operand, View) else operand for operand in call.operands
    ]
    return replace(
        call, operands=tuple(operands), out=None if call.out is None else change(call.out)
    )


def without(view: View, axis: int) -> View:
    """Only the first along an axis, and the axis gone."""
    if -axis > len(view.shape) or view.shape[axis] == 0:
        return view
    at = len(view.shape) + axis
    return replace(
        view,
        shape=view.shape[:at] + view.shape[at + 1 :],
        strides=view.strides[:at] + view.strides[at + 1 :],
    )


def cut(view: View, axis: int, n: int) -> View:
    """At most the first `n` elements along an axis."""
    if -axis > len(view.shape) or view.shape[axis] <= n:
        return view
    at = len(view.shape) + axis
    return replace(view, shape=(*view.shape[:at], n, *view.shape[at + 1 :]))


def _plainer(call: DrawnCall, k: int, view: View) -> list[DrawnCall]:
    """An operand in memory of its own, in C order; of ordinary values."""
    size = dtype_of(view.dtype).itemsize
    elements = int(np.prod(view.shape, dtype=object)) if view.shape else 1
    own = Memory(size * elements, view.dtype, "small", 0)
    plain = View(len(call.memories), view.dtype, 0, view.shape, contiguous(view.shape, size))
    styles = [call.memories[view.memory].style, "plain"]
    return [
        replace(
            call,
            memories=(*call.memories, replace(own, style=style)),
            operands=(*call.operands[:k], plain, *call.operands[k + 1 :]),
        )
        for style in styles
        if call.memories[view.memory] != replace(own, style=style)
    ]
