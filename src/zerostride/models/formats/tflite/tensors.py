"""The tensors of a .tflite file. The numbers of a constant are read on demand.

A tensor whose buffer has bytes is a constant. Large models keep the bytes behind the flatbuffer, at
an offset in the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import ModelError
from ...ir.graph import Array, FileShape, Quantisation, Value
from ..flatbuffer import Malformed, StoredConstant, Table, Vector
from ..onnx.tensors import MAX_CONTENT, MAX_REALS
from .schema import DTYPES

#: Most axes of a tensor of the file that are read; LiteRT's own kernels take 8.
MAX_AXES = 64
#: Most elements of a dense constant made of a sparse one.
MAX_DENSE = 2**28
#: Bits of element types that share a byte.
_PACKED = {"int4": 4, "uint4": 4, "int2": 2}
#: SparseIndexVector, a union: the type of the numbers.
_INDICES = {1: "int32", 2: "uint16", 3: "uint8"}


@dataclass(frozen=True, slots=True)
class Axis:
    """One traversed axis of a sparse tensor: dense, or compressed rows.

    Attributes:
        size: of a dense axis.
        segments, indices: of a sparse one: where each row begins, and the index of each entry.
    """

    size: int
    segments: Vector | None = None
    indices: Vector | None = None


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The layout of a sparse tensor: the order of the traversed axes, blocks last."""

    order: tuple[int, ...]
    blocks: tuple[int, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Source(StoredConstant):
    """The location of a constant's numbers.

    Attributes:
        numbers: its bytes.
        sparsity: the layout of a sparse constant.
    """

    numbers: Vector
    sparsity: Sparsity | None = None

    def __call__(self) -> Array:
        """The numbers, dense.

        Raises:
            ModelError: their count does not match the shape, or NumPy has no such type.
        """
        flat = self._flat()
        if self.sparsity is not None:
            try:
                return dense(flat, self.shape, self.sparsity)
            except Malformed as error:
                raise self.error(str(error)) from None
        if flat.size != math.prod(self.shape):
            raise self.error(f"the file has {flat.size} numbers")
        return flat.reshape(self.shape)

    def _flat(self) -> Array:
        raw = self.numbers.read()
        if self.dtype in _PACKED:
            count = math.prod(self.shape) if self.sparsity is None else 8 * raw.size
            return _unpacked(raw, _PACKED[self.dtype], self.dtype.startswith("i"))[:count]
        if self.dtype == "bfloat16":
            if raw.size % 2:
                raise self.error(f"{raw.size} bytes are no whole numbers")
            return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        try:
            kind = np.dtype(self.dtype)
        except TypeError:
            raise self.error(f"numbers of {self.dtype} are not read") from None
        if raw.size % kind.itemsize:
            raise self.error(f"{raw.size} bytes are no whole numbers")
        return raw.view(kind.newbyteorder("<")).astype(kind)


def _unpacked(raw: Array, bits: int, signed: bool) -> Array:
    """Numbers of a few bits, the lowest bits first, as bytes."""
    parts = [(raw >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    flat = np.stack(parts, axis=1).reshape(-1)
    if not signed:
        return flat
    return (flat.astype(np.int8) << (8 - bits)) >> (8 - bits)


def dense(flat: Array, shape: tuple[int, ...], sparsity: Sparsity) -> Array:
    """The dense array of a sparse one, as in LiteRT's FormatConverter.

    Each entry is reached through the traversed axes: a dense axis has all its indices, a sparse one
    those of its row. The axes of blocks follow those of the tensor.
    """
    rank = len(shape)
    sizes = [axis.size for axis in sparsity.axes]
    places: list[Array] = [np.zeros(1, np.int64)]
    for axis in sparsity.axes:
        count = len(places[0])
        if axis.segments is None:
            repeats, new = np.full(count, axis.size), np.tile(np.arange(axis.size), count)
        else:
            assert axis.indices is not None
            bounds, indices = axis.segments.read().astype(np.int64), axis.indices.read()
            if len(bounds) != count + 1 or bounds[0] or (np.diff(bounds) < 0).any():
                raise Malformed("the rows of its sparse layout do not follow each other")
            repeats, new = np.diff(bounds), indices.astype(np.int64)
        if int(repeats.sum()) > MAX_DENSE or len(new) != int(repeats.sum()):
            raise Malformed("the indices of its sparse layout are not as many as its rows say")
        places = [*(np.repeat(place, repeats) for place in places), new]
    index = [np.zeros(len(places[0]), np.int64) for _ in shape]
    block_sizes = {k: sizes[sparsity.order.index(rank + k)] for k in range(len(sparsity.blocks))}
    for axis_number, place in zip(sparsity.order, places[1:], strict=True):
        if axis_number < rank:
            block = [k for k, b in enumerate(sparsity.blocks) if b == axis_number]
            index[axis_number] += place * (block_sizes[block[0]] if block else 1)
        else:
            index[sparsity.blocks[axis_number - rank]] += place
    inside = all(
        not len(place) or (place.min() >= 0 and place.max() < size)
        for place, size in zip(index, shape, strict=True)
    )
    if len(flat) < len(places[0]) or not inside:
        raise Malformed("its sparse layout does not fit its shape")
    result = np.zeros(shape, flat.dtype)
    result[tuple(index)] = flat[: len(places[0])]
    return result


def sparsity_of(table: Table, shape: tuple[int, ...], name: str) -> Sparsity:
    """The layout of a sparse tensor."""
    order, blocks = table.numbers(0, "int32"), table.numbers(1, "int32")
    axes = []
    for entry in table.tables(2):
        if entry.number(0, "int8") == 0:
            axes.append(Axis(entry.number(1, "int32")))
            continue
        lists = []
        for kind, field in ((2, 3), (4, 5)):
            inner, numbers = entry.table(field), _INDICES.get(entry.number(kind, "uint8"))
            vector = None if inner is None or numbers is None else inner.vector(0, numbers)
            if vector is None:
                raise Malformed(f"the sparse tensor {name!r} has an axis without indices")
            lists.append(vector)
        axes.append(Axis(0, *lists))
    rank, count = len(shape), len(axes)
    whole = math.prod(max(axis.size, 1) for axis in axes)
    if (
        sorted(order) != list(range(count))
        or count != rank + len(blocks)
        or any(not 0 <= block < rank for block in blocks)
        or any(axis.size < 0 for axis in axes)
        or max(math.prod(shape), whole) > MAX_DENSE
    ):
        raise Malformed(f"the sparse tensor {name!r} has an invalid layout")
    return Sparsity(order, blocks, tuple(axes))


def quantisation_of(table: Table | None, dtype: str | None, name: str) -> Quantisation | None:
    """A tensor's quantisation; None without scales, and for floats."""
    if table is None or dtype is None or dtype.startswith(("float", "bfloat", "bool", "complex")):
        return None
    scales, zeros = table.numbers(2, "float32"), table.numbers(3, "int64")
    if not scales or not all(map(math.isfinite, scales)):
        return None
    if len(zeros) not in (0, len(scales)):
        zeros = zeros[:1] * len(scales)
    axis = table.number(6, "int32")
    if len(scales) > 1 and not 0 <= axis < MAX_AXES:
        raise Malformed(f"the tensor {name!r} has scales along axis {axis}")
    return Quantisation(tuple(scales), tuple(zeros) or (0,) * len(scales), axis)


def shape_of(table: Table, name: str) -> tuple[int, ...]:
    """The shape of a tensor: the sizes that the interpreter begins with."""
    vector = table.vector(0, "int32")
    if vector is not None and vector.count > MAX_AXES:
        raise Malformed(f"the tensor {name!r} has {vector.count} axes")
    shape = table.numbers(0, "int32")
    if any(size < 0 for size in shape):
        raise Malformed(f"the tensor {name!r} has the sizes {shape}")
    return shape


def declared_of(table: Table, shape: tuple[int, ...]) -> FileShape:
    """The sizes that the file gives a tensor; None for those that its signature leaves open.

    A tensor without sizes is a number if the file says that it has a rank, and unknown otherwise.
    """
    signature = table.numbers(7, "int32")
    if len(signature) == len(shape) and shape:
        sizes = zip(signature, shape, strict=True)
        return tuple(None if open_size < 0 else size for open_size, size in sizes)
    return shape if shape or table.number(8, "uint8") else None


def constant(
    file: Path,
    name: str,
    shape: tuple[int, ...],
    dtype: str | None,
    numbers: Vector,
    more: Sequence[Any],
) -> Value:
    """A constant; a small one with its numbers. `more`: its quantisation and its sparse layout."""
    quantised, sparsity = more
    if dtype is None:
        return Value(name, shape, constant=True, declared=shape)
    source = Source(file, name, shape, dtype, numbers, sparsity)
    content: tuple[int, ...] | None = None
    reals: tuple[float, ...] | None = None
    count = math.prod(shape)
    if count <= MAX_CONTENT and sparsity is None and numbers.count <= 16 * MAX_CONTENT:
        try:
            flat = source().ravel()
        except ModelError:
            flat = np.empty(0, np.complex64)  # the error is raised when the numbers are read
        if flat.dtype.kind in "iub" and quantised is None:
            content = tuple(int(number) for number in flat)
        elif flat.dtype.kind == "f" and count <= MAX_REALS:
            reals = tuple(float(number) for number in flat)
    return Value(
        name, shape, True, content, None, shape, reals, dtype, source=source, quantised=quantised
    )


def dequantised(value: Value, weights: Value) -> Value:
    """The result of a DEQUANTIZE of a constant, with its numbers."""
    if weights.source is None or value.dtype not in ("float32", "float64"):
        return value
    source = partial(_as_reals, weights, value.dtype)
    return replace(value, shape=weights.shape, source=source)


def _as_reals(weights: Value, dtype: str) -> Array:
    array, parts = weights.data(), weights.quantised
    if parts is None:
        return array.astype(dtype)
    sizes = [1] * array.ndim
    if len(parts.scales) > 1:
        if parts.axis >= array.ndim or array.shape[parts.axis] != len(parts.scales):
            raise ModelError(f"{weights.name!r} has not as many scales as indices")
        sizes[parts.axis] = -1
    scales, zeros = np.array(parts.scales, dtype), np.array(parts.zero_points)
    return np.asarray((array - zeros.reshape(sizes)).astype(dtype) * scales.reshape(sizes))


def dtype_of(table: Table) -> str | None:
    """A tensor's element type."""
    return DTYPES.get(table.number(1, "int8"))
