"""Seeded calls of the public functions: shapes, strides, dtypes, values, `out`, overlaps.

Cases come in blocks with their own seeds, so that case 123,456 does not need earlier cases. Most
calls are small, because most errors occur at any size. A few calls are large enough for threads.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from zerostride.compute.native import resolve
from zerostride.engines.planning import plan
from zerostride.errors import BroadcastError
from zerostride.ops import OPS

from ..seeded import BLOCK
from .cases import (
    BANK,
    STYLES,
    DrawnCall,
    Memory,
    Number,
    Shape,
    View,
    bfloat16,
    contiguous,
    dtype_of,
    extent_of,
    is_injective,
)
from .shapes import by_rule, result_shape, spoiled, thinned

#: How often an op is drawn against the others. One that is not named has weight 1.
_WEIGHTS = MappingProxyType(
    {
        **dict.fromkeys(("add", "multiply", "subtract"), 8),
        **dict.fromkeys(("divide", "maximum", "where", "cast", "less", "pow"), 4),
        **dict.fromkeys(("floor_divide", "remainder", "fmod", "minimum", "clip", "prelu"), 3),
        **dict.fromkeys(("equal", "bitwise_left_shift", "bitwise_right_shift", "exp"), 2),
    }
)
_OPS = tuple(OPS)
_OP_WEIGHTS = tuple(_WEIGHTS.get(name, 1) for name in _OPS)
#: Ops of the bits of integers: other dtypes are refused, which is soon known.
_OF_INTEGERS = frozenset(name for name in OPS if name.startswith("bitwise_"))

_COMMON = {
    **dict.fromkeys(("float32",), 26),
    **dict.fromkeys(("float64", "int32", "int64"), 10),
    **dict.fromkeys(("float16", "bfloat16"), 7),
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "uint32", "uint64"), 4),
}
#: Dtypes that only the reference computes.
_ODD = ("longdouble", "complex64", "complex128", ">f4", ">i2", ">f8")

_NUMBERS = (0, 1, -1, 2, 3, -5, 7, 100, 300, 0.0, -0.0, 0.5, -1.5, 2.0, True, False)
_PARAMETERS = (0.01, 0.2, 0.5, 1.0, 1, 1.5, 2, 3.0)
_RARE_NUMBERS = (2**31, 2**40, -(2**63), 2**62, 1e39, 1e-46, float("inf"), float("nan"), 1j)
_RULES = ("pdpd", "paddle", "onnx6", "ncnn", "mnn", "none")
_ENGINES = (
    "numpy",
    "torch",
    "openvino",
    "onnxruntime",
    "tensorflow",
    "jax",
    "ncnn",
    "mnn",
    "paddle",
)


def calls(first: int, count: int, seed: int) -> Iterator[tuple[int, DrawnCall]]:
    """Cases first..first+count-1 of a seed, each with its number.

    >>> [k for k, _ in calls(998, 4, seed=0)]
    [998, 999, 1000, 1001]
    >>> list(calls(3, 1, 0)) == list(calls(0, 4, 0))[3:]
    True
    """
    end = first + count
    for block in range(first // BLOCK, -(-end // BLOCK)):
        rng = random.Random(f"{seed}:{block}")
        for k in range(block * BLOCK, min(end, (block + 1) * BLOCK)):
            call = draw(rng)
            if k >= first:
                yield k, call


@functools.cache
def _dtypes(odd: bool) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Names of dtypes and their weights."""
    weights: dict[str, float] = dict(_COMMON)
    if bfloat16() is None:
        del weights["bfloat16"]
    if odd:
        weights |= dict.fromkeys(_ODD, 0.4)
    return tuple(weights), tuple(weights.values())


@functools.cache
def _integers() -> tuple[str, ...]:
    return tuple(name for name in _COMMON if dtype_of_kind(name) in "biu")


def dtype_of_kind(name: str) -> str:
    """A dtype's kind; bfloat16 is a float here."""
    return "f" if name == "bfloat16" else np.dtype(name).kind


def draw(rng: random.Random) -> DrawnCall:
    """One call."""
    op = OPS[rng.choices(_OPS, _OP_WEIGHTS)[0]]
    tensors = op.operands if op.parameters and rng.random() < 0.5 else op.tensors
    shapes, options = _shapes(rng, op.name, tensors)
    dtypes = _operand_dtypes(rng, op.name, tensors)
    if rng.random() < 0.06 or op.name == "cast":
        names, weights = _dtypes(op.name == "cast")
        options["dtype"] = rng.choices(names, weights)[0]
    kept = "plain" if op.name == "pow" and rng.random() < 0.5 else None
    desk = Desk(rng, kept)
    operands: list[View | Number] = []
    for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        if (not shape and rng.random() < 0.6) or rng.random() < 0.05:
            shapes[k] = ()
            parameter = k >= op.tensors
            operands.append(Number(rng.choice(_PARAMETERS)) if parameter else number(rng, dtype))
            continue
        if k < op.tensors:
            operands.append(desk.operand(shape, dtype, operands))
        else:
            operands.append(desk.parameter(shape, "float32" if dtype == "bool" else dtype))
    out = None
    if rng.random() < 0.3:
        out = _out(rng, desk, op.name, shapes, dtypes, operands, options)
    return DrawnCall(op.name, tuple(desk.memories), tuple(desk.moved(operands)), out, options)


# Dtypes and numbers


def _operand_dtypes(rng: random.Random, op: str, count: int) -> list[str]:
    names, weights = _dtypes(True)
    if op in _OF_INTEGERS and rng.random() < 0.95:
        names, weights = _integers(), (1.0,) * len(_integers())
    first = rng.choices(names, weights)[0]
    if rng.random() < 0.75:
        dtypes = [first] * count
    else:
        dtypes = [first, *rng.choices(names, weights, k=count - 1)]
        rng.shuffle(dtypes)
    if op == "where" and rng.random() < 0.85:
        dtypes[0] = "bool"
    return dtypes


def number(rng: random.Random, dtype: str) -> Number:
    """A Python number, or a NumPy scalar of the dtype."""
    value: Any = rng.choice(_RARE_NUMBERS if rng.random() < 0.1 else _NUMBERS)
    if rng.random() < 0.35 and dtype_of(dtype).isnative:
        with np.errstate(all="ignore"):
            source = np.array([0, 1, 2, 3, 100] if rng.random() < 0.8 else [1.5, np.inf])
            value = rng.choice(list(source.astype(dtype_of(dtype))))
    return Number(value)


def _shapes(rng: random.Random, op: str, count: int) -> tuple[list[Shape], dict[str, Any]]:
    """The operands' shapes, and the rule that combines them."""
    shape = result_shape(rng)
    dice = rng.random()
    if count == 2 and OPS[op].tensors == 2 and dice < 0.1:
        return by_rule(rng, shape, rng.choice(_RULES))
    shapes = []
    for k in range(count):
        own = shape[int(rng.random() * (len(shape) + 1)) :] if rng.random() < 0.3 else shape
        if k and OPS[op].parameters and rng.random() < 0.6:
            own = ()
        shapes.append(thinned(rng, own) if rng.random() < 0.6 else own)
    if dice > 0.98:
        k = int(rng.random() * count)
        shapes[k] = spoiled(rng, shapes[k])
    options: dict[str, Any] = {}
    if 0.1 < dice < 0.13 and OPS[op].tensors >= 2 and op not in ("clip", "prelu"):
        options["engine"] = rng.choice(_ENGINES)
    elif 0.13 < dice < 0.15 and OPS[op].tensors >= 2:
        options["rule"] = "numpy"
    return shapes, options


# Layouts


@dataclass(frozen=True, slots=True)
class _Layout:
    offset: int
    strides: Shape
    end: int  # the first byte behind


class Desk:
    """Collects the memories of a call."""

    def __init__(self, rng: random.Random, style: str | None) -> None:
        self.rng = rng
        self.style = style
        self.memories: list[Memory] = []
        self.shift: dict[int, int] = {}  # memory to the bytes that its operands move up by

    def operand(self, shape: Shape, dtype: str, others: Sequence[View | Number]) -> View:
        """An operand of any layout: in memory of its own, or in another's."""
        rng = self.rng
        layout = _layout(rng, shape, dtype_of(dtype).itemsize, own=False)
        views = [other for other in others if isinstance(other, View) and other.dtype == dtype]
        if views and rng.random() < 0.08:
            other = rng.choice(views)
            if other.shape == shape and rng.random() < 0.5:
                return other
            self._enlarge(other.memory, layout.end)
            return View(other.memory, dtype, layout.offset, shape, layout.strides)
        return self._new(shape, dtype, layout)

    def parameter(self, shape: Shape, dtype: str) -> View:
        """An activation's parameter: positive, and every element of its dtype."""
        size = dtype_of(dtype).itemsize
        start = int(self.rng.random() * BANK)
        self.memories.append(Memory(size * math.prod(shape), dtype, "positive", start))
        return View(len(self.memories) - 1, dtype, 0, shape, contiguous(shape, size))

    def _new(self, shape: Shape, dtype: str, layout: _Layout) -> View:
        rng = self.rng
        size = dtype_of(dtype).itemsize
        style = self.style or STYLES[(0, 0, 1, 1, 1, 2, 2, 3)[int(rng.random() * 8)]]
        # Truth values are 0 and 1 wherever they lie; of others a view may begin within an element.
        lead = layout.offset % size
        self.memories.append(Memory(layout.end, dtype, style, int(rng.random() * BANK), lead))
        return View(len(self.memories) - 1, dtype, layout.offset, shape, layout.strides)

    def _enlarge(self, memory: int, size: int) -> None:
        held = self.memories[memory]
        if held.size < size:
            self.memories[memory] = replace(held, size=size)

    def fresh(self, shape: Shape, dtype: str) -> View:
        """An array to write to, in memory of its own."""
        return self._new(shape, dtype, _layout(self.rng, shape, dtype_of(dtype).itemsize, own=True))

    def over(self, shape: Shape, dtype: str, view: View) -> View | None:
        """An array to write to that overlaps an operand; None where none can be made of it."""
        rng = self.rng
        size = dtype_of(dtype).itemsize
        if "bool" in (dtype, *(m.dtype for m in (self.memories[view.memory],))) and (
            dtype != view.dtype
        ):
            return None  # bytes that are neither 0 nor 1 are no truth values
        same = shape == view.shape and size == dtype_of(view.dtype).itemsize
        turns = 0 not in shape and same and is_injective(shape, view.strides, size)
        if turns and rng.random() < 0.7:
            return _turned(rng, replace(view, dtype=dtype))
        layout = _layout(rng, shape, size, own=True)
        if rng.random() < 0.5:
            self.shift[view.memory] = int(rng.random() * 9) * dtype_of(view.dtype).itemsize
        if rng.random() < 0.5:
            step = size if dtype == "bool" or rng.random() < 0.9 else 1
            by = int(rng.random() * 40) * step
            layout = replace(layout, offset=layout.offset + by, end=layout.end + by)
        grown = self.memories[view.memory].size + self.shift.get(view.memory, 0)
        self._enlarge(view.memory, max(layout.end, grown))
        return View(view.memory, dtype, layout.offset, shape, layout.strides)

    def moved(self, operands: Sequence[View | Number]) -> list[View | Number]:
        """The operands where they are in the end."""
        if not any(self.shift.values()):
            return list(operands)
        return [
            replace(view, offset=view.offset + self.shift.get(view.memory, 0))
            if isinstance(view, View)
            else view
            for view in operands
        ]


def _turned(rng: random.Random, view: View) -> View:
    """An operand itself, or read backwards, or transposed."""
    dice = rng.random()
    if dice < 0.4:
        return view
    offset, strides = view.offset, list(view.strides)
    if dice < 0.7:
        for axis, n in enumerate(view.shape):
            if n > 1 and rng.random() < 0.6:
                offset += strides[axis] * (n - 1)
                strides[axis] = -strides[axis]
    else:
        for n in set(view.shape):
            axes = [axis for axis, m in enumerate(view.shape) if m == n]
            for axis, source in zip(axes, rng.sample(axes, len(axes)), strict=True):
                strides[axis] = view.strides[source]
    return replace(view, offset=offset, strides=tuple(strides))


def _layout(rng: random.Random, shape: Shape, size: int, own: bool) -> _Layout:
    """Strides of any kind. With `own` no two elements share bytes."""
    offset = size + int(rng.random() * size) if size > 1 and rng.random() < 0.05 else 0
    dice = rng.random()
    if dice < 0.45 or not shape or 0 in shape:
        strides = contiguous(shape, size)
    elif dice < 0.53:
        strides = contiguous(shape[::-1], size)[::-1]
    else:
        strides = _strides(rng, shape, size, dice, own)
    first, end = extent_of(offset, shape, strides, size)
    return _Layout(offset - min(first, 0), strides, end - min(first, 0))


def _strides(rng: random.Random, shape: Shape, size: int, dice: float, own: bool) -> Shape:
    rank = len(shape)
    order = list(range(rank - 1, -1, -1))  # innermost first
    permuted = rng.random() < 0.5
    if permuted:
        rng.shuffle(order)
    sliced, negative, zero = dice < 0.75, 0.7 < dice < 0.88, dice > 0.88 and not own
    if zero and rng.random() < 0.3:  # windows that overlap
        return tuple(size * int(rng.random() * 4) for _ in shape)
    steps = 2  # axes of a step: memory grows with each
    step_size = size
    if rng.random() < 0.06:
        step_size = size + 1 + int(rng.random() * 4)  # as fields of packed records lie
    strides = [0] * rank
    for axis in order:
        n = shape[axis]
        if zero and rng.random() < 0.4:
            continue
        step = 1
        if sliced and steps and rng.random() < 0.5:
            step, steps = 2 + int(rng.random() * 3), steps - 1
        strides[axis] = step_size * step
        step_size *= step * n
        if sliced and rng.random() < 0.2:
            step_size += size * (1 + int(rng.random() * 3))
        if negative and rng.random() < 0.5:
            strides[axis] = -strides[axis]
    return tuple(strides)


# out


def _out(
    rng: random.Random,
    desk: Desk,
    op: str,
    shapes: Sequence[Shape],
    dtypes: Sequence[str],
    operands: Sequence[View | Number],
    options: dict[str, Any],
) -> View | None:
    shape = _planned(op, tuple(shapes), tuple(options.items()))
    if shape is None:
        return None
    dice = rng.random()
    if dice < 0.04:  # larger than the result
        shape = (rng.choice((1, 2, 3)), *shape) if rng.random() < 0.5 else shape
        if 1 in shape and rng.random() < 0.7:
            shape = (*shape[: shape.index(1)], 3, *shape[shape.index(1) + 1 :])
    elif dice < 0.05:
        shape = spoiled(rng, shape)
    if len(shape) > 64:
        return None
    dtype = _result_dtype(op, tuple(dtypes), options.get("dtype"))
    if dtype is None or rng.random() < 0.15:
        dtype = rng.choices(*_dtypes(True))[0]
    views = [view for view in operands if isinstance(view, View)]
    if views and rng.random() < 0.5:
        over = desk.over(shape, dtype, rng.choice(views))
        if over is not None:
            return over
    return desk.fresh(shape, dtype)


def _planned(op: str, shapes: tuple[Shape, ...], options: tuple[Any, ...]) -> Shape | None:
    """The result's shape, or None."""
    given = dict(options)
    given.pop("dtype", None)
    try:
        return tuple(plan(*shapes, op=op if "engine" in given else None, **given).shape)
    except BroadcastError:
        return None


@functools.lru_cache(50_000)
def _result_dtype(op: str, dtypes: tuple[str, ...], dtype: str | None) -> str | None:
    if op == "cast":
        return dtype
    row = OPS[op]
    kinds = (*dtypes, *["float"] * (row.operands - len(dtypes)))
    if any(name in _ODD for name in kinds) or dtype in _ODD:
        return dtypes[-1]
    try:
        row_dtypes = resolve(row, kinds, dtype)
    except TypeError:
        row_dtypes = None
    return None if row_dtypes is None else row_dtypes[-1]
