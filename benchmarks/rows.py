"""The rows: one per kind of broadcast, with its operands' shapes and layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
Array = npt.NDArray[Any]

#: How an operand is seen; functions of NumPy's arrays that hold of other libraries' arrays as well.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "": lambda array: array,
    "ᵀ": lambda array: array.T,
    "[:, ::2]": lambda array: array[:, ::2],
    "[:, ::-1]": lambda array: array[:, ::-1],
}
#: Where an array begins: what every library takes as it is (JAX copies what lies otherwise).
ALIGNMENT = 64
#: Integers are below 2 to this, by their bytes: no sum overflows, and whoever computes in fewer
#: bits, or in floats, is found out.
_BITS = {1: 6, 4: 30, 8: 62}
#: How an op stands in a row's title.
SIGNS = {"add": "+", "multiply": "*", "divide": "/", "less": "<", "pow": "**"}


@dataclass(frozen=True)
class Operand:
    """The shape in memory, the view of it that is computed with, and its own dtype, if any."""

    shape: Shape
    view: str = ""
    dtype: str = ""
    #: Between which its floats are drawn.
    low: float = 0.5
    high: float = 1.5
    #: Its values, in place of drawn ones.
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    name: str
    operands: tuple[Operand, ...]
    op: str = "add"
    dtype: str = "float32"
    #: The result goes into the first operand.
    in_place: bool = False
    #: The result is allocated by the call.
    fresh: bool = False
    #: What a single operand is broadcast to.
    target: Shape | None = None
    #: The slope of leaky_relu.
    alpha: float | None = None
    #: Errors that are no mistake, in units of the value and of the result's root mean square; None:
    #: those of a single op.
    tolerance: float | None = None

    @property
    def title(self) -> str:
        """The row as a formula."""
        shapes = [_text(operand.shape) + operand.view for operand in self.operands]
        if self.op in SIGNS:
            sign = SIGNS[self.op] + ("=" if self.in_place else "")
            text = f" {sign} ".join(shapes)
        else:
            slope = [] if self.alpha is None else [f"alpha={self.alpha}"]
            text = f"{self.op}({', '.join([*shapes, *slope])})"
        if self.target is not None:
            text += f" → {_text(self.target)}"
        return text + (", new result" if self.fresh else "")

    @property
    def keywords(self) -> dict[str, Any]:
        """What the op takes beside its operands."""
        return {} if self.alpha is None else {"alpha": self.alpha}


def _text(shape: Shape) -> str:
    return str(shape).replace(" ", "")


def _row(name: str, *shapes: Shape | Operand, **more: Any) -> Row:
    operands = tuple(s if isinstance(s, Operand) else Operand(s) for s in shapes)
    return Row(name, operands, **more)


AnyRow = TypeVar("AnyRow", bound=Row)

_BIAS = ((4096, 1024), (1024,))
_ROWS: tuple[Row, ...] = (
    _row("same_4m", (2048, 2048), (2048, 2048)),
    _row("same_256k", (512, 512), (512, 512)),
    _row("same_32k", (128, 256), (128, 256)),
    _row("scalar", (2048, 2048), ()),
    _row("row_bias", *_BIAS),
    _row("column", (4096, 1024), (4096, 1)),
    _row("channel_nchw", (8, 64, 56, 56), (64, 1, 1)),
    _row("channel_last", (8, 56, 56, 64), (64,)),
    _row("by_3", (1048576, 3), (3,)),
    _row("by_3_in_place", (100000, 3), (3,), in_place=True),
    _row("by_5", (400000, 5), (5,)),
    _row("by_7", (300000, 7), (7,)),
    _row("outer", (2048, 1), (1, 2048)),
    _row("both_stretch", (64, 1, 64, 16), (1, 64, 1, 16)),
    _row("alternating", (8, 1, 8, 1, 16, 1), (1, 8, 1, 16, 1, 16)),
    _row("mask", (8, 12, 128, 128), (8, 1, 1, 128)),
    _row("transposed", Operand((2048, 2048), "ᵀ"), (2048, 2048)),
    _row("both_transposed", Operand((2048, 2048), "ᵀ"), Operand((2048, 2048), "ᵀ")),
    _row("strided", Operand((2048, 4096), "[:, ::2]"), (2048, 2048)),
    _row("negative", Operand((2048, 2048), "[:, ::-1]"), (2048, 2048)),
    _row("materialised", (2048, 1), op="broadcast", target=(2048, 2048)),
    _row("comparison", (2048, 2048), (2048,), op="less"),
    _row(
        "where",
        Operand((8, 1, 128, 128), dtype="bool"),
        (8, 12, 128, 128),
        (12, 1, 1),
        op="where",
    ),
    *(
        _row(f"row_bias_{dtype}", *_BIAS, dtype=dtype)
        for dtype in ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float64")
    ),
    _row("pow", (1024, 1024), (1024,), op="pow"),
    _row("exp", (1024, 1024), op="exp"),
    _row("tanh", (1024, 1024), op="tanh"),
    _row("small", (32, 64), (64,)),
    _row("tiny", (3, 3), (1,)),
    _row("tiny_new", (3, 3), (1,), fresh=True),
    _row("number", (), ()),
    _row("number_new", (), (), fresh=True),
)


def _signed(*shape: int) -> Operand:
    return Operand(shape, low=-2.0, high=2.0)


#: The ten most frequent ops of the models that `python -m campaigns chains` counts, in the order of
#: that count. An op is counted with the forms of its operands; the shapes are the most frequent
#: ones, for a batch of 1.
_MODEL_ROWS: tuple[Row, ...] = (
    _row("model_add", (64, 64, 64), (64, 64, 64)),
    _row("model_leaky_relu", _signed(32, 64, 64), op="leaky_relu", alpha=0.2),
    _row("model_multiply_number", (64, 64, 64), (), op="multiply"),
    _row("model_add_number", (1, 240, 12, 80), (1,)),
    _row("model_multiply", (1, 96, 26, 26), (1, 96, 26, 26), op="multiply"),
    _row(
        "model_clip",
        Operand((1, 7, 7, 1152), low=-3.0, high=9.0),
        Operand((), low=0.0, high=0.0),
        Operand((), low=6.0, high=6.0),
        op="clip",
    ),
    _row("model_sigmoid", _signed(1, 96, 26, 26), op="sigmoid"),
    _row("model_prelu", _signed(1, 2, 2, 128), (1, 1, 128), op="prelu"),
    _row("model_relu", _signed(1, 12, 128, 62), op="relu"),
    _row("model_divide_number", (1, 240, 12, 80), (1,), op="divide"),
)


def beyond_cache(cache: int) -> tuple[Row, ...]:
    """Rows whose working sets are some two and a half times the last cache's bytes."""
    columns = 4096
    rows = max(1, 5 * cache // (2 * 3 * 4 * columns))
    return (
        _row("beyond_same", (rows, columns), (rows, columns)),
        _row("beyond_row_bias", (rows * 3 // 2, columns), (columns,)),
    )


def choose(patterns: str, cache: int) -> list[Row]:
    """The rows whose names match one of the patterns, separated by commas; all of them for "".

    Raises:
        ValueError: a pattern matches no row.
    """
    return matching(patterns, [*_ROWS, *_MODEL_ROWS, *beyond_cache(cache)])


def matching(patterns: str, rows: Sequence[AnyRow]) -> list[AnyRow]:
    """Those of the rows whose names match one of the patterns, separated by commas; all for "".

    Raises:
        ValueError: a pattern matches no row.
    """
    if not patterns:
        return list(rows)
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    for pattern in wanted:
        if not any(fnmatchcase(row.name, pattern) for row in rows):
            names = ", ".join(row.name for row in rows)
            raise ValueError(f"no row is called {pattern!r}; there are {names}")
    return [row for row in rows if any(fnmatchcase(row.name, pattern) for pattern in wanted)]


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a name; bfloat16 is ml_dtypes'."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(cast(type[Any], ml_dtypes.bfloat16))
    return np.dtype(name)


def aligned(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """An array that begins at a multiple of ALIGNMENT, its pages touched."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    raw.fill(0)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class Task:
    """A row with its arrays: what every peer is given."""

    row: Row
    threads: int
    #: The operands in memory, in C order, and the views of them that are computed with.
    bases: tuple[Array, ...]
    inputs: tuple[Array, ...]
    #: What is right, computed by NumPy.
    expected: Array
    #: Where the result goes; None where the call allocates it.
    out: Array | None
    #: What the first operand held, where calls in place write over it.
    before: Array | None

    def put_back(self) -> None:
        """Undoes what calls in place did."""
        if self.before is not None:
            self.bases[0][...] = self.before

    @property
    def shape(self) -> Shape:
        """The result's shape."""
        return self.expected.shape

    @property
    def input_bytes(self) -> int:
        """Bytes that must be read: all that the operands lie in, since memory comes in lines."""
        return sum(base.nbytes for base in self.bases)

    @property
    def output_bytes(self) -> int:
        """Bytes that must be written."""
        return self.expected.nbytes


def _filled(operand: Operand, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Random values of which no op of the table overflows."""
    base = aligned(operand.shape, dtype)
    if operand.values:
        base[...] = operand.values
    elif dtype.kind == "b":
        base[...] = rng.random(operand.shape) < 0.5
    elif dtype.kind in "iu":
        base[...] = rng.integers(0, 1 << _BITS[dtype.itemsize], operand.shape)
    else:
        width = np.float32(operand.high - operand.low)
        base[...] = rng.random(operand.shape, np.float32) * width + np.float32(operand.low)
    return base


def make_operands(row: Row) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """A row's operands in memory, filled, and the views of them that are computed with."""
    rng = np.random.default_rng(20)
    bases = tuple(_filled(o, dtype_of(o.dtype or row.dtype), rng) for o in row.operands)
    return bases, tuple(VIEWS[o.view](base) for o, base in zip(row.operands, bases, strict=True))


def make_task(row: Row, threads: int) -> Task:
    """Allocates and fills a row's arrays, and has NumPy compute what is right."""
    from .peers.numpy_ import FUNCTIONS

    bases, inputs = make_operands(row)
    if row.op == "broadcast":
        assert row.target is not None
        expected = np.broadcast_to(inputs[0], row.target).copy()
    else:
        expected = np.asarray(FUNCTIONS[row.op](*inputs, **row.keywords))
    before = bases[0].copy() if row.in_place else None
    return Task(row, threads, bases, inputs, expected, _output(row, inputs, expected), before)


def _output(row: Row, inputs: tuple[Array, ...], expected: Array) -> Array | None:
    """An output that lies as NumPy's result does: in C order or transposed."""
    if row.fresh:
        return None
    if row.in_place:
        return inputs[0]
    if expected.flags.c_contiguous:
        return aligned(expected.shape, expected.dtype)
    assert expected.flags.f_contiguous
    return aligned(expected.shape[::-1], expected.dtype).T
