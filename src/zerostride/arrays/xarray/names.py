"""The dimension of each axis in a fused function, where the operands' dimensions have names.

Within the function axes have positions. This module follows the names through its graph. It refuses
the function if two dimensions meet on one axis, or if an axis is counted that has another position
in the user's array. It does so at all sizes, because a square array would hide the error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ...errors import BroadcastError, Reason
from ...fusion.trace.graph import Apply, Graph, Input, Node, Reduce, arguments, landings

#: For each axis the number of its dimension; None for an axis of extent 1 or without a name.
Labels = tuple[int | None, ...]
_INSTEAD = "compute with the arrays' .data, whose axes have places; or do that outside, by name"


@dataclass(frozen=True, slots=True)
class Names:
    """An operand with names, laid out like the result, as it is passed to the function.

    Attributes:
        dims: its dimensions in the user's order.
        rank: of the passed array, which has new axes between those.
    """

    dims: tuple[Hashable, ...]
    rank: int


@dataclass(frozen=True, slots=True)
class _Value:
    """The names of a node.

    Attributes:
        labels: of its axes.
        order: its dimensions in xarray's order.
        has_places: whether it depends only on arrays without names.
    """

    labels: Labels
    order: tuple[int, ...] = ()
    has_places: bool = False


def check(graph: Graph, operands: Sequence[Names | None], dims: Sequence[Hashable]) -> None:
    """Refuses a graph in which positions and names of axes disagree.

    Args:
        graph: of the function.
        operands: for each input of the graph its names, or None.
        dims: all dimensions, in the order of the result's.

    Raises:
        BroadcastError: dimensions of two names meet, or change their positions.

    >>> turned = View(0, (1, 0), (2, 2), "float32")
    >>> graph = Graph((Input(0, (2, 2), "float32"), turned), (1,), 1)
    >>> check(graph, [Names(("t", "x"), 2)], ("t", "x"))
    Traceback (most recent call last):
    zerostride.errors.BroadcastError: zerostride refuses
      dimension 'x' comes to lie on 't' in the fused function, where axes have places and no names
      fix: compute with the arrays' .data, whose axes have places; or do that outside, by name
    """
    values: list[_Value] = []
    for node in graph.nodes:
        values.append(_value(node, graph.nodes, values, operands, dims))
    for k in graph.outputs:
        for place, label in enumerate(values[k].labels):
            if len(values[k].labels) == len(dims) and label is not None and label != place:
                _refuse(dims[label], dims[place])


def _value(
    node: Node,
    nodes: Sequence[Node],
    values: Sequence[_Value],
    operands: Sequence[Names | None],
    dims: Sequence[Hashable],
) -> _Value:
    if isinstance(node, Input):
        named = operands[node.index]
        if named is None:
            return _Value((None,) * len(node.shape), has_places=bool(node.shape))
        places = range(len(dims) - named.rank, len(dims))
        labels = tuple(place if dims[place] in named.dims else None for place in places)
        return _Value(labels, tuple(map(dims.index, named.dims)))
    args = [values[arg] for arg in arguments(node)]
    if isinstance(node, Apply) and any(arg.has_places for arg in args):
        for arg in args:
            _check_counted("an array without names", arg, dims)
    labels = _labels(node, nodes, values, dims)
    if isinstance(node, Reduce) and 0 < len(node.over) < len(args[0].labels):
        _check_counted("a reduction", args[0], dims)
    return _Value(labels, *_order(node, args, labels))


def _order(node: Node, args: Sequence[_Value], labels: Labels) -> tuple[tuple[int, ...], bool]:
    """A node's dimensions in xarray's order, and whether it depends on arrays without names."""
    order = tuple(dict.fromkeys(dimension for arg in args for dimension in arg.order))
    has_places = any(arg.has_places for arg in args)
    if isinstance(node, Apply):
        return order, has_places and not order
    if isinstance(node, Reduce):
        (source,) = args
        if len(node.over) == len(source.labels):
            order = ()
        gone = set() if node.keepdims else {source.labels[axis] for axis in node.over}
        # An axis that is kept still has its position.
        order = tuple(dimension for dimension in order if dimension not in gone)
        return order, has_places and bool(labels)
    return order, has_places


def _labels(
    node: Node, nodes: Sequence[Node], values: Sequence[_Value], dims: Sequence[Hashable]
) -> Labels:
    """The dimensions of a node's axes; refused where two meet on one axis."""
    labels: list[int | None] = [None] * len(node.shape)
    for arg, lands in landings(node, nodes):
        for label, to in zip(values[arg].labels, lands, strict=True):
            if label is None or to is None:
                continue
            before = labels[to]
            if before is not None and before != label:
                _refuse(dims[label], dims[before])
            labels[to] = label
    return tuple(labels)


def _check_counted(what: str, value: _Value, dims: Sequence[Hashable]) -> None:
    """Refuses to count axes that are not in xarray's positions: the last of all."""
    if value.order != tuple(range(len(dims) - len(value.order), len(dims))):
        names = ", ".join(repr(dims[label]) for label in value.order)
        raise BroadcastError(
            f"{what} goes by the places of axes, and those of the array of ({names}) lie elsewhere "
            f"among ({', '.join(map(repr, dims))})",
            reason=Reason.RANK,
            hint=_INSTEAD,
        )


def _refuse(first: Hashable, second: Hashable) -> NoReturn:
    raise BroadcastError(
        f"dimension {first!r} comes to lie on {second!r} in the fused function, where axes have "
        "places and no names",
        reason=Reason.RANK,
        hint=_INSTEAD,
    )
