"""Maxima that a result does not depend on, such as those that softmax and logsumexp subtract.

`exp(x - m) / sum(exp(x - m))` has the same value for every `m`, and so has
`log(sum(exp(x - m))) + m`. So the cotangent of `m` is 0, up to rounding; computing it would cost a
pass and give noise.

For each such `m` the nodes that depend on it are followed: a node is `m`-free, or an `m`-free value
plus a multiple of `m`, or times a power of exp(m). Any other dependence ends the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...compute.special import is_float
from ..trace.graph import Apply, Axes, Constant, Graph, Node, Reduce, View, arguments


@dataclass(frozen=True, slots=True)
class _Shift:
    """How a value depends on m.

    Attributes:
        scale: false: an m-free value plus c m; true: an m-free value times exp(c m).
        by: c.
        places: for each axis of m of more than one element, the value's axis along which it lies.
    """

    scale: bool
    by: float
    places: tuple[int, ...]


class _DependsError(Exception):
    """A value depends on m in another way."""


def unmoved(graph: Graph) -> frozenset[int]:
    """The maxima and minima, and functions of a single one, that no output depends on.

    >>> from .graph import Input
    >>> pair = ((0,), (0,))
    >>> nodes = (
    ...     Input(0, (4,), "float64"),
    ...     Reduce("max", 0, (0,), True, "float64", (1,), "float64"),
    ...     Apply("subtract", (0, 1), pair, ("float64",) * 3, (4,), "float64"),
    ...     Apply("add", (2, 1), pair, ("float64",) * 3, (4,), "float64"),
    ... )
    >>> unmoved(Graph(nodes, (3,), 1)), unmoved(Graph(nodes, (2,), 1))
    (frozenset({1}), frozenset())
    """
    return frozenset(k for k in _candidates(graph) if not _moves(graph, k))


def _candidates(graph: Graph) -> list[int]:
    """Maxima and minima, and elementwise functions of a single one: where(isfinite(m), m, 0)."""
    made_of: dict[int, frozenset[int]] = {}
    candidates = []
    for k, node in enumerate(graph.nodes):
        if isinstance(node, Reduce) and node.op in ("min", "max"):
            made_of[k] = frozenset({k})
        elif isinstance(node, Apply | View):
            sources = [
                made_of.get(arg, frozenset({-1}))
                for arg in arguments(node)
                if not isinstance(graph.nodes[arg], Constant)
            ]
            made_of[k] = frozenset().union(*sources) or frozenset({-1})
        from_one = k in made_of and len(made_of[k]) == 1 and -1 not in made_of[k]
        if from_one and is_float(np.dtype(node.dtype)):
            candidates.append(k)
    return candidates


def _moves(graph: Graph, m: int) -> bool:
    """Whether an output depends on node m."""
    lies = tuple(axis for axis, n in enumerate(graph.nodes[m].shape) if n != 1)
    shifts: dict[int, _Shift] = {m: _Shift(False, 1.0, lies)}
    try:
        for k in range(m + 1, len(graph.nodes)):
            node = graph.nodes[k]
            if any(arg in shifts for arg in arguments(node)):
                shift = _follow(graph.nodes, node, shifts)
                if shift.by:
                    shifts[k] = shift
    except _DependsError:
        return True
    return any(k in shifts for k in graph.outputs)


def _follow(nodes: Sequence[Node], node: Node, shifts: Mapping[int, _Shift]) -> _Shift:
    if isinstance(node, View):
        (before,) = (shifts[node.arg],)
        return _Shift(before.scale, before.by, tuple(map(node.axes.index, before.places)))
    if isinstance(node, Reduce):
        return _reduced(node, shifts[node.arg])
    assert isinstance(node, Apply)
    if not is_float(np.dtype(node.dtype)):
        raise _DependsError
    if node.op == "where":
        return _either(nodes, node, shifts)
    rule = _RULES.get(node.op)
    if rule is None:
        raise _DependsError
    arg_shifts = [
        _laid(shifts.get(arg), axes) for arg, axes in zip(node.args, node.axes, strict=True)
    ]
    there = [shift for shift in arg_shifts if shift is not None]
    if any(shift.places != there[0].places for shift in there):
        raise _DependsError
    scale, by = rule(
        [None if arg_shift is None else (arg_shift.scale, arg_shift.by) for arg_shift in arg_shifts]
    )
    return _Shift(scale, by, there[0].places)


def _laid(shift: _Shift | None, axes: Axes) -> _Shift | None:
    if shift is None:
        return None
    places = tuple(axes[place] for place in shift.places)
    return _Shift(shift.scale, shift.by, tuple(-1 if to is None else to for to in places))


def _reduced(node: Reduce, shift: _Shift) -> _Shift:
    """A reduction of values with a common factor, or with a common summand where they compare."""
    fits = node.op in ("min", "max") or (node.op == "sum" and shift.scale)
    if not fits or any(place in node.over for place in shift.places):
        raise _DependsError
    places = shift.places
    if not node.keepdims:
        places = tuple(place - sum(axis < place for axis in node.over) for place in places)
    return _Shift(shift.scale, shift.by, places)


def _either(nodes: Sequence[Node], node: Apply, shifts: Mapping[int, _Shift]) -> _Shift:
    """`where` of two values that depend on m in the same way.

    The constant 0 agrees with any factor, an infinity with any shift.
    """
    if node.args[0] in shifts:
        raise _DependsError
    pairs = [
        (_laid(shifts.get(arg), axes), nodes[arg])
        for arg, axes in zip(node.args[1:], node.axes[1:], strict=True)
    ]
    shift = next(candidate for candidate, _ in pairs if candidate is not None)
    free = (0.0,) if shift.scale else (math.inf, -math.inf)
    for mine, source in pairs:
        indifferent = isinstance(source, Constant) and source.value in free
        if mine != shift and not indifferent:
            raise _DependsError
    return shift


_Kind = tuple[bool, float]


def _same(kinds: list[_Kind | None]) -> _Kind:
    (kind,) = kinds
    assert kind is not None
    return kind


def _combined(scale: bool, sign: float) -> Callable[[list[_Kind | None]], _Kind]:
    """The shift of two values: c of the first plus `sign` times c of the second."""

    def combined(kinds: list[_Kind | None]) -> _Kind:
        if any(kind is not None and kind[0] != scale for kind in kinds):
            raise _DependsError
        first, second = (0.0 if kind is None else kind[1] for kind in kinds)
        return scale, first + sign * second

    return combined


def _changed(
    before: bool, after: bool, factor: float = 1.0
) -> Callable[[list[_Kind | None]], _Kind]:
    """The shift of one value."""

    def changed(kinds: list[_Kind | None]) -> _Kind:
        scale, by = _same(kinds)
        if scale != before:
            raise _DependsError
        return after, factor * by

    return changed


_RULES: Mapping[str, Callable[[list[_Kind | None]], _Kind]] = {
    "positive": _same,
    "cast": _same,
    "add": _combined(False, 1.0),
    "subtract": _combined(False, -1.0),
    "multiply": _combined(True, 1.0),
    "divide": _combined(True, -1.0),
    "negative": _changed(False, False, -1.0),
    "exp": _changed(False, True),
    "log": _changed(True, False),
    "reciprocal": _changed(True, True, -1.0),
    "square": _changed(True, True, 2.0),
    "sqrt": _changed(True, True, 0.5),
    "rsqrt": _changed(True, True, -0.5),
}
