"""Random LiteRT graphs of ops that broadcast, by seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .tflite_writer import Graph, Model

#: Ops of two floats; each is right for numbers from 0.5 to 2.
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
_COMPARED = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
_ACTIVATIONS = ("NONE", "NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_ACTIVATED = frozenset({"ADD", "SUB", "MUL", "DIV"})
_FLOATS = ("float16", "float32", "float64")
_WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
#: Element types of files, and those of quantised tensors with their range of zero points.
DTYPES = (*_FLOATS, *_WHOLE, "bool")
_QUANTISED: Mapping[str, tuple[int, int]] = {"int8": (-9, 9), "uint8": (100, 140), "int16": (0, 0)}
#: Half of the ops are on float32, and some on quantised tensors.
_FLOAT32, _SCALED = 0.5, 0.12

Shape = tuple[int, ...]


def _shapes(rng: random.Random, most: int = 5) -> tuple[Shape, Shape]:
    """Two shapes, by NumPy's rule in most cases; a few are empty."""
    rank = rng.choice((1, 2, 3, 4, 4, 4, most))
    sizes = (1, 2, 3, 4) if rng.random() < 0.97 else (0, 1, 2)
    full = [rng.choice(sizes) for _ in range(rank)]

    def part() -> Shape:
        kept = rng.randrange(rank + 1) if rng.random() < 0.5 else rank
        sizes = [1 if rng.random() < 0.3 else size for size in full[rank - kept :]]
        if sizes and rng.random() < 0.05:
            sizes[rng.randrange(len(sizes))] += 1
        return tuple(sizes)

    pair = (part(), tuple(full)) if rng.random() < 0.5 else (tuple(full), part())
    return pair if rng.random() < 0.8 else (part(), part())


def _broadcast(*operands: Shape) -> Shape:
    """The shape by NumPy's rule; () where it has none."""
    try:
        return np.broadcast_shapes(*operands)
    except ValueError:
        return ()


class Draw:
    """A graph of one op whose inputs are x0, x1, ... and whose result is y."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"tflite one/{seed}")
        self.model = Model()
        self.kind = self.rng.choice(sorted(_KINDS))
        self.scaled: dict[str, Any] = {}
        self.dtype = self._dtype()

    @property
    def graph(self) -> Graph:
        """The model's."""
        return self.model.main

    def _dtype(self) -> str:
        if self.kind.startswith("LOGICAL"):
            return "bool" if self.rng.random() < 0.9 else self.rng.choice(DTYPES)
        if self.kind in _BITS:
            return self.rng.choice(_WHOLE if self.rng.random() < 0.9 else DTYPES)
        if self.rng.random() < _SCALED and self.kind not in _UNSCALED:
            dtype = self.rng.choice(sorted(_QUANTISED))
            self.scaled = {"scales": (0.1,), "zeros": (self.rng.randint(*_QUANTISED[dtype]),)}
            return dtype
        return "float32" if self.rng.random() < _FLOAT32 else self.rng.choice(DTYPES)

    def operand(self, name: str, shape: Shape, dtype: str = "") -> str:
        """An operand: a constant in some cases."""
        dtype = dtype or self.dtype
        more = self.scaled if dtype != "bool" else {}
        if name != "x0" and self.rng.random() < 0.4:
            values = numbers(self.rng.randrange(2**32), shape, dtype)
            return self.graph.constant(name, values, **more)
        return self.graph.input(name, *shape, dtype=dtype, **more)

    def result(self, dtype: str = "", shape: Shape = ()) -> None:
        """The result's tensor; quantised results that combine numbers have a wider scale."""
        dtype = dtype or self.dtype
        more = self.scaled if dtype != "bool" else {}
        if more and self.kind not in _KEEPS_SCALE:
            more = {**more, "scales": (0.2,)}
        self.graph.add("y", shape, dtype, ranked=False, **more)

    def op(self, names: Sequence[str], **options: Any) -> Model:
        """The op, and the model that holds it."""
        self.graph.op(self.kind, " ".join(names), "y", **options)
        self.graph.output("y")
        return self.model


def numbers(seed: int, shape: Sequence[int], dtype: str) -> np.ndarray[Any, Any]:
    """Numbers from 0.5 to 2; whole ones from 1 to 4; truth values."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(1, 5, shape).astype(dtype)
    return np.asarray(rng.uniform(0.5, 2, shape)).astype(dtype)


def one(seed: int) -> Model:
    """One op that broadcasts, on any shapes and element types."""
    draw = Draw(seed)
    return _KINDS[draw.kind](draw)


def _binary(draw: Draw) -> Model:
    a, b = _shapes(draw.rng, draw.rng.choice((5, 6, 8, 9)))
    names = [draw.operand("x0", a), draw.operand("x1", b)]
    draw.result("bool" if draw.kind in _COMPARED else "")
    options: dict[str, Any] = {}
    if draw.kind in _ACTIVATED and draw.dtype.startswith("float"):
        options["fused_activation_function"] = draw.rng.choice(_ACTIVATIONS)
    if draw.kind in ("ADD", "SUB"):
        options["pot_scale_int16"] = False
    return draw.op(names, **options)


def _broadcast_to(draw: Draw) -> Model:
    data, target = _shapes(draw.rng, draw.rng.choice((5, 6, 8, 9)))
    draw.operand("x0", data)
    kind = draw.rng.choice((np.int32, np.int64))
    draw.graph.constant("target", np.array(target, kind))
    draw.result()
    return draw.op(["x0", "target"])


def _select(draw: Draw) -> Model:
    a, b = _shapes(draw.rng, draw.rng.choice((5, 6, 8, 9)))
    last = b if draw.kind == "SELECT_V2" else a
    condition = draw.rng.choice((a, b, a[:1], ()))
    names = [draw.operand("x0", condition, "bool")]
    names += [draw.operand("x1", a), draw.operand("x2", last)]
    # Where every operand is one number, the result keeps the size that the file says.
    draw.result(shape=_broadcast(condition, a, last))
    return draw.op(names)


def _sum(draw: Draw) -> Model:
    a, b = _shapes(draw.rng)
    shapes = [a if draw.rng.random() < 0.9 else b for _ in range(draw.rng.choice((2, 3, 4)))]
    names = [draw.operand(f"x{k}", shape) for k, shape in enumerate(shapes)]
    draw.result()
    return draw.op(names)


def _product(draw: Draw) -> Model:
    rng = draw.rng
    a, b = _shapes(rng, rng.choice((3, 4)))
    rows, inner, columns = (rng.choice((1, 2, 3)) for _ in range(3))
    turned = [rng.random() < 0.3, rng.random() < 0.3]
    left, right = (inner, rows)[:: 1 if turned[0] else -1], (inner, columns)
    if turned[1]:
        right = right[::-1]
    names = [draw.operand("x0", a + left), draw.operand("x1", b + right)]
    draw.result()
    return draw.op(names, adj_x=turned[0], adj_y=turned[1])


_STABLEHLO = tuple(
    f"STABLEHLO_{op}" for op in ["ADD", "AND", "MAXIMUM", "MINIMUM", "MULTIPLY", "SUBTRACT"]
)
_BITS = ("BITWISE_XOR", "RIGHT_SHIFT")
_KINDS: Mapping[str, Callable[[Draw], Model]] = {
    **dict.fromkeys((*BINARY, *_COMPARED, *_BITS, "PRELU", "POW", "ATAN2"), _binary),
    **dict.fromkeys(("FLOOR_DIV", "FLOOR_MOD", "LOGICAL_AND", "LOGICAL_OR"), _binary),
    **dict.fromkeys(_STABLEHLO, _binary),
    **dict.fromkeys(("SELECT", "SELECT_V2"), _select),
    "ADD_N": _sum,
    "BATCH_MATMUL": _product,
    "BROADCAST_TO": _broadcast_to,
}
#: Ops whose quantised result has the scale of the operands.
_KEEPS_SCALE = frozenset({"MAXIMUM", "MINIMUM", "SELECT", "SELECT_V2", "BROADCAST_TO"})
#: Ops that have no quantised form.
_UNSCALED = frozenset({"ADD_N", "ATAN2", "BATCH_MATMUL", *_STABLEHLO})


def chain(seed: int) -> Model:
    """Up to eight ops, each on an earlier tensor and another that broadcasts with it."""
    rng = random.Random(f"tflite chain/{seed}")
    model = Model()
    graph = model.main
    rank = rng.choice((2, 3, 4, 4, 5))
    full = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rank))
    sizes = {graph.input("x", *full): full}
    for k in range(rng.choice((1, 2, 3, 5, 8))):
        kind = rng.choice((*BINARY, "PRELU", "SELECT_V2"))
        first, name = rng.choice(list(sizes)), f"t{k}"
        kept = rng.randrange(1, rank + 1) if rng.random() < 0.4 else rank
        shape = tuple(1 if rng.random() < 0.3 else size for size in full[rank - kept :])
        if rng.random() < 0.2 and shape[0] != 1:
            shape = shape[: rng.randrange(len(shape) + 1)] and shape[-1:]
        other = f"c{k}"
        if rng.random() < 0.5:
            graph.constant(other, numbers(rng.randrange(2**32), shape, "float32"))
        elif rng.random() < 0.3:
            halves = numbers(rng.randrange(2**32), shape, "float16")
            graph.op("DEQUANTIZE", graph.constant(f"h{k}", halves), other)
        else:
            graph.input(other, *shape)
        operands = [first, other]
        if kind not in ("PRELU", "SELECT_V2") and rng.random() < 0.4:
            operands.reverse()
        if kind == "SELECT_V2":
            graph.add(f"m{k}", (), "bool", ranked=False)
            graph.op("LESS", f"{first} {other}", f"m{k}")
            operands.insert(0, f"m{k}")
            # Of operands of one number, SELECT_V2's result keeps the sizes that the file says.
            graph.add(name, _broadcast(sizes[first], shape), ranked=False)
        options: dict[str, Any] = {}
        if kind in _ACTIVATED:
            options["fused_activation_function"] = rng.choice(_ACTIVATIONS)
        graph.op(kind, " ".join(operands), name, **options)
        sizes[name] = _broadcast(sizes[first], shape)
    tensors = list(sizes)
    graph.output(*dict.fromkeys((tensors[-1], *rng.sample(tensors[1:], 1))))
    return model


__all__ = ["BINARY", "DTYPES", "chain", "numbers", "one"]
