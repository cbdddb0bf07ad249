"""Calls of the public functions as data: memory, views into it, options.

A call can be made again and again on fresh memory, so that two backends can be given the same one,
and it can be printed as code that anyone can run.
"""

from __future__ import annotations

import functools
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.compute.reference import as_operand, compute, shape_of
from zerostride.engines.planning import plan
from zerostride.ops import OPS

Shape = tuple[int, ...]
Bytes = NDArray[np.uint8]

#: Elements of a bank of values; longer memory repeats it.
BANK = 8192
#: Memory up to this size is printed byte by byte.
PRINTED = 256
#: Python's own `bool` would read "True" from any byte but 0 and 1; other dtypes take any bytes.
STYLES = ("special", "plain", "small", "bits", "positive")


def bfloat16() -> np.dtype[Any] | None:
    """The dtype, if ml_dtypes is installed."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    array: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return array


@functools.cache
def dtype_of(name: str) -> np.dtype[Any]:
    """A dtype by name: NumPy's, with a byte order if need be, or "bfloat16"."""
    if name == "bfloat16":
        dtype = bfloat16()
        if dtype is None:
            raise TypeError("bfloat16 needs ml_dtypes")
        return dtype
    return np.dtype(name)


# Values


@functools.cache
def bank(name: str, style: str) -> Bytes:
    """The bytes of BANK elements of a dtype. The same ones in every process.

    Styles: "special" has the ends of the range, what is near them, zeros of both signs, infinities,
    NaN and subnormal numbers among others; "plain" ordinary numbers; "small" whole numbers about 0;
    "bits" anything; "positive" what parameters of activations are.
    """
    dtype = dtype_of(name)
    rng = np.random.default_rng(list(f"{name} {style}".encode()))
    if style == "bits" and dtype.kind != "b":
        return rng.integers(0, 256, BANK * dtype.itemsize, np.uint8)
    with np.errstate(all="ignore"):
        values = _values(rng, dtype.newbyteorder("="), style).astype(dtype)
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1)


def _values(rng: np.random.Generator, dtype: np.dtype[Any], style: str) -> NDArray[Any]:
    if dtype.kind == "b":
        return rng.integers(0, 2, BANK)
    if dtype.kind in "iu":
        return _integers(rng, dtype, style)
    if style == "small":
        return rng.integers(-4, 5, BANK)
    if style == "positive":
        return rng.uniform(0.01, 4, BANK)
    plain = rng.standard_normal(BANK) * rng.choice([1e-3, 0.1, 1, 1, 4, 60], BANK)
    return plain if style == "plain" else _special(rng, dtype, plain)


def _integers(rng: np.random.Generator, dtype: np.dtype[Any], style: str) -> NDArray[Any]:
    info = np.iinfo(dtype)
    if style == "positive":
        return rng.integers(1, 5, BANK)
    if style == "small":
        return rng.integers(-4 if info.min < 0 else 0, 10, BANK)
    if style == "plain":
        return rng.integers(max(info.min, -1000), min(info.max, 1000), BANK)
    ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.min // 2]
    widths = [-1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64]
    known = np.array([int(n) for n in (*ends, *widths) if info.min <= n <= info.max], dtype)
    anything = rng.integers(info.min, info.max, BANK, dtype, endpoint=True)
    return np.where(rng.random(BANK) < 0.7, rng.choice(known, BANK), anything)


def _special(rng: np.random.Generator, dtype: np.dtype[Any], plain: NDArray[Any]) -> NDArray[Any]:
    largest, smallest, least, eps = _ends(dtype)
    known = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 2.0, 3.0, -3.0]
    known += [sign * n for n in (largest, smallest, least, 3 * least) for sign in (1, -1)]
    known += [1 + eps, 1 - eps / 2, 88.7, -87.4, 103.9, 709.7, -745.1, 1e4, 3e9, -3e9, 1e19, 255.5]
    wide = plain * 10.0 ** rng.uniform(-40, 40, BANK)
    chosen = rng.choice(np.array(known, np.longdouble), BANK)
    dice = rng.random(BANK)
    return np.where(dice < 0.5, chosen, np.where(dice < 0.6, wide, plain))


def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any, Any, Any]:
    """The largest number, the smallest normal one, the smallest of all, and 1's last place."""
    if dtype.name == "bfloat16":
        return 2.0**128 - 2.0**120, 2.0**-126, 2.0**-133, 2.0**-7
    info = np.finfo(dtype)
    return info.max, info.smallest_normal, info.smallest_subnormal, info.eps


# Calls


@dataclass(frozen=True, slots=True)
class Memory:
    """A stretch of bytes: zeros up to `lead`, then elements of a bank from `start` on."""

    size: int
    dtype: str
    style: str
    start: int
    lead: int = 0

    def make(self) -> Bytes:
        """New memory with these contents."""
        array = np.empty(self.size, np.uint8)
        array[: self.lead] = 0
        source = bank(self.dtype, self.style)
        at, begin = self.lead, self.start * dtype_of(self.dtype).itemsize
        while at < self.size:
            piece = source[begin : begin + self.size - at]
            array[at : at + piece.size] = piece
            at, begin = at + piece.size, 0
        return array


@dataclass(frozen=True, slots=True)
class View:
    """An array within one of a call's memories."""

    memory: int
    dtype: str
    offset: int
    shape: Shape
    strides: Shape

    def of(self, memories: Sequence[Bytes]) -> NDArray[Any]:
        """The array."""
        data: Any = memories[self.memory]
        return np.ndarray(self.shape, dtype_of(self.dtype), data, self.offset, self.strides)


@dataclass(frozen=True, slots=True)
class Number:
    """An operand that is no array: a Python number, or a NumPy scalar."""

    value: Any


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call of one public function.

    Attributes:
        op: a name of the op table.
        memories: what the views lie in; views may share one.
        operands: views and numbers. Equal views are one array.
        out: where the result goes, or None for a new array.
        options: rule, axis, engine, broadcast and dtype, as far as given; dtype by name.
    """

    op: str
    memories: tuple[Memory, ...]
    operands: tuple[View | Number, ...]
    out: View | None
    options: Mapping[str, Any]

    def make(self) -> CallArrays:
        """The call's arrays in fresh memory."""
        memories = [memory.make() for memory in self.memories]
        views: dict[View, NDArray[Any]] = {}
        operands: list[Any] = []
        for operand in self.operands:
            if isinstance(operand, Number):
                operands.append(operand.value)
                continue
            if operand not in views:
                views[operand] = operand.of(memories)
            operands.append(views[operand])
        out = None
        if self.out is not None:
            out = views.get(self.out)
            out = self.out.of(memories) if out is None else out
        options = dict(self.options)
        if "dtype" in options:
            options["dtype"] = dtype_of(options["dtype"])
        return CallArrays(self.op, memories, operands, out, options)


@dataclass(frozen=True, slots=True)
class CallArrays:
    """A call with its arrays."""

    op: str
    memories: list[Bytes]
    operands: list[Any]
    out: NDArray[Any] | None
    options: dict[str, Any]

    def by(self, function: Any) -> Any:
        """The result of a public function."""
        options = self.options if self.out is None else {**self.options, "out": self.out}
        return function(*self.operands, **options)

    def by_reference(self) -> Any:
        """The result of the reference backend."""
        op, options = OPS[self.op], dict(self.options)
        dtype = options.pop("dtype", None)
        operands = [as_operand(operand, k) for k, operand in enumerate(self.operands)]
        operands += list(op.parameters.values())[len(operands) - op.tensors :]
        name = self.op if "engine" in options else None
        result = plan(*map(shape_of, operands), op=name, **options)
        return compute(op, result, operands, self.out, dtype)


# As code


def source(call: DrawnCall) -> str:
    """The call as code that runs by itself and prints the result."""
    lines = ["import numpy as np", "import zerostride as zs"]
    if any(view.dtype == "bfloat16" for view in _views(call)) or "bfloat16" in str(call.options):
        lines.append("import ml_dtypes")
    if any(memory.size > PRINTED for memory in call.memories):
        lines.append("from campaigns.native.cases import Memory")
    lines += [f"m{k} = {memory_source(memory)}" for k, memory in enumerate(call.memories)]
    names: dict[View, str] = {}
    arguments = []
    for letter, operand in zip("abcdefgh", call.operands, strict=False):
        if isinstance(operand, Number):
            arguments.append(number_source(operand.value))
            continue
        if operand not in names:
            names[operand] = letter
            lines.append(view_source(letter, operand))
        arguments.append(names[operand])
    for name, value in call.options.items():
        shown = dtype_source(value) if name == "dtype" else repr(value)
        arguments.append(f"{name}={shown}")
    if call.out is not None:
        if call.out not in names:
            names[call.out] = "out"
            lines.append(view_source("out", call.out))
        arguments.append(f"out={names[call.out]}")
    lines.append(f"print(repr(zs.{call.op}({', '.join(arguments)})))")
    return "\n".join(lines)


def _views(call: DrawnCall) -> list[View]:
    every = (*call.operands, *([call.out] if call.out else []))
    return [view for view in every if isinstance(view, View)]


def memory_source(memory: Memory) -> str:
    """Code that makes the memory."""
    if memory.size > PRINTED:
        return f"{memory}.make()"
    digits = textwrap.wrap(memory.make().tobytes().hex(" ", -4), 72)
    text = "\n    ".join(f'"{line} "' for line in digits) or '""'
    return f"np.frombuffer(bytearray.fromhex(\n    {text}), np.uint8)"


def view_source(name: str, view: View) -> str:
    """A line that names the array."""
    dtype = dtype_source(view.dtype)
    return (
        f"{name} = np.ndarray({view.shape}, {dtype}, m{view.memory}, {view.offset}, {view.strides})"
    )


def dtype_source(name: str) -> str:
    """A dtype as an argument."""
    return "ml_dtypes.bfloat16" if name == "bfloat16" else repr(name)


def number_source(value: Any) -> str:
    """A number as an argument."""
    if isinstance(value, np.longdouble | np.clongdouble):  # which no number of Python's holds
        return f'np.{value.dtype.type.__name__}("{value}")'
    if isinstance(value, np.generic):
        name = "ml_dtypes" if value.dtype.name == "bfloat16" else "np"
        return f"{name}.{value.dtype.name}({number_source(value.item())})".replace(
            "bool(", "bool_("
        )
    return (
        f'float("{value}")'
        if isinstance(value, float) and not math.isfinite(value)
        else repr(value)
    )


def is_injective(shape: Shape, strides: Shape, size: int) -> bool:
    """Whether no two elements of a layout share a byte; False where that is not easily seen."""
    if 0 in shape:
        return True
    reach = size
    axes = sorted((abs(stride), n) for n, stride in zip(shape, strides, strict=True) if n > 1)
    for stride, n in axes:
        if stride < reach:
            return False
        reach = stride * (n - 1) + reach
    return True


def extent_of(offset: int, shape: Shape, strides: Shape, size: int) -> tuple[int, int]:
    """The first byte that a view touches, and the one behind its last."""
    if 0 in shape:
        return offset, offset
    steps = [stride * (n - 1) for n, stride in zip(shape, strides, strict=True)]
    return offset + sum(min(step, 0) for step in steps), (
        offset + sum(max(step, 0) for step in steps) + size
    )


def contiguous(shape: Shape, size: int) -> Shape:
    """C-ordered strides."""
    products = itertools.accumulate(reversed(shape[1:]), lambda a, b: a * max(b, 1), initial=size)
    return tuple(products)[::-1] if shape else ()
