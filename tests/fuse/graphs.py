"""Graphs made by hand, and at random."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from zerostride import plan
from zerostride.compute.native import resolve
from zerostride.fusion.trace.graph import Apply, Constant, Graph, Input, Node, Reduce, View
from zerostride.ops import OPS

_SUMS = frozenset({"sum", "prod"})


class Builder:
    """Adds nodes; each method gives the new node's number. Equal nodes are one."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> int:
        if node not in self.nodes:
            self.nodes.append(node)
        return self.nodes.index(node)

    def input(self, shape: tuple[int, ...], dtype: str = "float32", *, weak: bool = False) -> int:
        index = sum(isinstance(node, Input) for node in self.nodes)
        return self.add(Input(index, shape, dtype, weak))

    def number(self, value: float) -> int:
        return self.add(Constant(value, "float64" if isinstance(value, float) else "int64"))

    def op(self, name: str, *args: int, dtype: str | None = None, **rule: Any) -> int:
        """An op of the table, laid out and converted as a call of it."""
        result = plan(*(self.nodes[arg].shape for arg in args), **rule)
        compute = resolve(OPS[name], tuple(map(self._kind, args)), dtype)
        assert compute is not None
        return self.add(Apply(name, args, result.axes_mapping, compute, result.shape, compute[-1]))

    def cast(self, arg: int, dtype: str) -> int:
        node = self.nodes[arg]
        axes = tuple(range(len(node.shape)))
        return self.add(Apply("cast", (arg,), (axes,), (node.dtype, dtype), node.shape, dtype))

    def reduce(self, op: str, arg: int, over: Sequence[int], *, keepdims: bool = False) -> int:
        node = self.nodes[arg]
        shape = tuple(
            1 if axis in over else extent
            for axis, extent in enumerate(node.shape)
            if keepdims or axis not in over
        )
        compute = dtype = node.dtype
        if op in _SUMS:
            empty = np.zeros(0, dtype)
            compute = dtype = getattr(np, op)(empty).dtype.name
        elif op in ("any", "all"):
            dtype = "bool"
        elif op in ("argmin", "argmax"):
            dtype = "int64"
        return self.add(Reduce(op, arg, tuple(sorted(over)), keepdims, compute, shape, dtype))

    def view(self, arg: int, axes: Sequence[int | None]) -> int:
        node = self.nodes[arg]
        shape = tuple(1 if axis is None else node.shape[axis] for axis in axes)
        return self.add(View(arg, tuple(axes), shape, node.dtype))

    def graph(self, *outputs: int) -> Graph:
        """The graph of what these outputs need."""
        needed = set(outputs)
        for k in range(len(self.nodes) - 1, -1, -1):
            if k in needed:
                node = self.nodes[k]
                args = node.args if isinstance(node, Apply) else ()
                needed |= {*args, *((node.arg,) if isinstance(node, Reduce | View) else ())}
        new = {k: i for i, k in enumerate(sorted(needed))}
        nodes = tuple(_renumbered(self.nodes[k], new) for k in sorted(needed))
        inputs = sum(isinstance(node, Input) for node in self.nodes)
        return Graph(nodes, tuple(new[k] for k in outputs), inputs)

    def _kind(self, k: int) -> str:
        node = self.nodes[k]
        weak = isinstance(node, Input | Constant) and node.weak
        return node.dtype.rstrip("0123456789") if weak else node.dtype


def _renumbered(node: Node, new: dict[int, int]) -> Node:
    if isinstance(node, Apply):
        args = tuple(new[arg] for arg in node.args)
        return Apply(node.op, args, node.axes, node.compute, node.shape, node.dtype)
    if isinstance(node, Reduce):
        arg = new[node.arg]
        return Reduce(node.op, arg, node.over, node.keepdims, node.compute, node.shape, node.dtype)
    return (
        View(new[node.arg], node.axes, node.shape, node.dtype) if isinstance(node, View) else node
    )


# At random

_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "squared_difference")
_UNARY = ("abs", "negative", "square", "relu", "tanh", "sigmoid", "floor", "isfinite")
_REDUCTIONS = ("sum", "min", "max", "any", "all", "argmin", "argmax", "prod")
_DTYPES = ("float32", "float32", "float64", "int32", "uint8", "float16", "bool")
#: Shapes that NumPy's rule combines are drawn from these extents, or are 1 there, or lack the axis.
_EXTENTS = (4, 3, 5)


def random_graph(seed: int) -> tuple[Graph, list[Any]]:
    """A graph, and operands for it. The same seed gives the same."""
    rng = random.Random(seed)
    builder = Builder()
    sizes = rng.sample(_EXTENTS, rng.randint(1, 3))
    if rng.random() < 0.3:
        sizes[-1] *= 40  # there is something to spare by hoisting
    pool = [
        builder.input(_shape(rng, sizes), rng.choice(_DTYPES)) for _ in range(rng.randint(1, 4))
    ]
    if rng.random() < 0.2:
        pool.append(builder.input((), rng.choice(("float64", "int64")), weak=True))
    for _ in range(rng.randint(1, 12)):
        node = _draw(rng, builder, pool)
        if node is not None:
            pool.append(node)
    outputs = [pool[-1], *rng.choices(pool, k=rng.choice((0, 0, 0, 1, 2)))]
    graph = builder.graph(*outputs)
    data = np.random.default_rng(seed)
    inputs = [node for node in builder.nodes if isinstance(node, Input)]
    return graph, [_operand(data, node) for node in inputs]


def _shape(rng: random.Random, sizes: Sequence[int]) -> tuple[int, ...]:
    shape = [size if rng.random() < 0.75 else 1 for size in sizes]
    return tuple(shape[rng.choice((0, 0, 0, 1)) :])


def _draw(rng: random.Random, builder: Builder, pool: list[int]) -> int | None:
    recent = pool[-4:] if rng.random() < 0.7 else pool
    arg = rng.choice(recent)
    node = builder.nodes[arg]
    roll = rng.random()
    try:
        if roll < 0.2:
            return builder.op(rng.choice(_UNARY), arg)
        if roll < 0.45:
            return builder.op(rng.choice(_BINARY), arg, rng.choice(pool))
        if roll < 0.55:
            return builder.op(
                rng.choice(_BINARY), arg, builder.number(rng.choice((2, 0.5, 3, -0.0)))
            )
        if roll < 0.6:
            wanted = builder.op("less", arg, rng.choice(pool))
            return builder.op("where", wanted, arg, rng.choice(pool))
        if roll < 0.67:
            return builder.cast(arg, rng.choice(("float16", "float32", "int32", "bool")))
        if roll < 0.77 and node.shape:
            axes: list[int | None] = list(rng.sample(range(len(node.shape)), len(node.shape)))
            if rng.random() < 0.3:
                axes.insert(rng.randint(0, len(axes)), None)
            return builder.view(arg, axes)
        rank = len(node.shape)
        over = rng.sample(range(rank), rng.randint(0, rank))
        return builder.reduce(rng.choice(_REDUCTIONS), arg, over, keepdims=rng.random() < 0.7)
    except (ValueError, TypeError, AssertionError):  # shapes or dtypes that do not go together
        return None


def _operand(data: np.random.Generator, node: Input) -> Any:
    if node.weak:
        return 3 if node.dtype == "int64" else 0.3
    count = math.prod(node.shape)
    # Few distinct values, exact in all dtypes: equal ones among them, and sums without rounding.
    values = data.integers(0 if node.dtype[0] == "u" else -4, 5, count) / 2
    return values.astype(node.dtype).reshape(node.shape)


def random_rows(seed: int) -> tuple[Graph, list[Any]]:
    """Values over one shape, and reductions of them that are spread over it again, as softmax and
    norms have; and operands."""
    rng = random.Random(seed)
    builder = Builder()
    shape = tuple(rng.sample((3, 4, 5, 7), rng.randint(2, 3)))
    over = sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape) - 1)))
    whole = [builder.input(shape, rng.choice(_DTYPES[:3]))]
    whole += [builder.input(shape[-1:]) for _ in range(rng.randint(0, 1))]
    for _ in range(rng.randint(3, 10)):
        arg, roll = rng.choice(whole[-3:]), rng.random()
        if roll < 0.3:
            whole.append(builder.op(rng.choice(("tanh", "sigmoid", "square", "exp")), arg))
        elif roll < 0.5:
            whole.append(builder.op(rng.choice(_BINARY), arg, rng.choice(whole)))
        elif roll < 0.55 and len(builder.nodes[arg].shape) == len(shape):
            axes = [*range(len(shape))]
            i, j = rng.sample(axes, 2)
            axes[i], axes[j] = j, i
            if builder.nodes[arg].shape[i] == builder.nodes[arg].shape[j]:
                whole.append(builder.view(arg, axes))
        elif builder.nodes[arg].shape == shape:
            folded = over if rng.random() < 0.85 else rng.sample(range(len(shape)), 1)
            stat = builder.reduce(rng.choice(("sum", "min", "max")), arg, folded, keepdims=True)
            if rng.random() < 0.3:
                stat = builder.op("sigmoid", builder.op("add", stat, builder.number(0.5)))
            whole.append(builder.op(rng.choice(_BINARY), rng.choice(whole), stat))
    outputs = [whole[-1], *rng.choices(whole, k=rng.choice((0, 0, 1)))]
    if rng.random() < 0.2:
        outputs.append(builder.reduce("sum", whole[-1], range(len(builder.nodes[whole[-1]].shape))))
    graph = builder.graph(*outputs)
    data = np.random.default_rng(seed)
    inputs = [node for node in builder.nodes if isinstance(node, Input)]
    return graph, [_operand(data, node) for node in inputs]
