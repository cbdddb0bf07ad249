"""The weights that each kind of layer reads from a .bin, in order (its `load_model`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .text import Params


@dataclass(frozen=True, slots=True)
class Load:
    """Weights that a layer reads.

    Attributes:
        name: their name in the layer.
        shape: their shape, in NumPy's order.
        marked: whether a mark before them gives the storage form; else they are 32-bit floats.
    """

    name: str
    shape: tuple[int, ...]
    marked: bool = False

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


Loads: TypeAlias = "Callable[[Params], Sequence[Load]]"


def vector(name: str, count: int) -> Load:
    """A list of 32-bit floats."""
    return Load(name, (count,))


def weight(count: int) -> Loads:
    """Weights of the count in a parameter, in any storage form."""
    return lambda p: [Load("weight", (p.whole(count),), marked=True)]


def vectors(names: str, count: int, when: int | None = None, default: int = 0) -> Loads:
    """Vectors of the length in a parameter; none if the parameter `when` is 0."""

    def loads(p: Params) -> list[Load]:
        if when is not None and not p.whole(when, default):
            return []
        return [vector(name, p.whole(count)) for name in names.split()]

    return loads


def optional(name: str, count: int, default: int = 0) -> Loads:
    """A vector of the length in a parameter; nothing if that is 0."""

    def loads(p: Params) -> list[Load]:
        length = p.whole(count, default)
        return [vector(name, length)] if length else []

    return loads


def one_number(name: str, when: int, above: int | None = None) -> Loads:
    """A vector of one number, if a parameter is set, or above a number."""

    def loads(p: Params) -> list[Load]:
        switch = p.whole(when)
        return [vector(name, 1)] if (switch if above is None else switch > above) else []

    return loads


def unless(number: int, *rows: Loads) -> Loads:
    """Nothing if a parameter is set, otherwise all rows."""
    return lambda p: [] if p.whole(number) else several(*rows)(p)


def several(*rows: Loads) -> Loads:
    """The weights of all rows."""
    return lambda p: [load for row in rows for load in row(p)]


WEIGHTED = several(weight(6), vectors("bias", 0, when=5))
CONVOLUTION = unless(19, WEIGHTED)
DECONVOLUTION = unless(28, WEIGHTED)
_QUANTISED = (vectors("weight_scale", 0, when=8), one_number("input_scale", 8))
CONVOLUTION_2D = unless(19, WEIGHTED, *_QUANTISED, one_number("output_scale", 8, above=100))
INNER_PRODUCT = several(weight(2), vectors("bias", 0, when=1), *_QUANTISED)
EMBED = several(weight(3), vectors("bias", 0, when=2), one_number("weight_scale", 18))


def _depthwise_scales(p: Params) -> list[Load]:
    form = p.whole(8) % 100
    if form not in (1, 2):
        return []
    return [vector("weight_scale", p.whole(7, 1) if form == 1 else 1), vector("input_scale", 1)]


CONVOLUTION_DEPTHWISE = unless(
    19, WEIGHTED, _depthwise_scales, one_number("output_scale", 8, above=100)
)


def scale(p: Params) -> Sequence[Load]:
    """Scale: its factors are an operand, or weights with an optional bias."""
    if p.whole(0) == -233:
        return []
    return several(vectors("scale", 0), vectors("bias", 0, when=1))(p)


def memory_data(p: Params) -> list[Load]:
    """MemoryData: its numbers; none if it has no sizes."""
    sizes = p.sizes()
    return [Load("data", sizes, p.whole(21, 1) == 0)] if sizes else []


def _blocks(term: int, k: int) -> tuple[int, int]:
    """Bytes and blocks of a row of weights that are quantised by blocks."""
    block = {0: 32, 1: 64}.get(term % 10, 128)
    return (k * (term // 100) + 7) // 8, -(-k // block)


def gemm(p: Params) -> list[Load]:
    """Gemm: constant factors, the addend, and scales of quantised factors."""
    m, n, k, term = p.whole(7), p.whole(8), p.whole(9), p.whole(18)
    by_blocks = term >= 400
    loads: list[Load] = []
    if p.whole(4):
        loads.append(Load("A", (k, m) if p.whole(2) else (m, k), marked=True))
    if p.whole(5):
        shape = (n, k) if p.whole(3) else (k, n)
        shape = (n, _blocks(term, k)[0]) if by_blocks else shape
        loads.append(Load("B", shape, marked=True))
    kind = p.whole(10)
    if p.whole(6) and kind != -1:
        shapes = {0: (1,), 1: (m,), 2: (m, 1), 3: (m, n), 4: (1, n)}
        if kind in shapes:
            loads.append(Load("C", shapes[kind], marked=True))
    if by_blocks:
        loads.append(Load("B_scale", (n, _blocks(term, k)[1])))
        loads += [vector("B_input_scale", k)] if term % 100 // 10 == 1 else []
    elif term:
        loads += [vector("A_scale", m)] if p.whole(4) else []
        loads += [vector("B_scale", 1)] if p.whole(5) else []
    return loads


def attention(p: Params) -> list[Load]:
    """MultiHeadAttention: four projections, and their scales if quantised."""
    embed, term = p.whole(0), p.whole(18)
    if embed < 1:
        return []
    q = p.whole(2) // embed
    widths = (("q", embed, q), ("k", embed, p.whole(3, embed)), ("v", embed, p.whole(4, embed)))
    every = (*widths, ("out", q, embed))
    by_blocks = term >= 400
    loads: list[Load] = []
    for name, rows, columns in every:
        wide = _blocks(term, columns)[0] if by_blocks else columns
        loads += [Load(f"{name}_weight", (rows, wide), marked=True), vector(f"{name}_bias", rows)]
    if by_blocks:
        loads += [Load(f"{name}_scale", (r, _blocks(term, c)[1])) for name, r, c in every]
        if term % 100 // 10 == 1:
            loads += [vector(f"{name}_input_scale", c) for name, _, c in every]
    elif term:
        loads += [vector(f"{name}_scale", embed) for name in "qkv"] + [vector("out_scale", 1)]
    return loads


def recurrent(gates: int, biases: int) -> Loads:
    """RNN, GRU, LSTM: weights of data and state, with gates and biases in their own numbers."""

    def loads(p: Params) -> list[Load]:
        count, directions = p.whole(0), 2 if p.whole(2) == 2 else 1
        hidden = p.whole(3, count) if gates == 4 else count
        if count < 1 or hidden < 1:
            return []
        size = p.whole(1) // directions // hidden // gates
        shapes = {
            "weight_xc": (directions, hidden * gates, size),
            "bias_c": (directions, biases, hidden),
            "weight_hc": (directions, hidden * gates, count),
        }
        rows = [Load(name, shape, marked=True) for name, shape in shapes.items()]
        if hidden != count:
            rows.append(Load("weight_hr", (directions, count, hidden), marked=True))
        if p.whole(8):
            rows += [Load(f"{name}_scale", (directions, hidden * gates)) for name in ("xc", "hc")]
        return rows

    return loads
