"""A traced function as data: nodes with shapes and dtypes, each after those that it reads.

A graph is built for one signature (the operands' shapes and dtypes), so every node has its shape
and its NumPy dtype. Rules have been applied: `Apply.axes` holds the result. A graph has no strides
and no blocks, and does not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

#: A result axis for each axis of an argument; None for an axis of extent 1 that the rule dropped.
Axes = tuple[int | None, ...]
Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Input:
    """An operand of the call, or an array that the function captured (those come last).

    A Python number as an operand has the shape () and is `weak`: its value is read in each call,
    and its dtype depends on the operands that it meets ("int64" or "float64" here).
    """

    index: int
    shape: tuple[int, ...]
    dtype: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A number in the function's code. `weak` (a Python number) promotes as in NumPy."""

    value: Number
    dtype: str
    weak: bool = True
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """An op of the op table on earlier nodes.

    Attributes:
        op: its name in the op table; "cast" converts.
        args: the nodes it reads.
        axes: for each argument, where its axes land on the result's.
        compute: the dtypes to which the arguments are converted before the op, and last that of its
            result (`compute.native.resolve`). 16-bit floats are computed in float32 and rounded
            where they leave the program or are cast, not in between.
        shape: of the result.
        dtype: of the result.
    """

    op: str
    args: tuple[int, ...]
    axes: tuple[Axes, ...]
    compute: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction of an earlier node over some of its axes.

    Attributes:
        op: "sum", "prod", "min", "max", "any", "all", "argmin" or "argmax"; all others (mean,
            variance, logsumexp …) are expressions of these.
        arg: the node it reads.
        over: the argument's axes that are reduced, rising; without any the values are unchanged.
        keepdims: whether these are kept as axes of extent 1.
        compute: the dtype of the argument's values before the reduction.
        shape: of the result.
        dtype: of the result (sums of small integers widen, as NumPy's).
    """

    op: str
    arg: int
    over: tuple[int, ...]
    keepdims: bool
    compute: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class View:
    """An earlier node with its axes in another order, or with axes of extent 1 more or fewer.

    `axes` has, for each axis of the result, the argument's axis that lies there, or None for a new
    axis of extent 1. An axis of the argument that is not named has extent 1.
    """

    arg: int
    axes: Axes
    shape: tuple[int, ...]
    dtype: str


Node = Input | Constant | Apply | Reduce | View


@dataclass(frozen=True, slots=True)
class Graph:
    """What a function computes for one signature.

    Equal nodes occur once, nodes that no output needs are removed, and expressions of numbers alone
    are Constants.

    Attributes:
        nodes: each reads earlier ones only. The inputs that are read need not come first.
        outputs: the nodes that are the results, in order; one may be twice.
        inputs: how many operands a call has, captured arrays included.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    inputs: int


def arguments(node: Node) -> tuple[int, ...]:
    """The nodes that a node reads.

    >>> arguments(View(3, (0, None), (4, 1), "float32"))
    (3,)
    """
    if isinstance(node, Apply):
        return node.args
    if isinstance(node, Reduce | View):
        return (node.arg,)
    return ()


def places_of(axes: Axes, rank: int) -> Axes:
    """For each axis of a result of this rank the argument's axis that lands there, or None.

    >>> places_of((2, None, 0), 3)
    (2, None, 0)
    >>> places_of((1,), 3)
    (None, 0, None)
    """
    places: list[int | None] = [None] * rank
    for axis, to in enumerate(axes):
        if to is not None:
            places[to] = axis
    return tuple(places)


def landings(node: Node, nodes: Sequence[Node]) -> Iterator[tuple[int, Axes]]:
    """For each argument of a node, the node's axes on which its axes land; None for those that a
    reduction folds, or that are dropped.

    >>> x = Input(0, (2, 5), "float32")
    >>> list(landings(Reduce("sum", 0, (0,), False, "float32", (5,), "float32"), [x]))
    [(0, (None, 0))]
    >>> list(landings(View(0, (1, None, 0), (5, 1, 2), "float32"), [x]))
    [(0, (2, 0))]
    """
    if isinstance(node, Apply):
        yield from zip(node.args, node.axes, strict=True)
    elif isinstance(node, View):
        yield node.arg, places_of(node.axes, len(nodes[node.arg].shape))
    elif isinstance(node, Reduce):
        rank = len(nodes[node.arg].shape)
        kept = [axis for axis in range(rank) if node.keepdims or axis not in node.over]
        places = {axis: to for to, axis in enumerate(kept) if axis not in node.over}
        yield node.arg, tuple(map(places.get, range(rank)))


def rewritten(graph: Graph, replaced: Callable[[int, Node, list[Node]], Node]) -> Graph:
    """A graph with other nodes in the places of its own.

    Args:
        graph: the graph.
        replaced: gives the node for the place k, from k, the graph's node reading the new nodes,
            and the new nodes before it, to which it may add.
    """
    nodes: list[Node] = []
    number: list[int] = []
    for k, node in enumerate(graph.nodes):
        new = replaced(k, rewired(node, number), nodes)
        nodes.append(new)
        number.append(len(nodes) - 1)
    return Graph(tuple(nodes), tuple(number[k] for k in graph.outputs), graph.inputs)


def rewired(node: Node, number: Mapping[int, int] | Sequence[int]) -> Node:
    """A node that reads the nodes of other numbers.

    Args:
        node: the node.
        number: for each node that it reads the number of the node to read.
    """
    if isinstance(node, Apply):
        return replace(node, args=tuple(number[arg] for arg in node.args))
    if isinstance(node, Reduce | View):
        return replace(node, arg=number[node.arg])
    return node


def needed_by(
    nodes: Sequence[Node], wanted: Iterable[int], sources: Collection[int] = ()
) -> set[int]:
    """The nodes that the wanted nodes need, themselves included, back to the sources."""
    needed = {*wanted}
    for k in range(len(nodes) - 1, -1, -1):
        if k in needed and k not in sources:
            needed.update(arguments(nodes[k]))
    return needed


def pruned(graph: Graph, outputs: Sequence[int]) -> Graph:
    """The graph of some nodes as outputs, without the nodes that these do not need.

    >>> x, y = Input(0, (2,), "float32"), Input(1, (2,), "float32")
    >>> pruned(Graph((x, y), (0, 1), 2), (1,)).nodes == (y,)
    True
    """
    number = {k: new for new, k in enumerate(sorted(needed_by(graph.nodes, outputs)))}
    nodes = tuple(rewired(graph.nodes[k], number) for k in number)
    return Graph(nodes, tuple(number[k] for k in outputs), graph.inputs)


def results_of(graph: Graph, value_of: Callable[[Node, Sequence[Any]], Any]) -> list[Any]:
    """The values of a graph's outputs, computed node by node.

    Args:
        graph: what to compute.
        value_of: computes a node from the values so far, by their nodes' numbers. Values that no
            later node reads are replaced by None and freed.

    >>> x = Input(0, (2,), "float32")
    >>> graph = Graph((x, View(0, (0, None), (2, 1), "float32")), (1, 0), 1)
    >>> results_of(graph, lambda node, held: (type(node).__name__, len(held)))
    [('View', 2), ('Input', 2)]
    """
    last = {arg: k for k, node in enumerate(graph.nodes) for arg in arguments(node)}
    last |= dict.fromkeys(graph.outputs, len(graph.nodes))
    held: list[Any] = [None] * len(graph.nodes)
    for k, node in enumerate(graph.nodes):
        held[k] = value_of(node, held)
        for arg in set(arguments(node)):
            if last[arg] == k:
                held[arg] = None
    return [held[k] for k in graph.outputs]
