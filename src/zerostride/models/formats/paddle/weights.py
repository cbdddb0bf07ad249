"""The constants of a Paddle model. Numbers of the file of weights are read on demand.

A .pdiparams file has one record for each tensor, in the order of their names: version (4 bytes, 0),
levels of detail (8 bytes: their number; each 8 bytes of length and its bytes), version (4 bytes,
0), length of a TensorDesc (4 bytes), the TensorDesc, and the numbers, little-endian.
Source: PaddlePaddle/Paddle 3.3, paddle/fluid/framework/dense_tensor_serialize.cc, and runs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from ....errors import ModelError, printable
from ....sizes import MAX_RANK
from ...ir.files import section
from ...ir.graph import Array, Value
from ...onnx_ops.sizes.facts import MAX_CONTENT
from ..onnx.tensors import MAX_REALS
from ..wire import Malformed, Message
from .schema import DTYPES

#: Longest TensorDesc: 64 axes of 11 bytes, and an element type.
_MOST_DESC = 1 << 10
#: Most levels of detail.
_MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class Record:
    """A tensor in the file of weights.

    Attributes:
        start: the position of its first number.
        shape, dtype: its shape and element type.
    """

    start: int
    shape: tuple[int, ...]
    dtype: str


class Weights:
    """The weights beside a model file.

    Args:
        model: the model file.
        names: the model's weights.
        notes: gets the reason why the weights cannot be read.
    """

    def __init__(self, model: Path, names: Sequence[str], notes: list[str]) -> None:
        self.file = model.with_suffix(".pdiparams")
        self.missing = None if self.file.is_file() or not names else self.file.name
        self.why = ""
        self.records: Mapping[str, Record] = {}
        if self.missing is None and names:
            try:
                self.records = _records(self.file, sorted(names))
            except (Malformed, ModelError) as error:
                self.why = printable(str(error))
                notes.append(f"the weights in {self.file.name} cannot be read: {self.why}")
        elif self.missing is not None:
            notes.append(f"the weights are missing: {self.missing!r}")

    def value(self, name: str, shape: tuple[int, ...] | None, dtype: str | None) -> Value:
        """A weight of the model, as its program declares it."""
        record = self.records.get(name)
        known = shape is not None and all(size >= 0 for size in shape)
        sizes = shape if known else record.shape if record is not None else None
        value = Value(name, sizes, True, missing=self.missing, declared=sizes, dtype=dtype)
        if self.missing is not None:
            return value
        why = self.why
        if record is None:
            why = why or f"{self.file.name} has no such tensor"
        elif (record.shape, record.dtype) != (sizes, dtype):
            why = f"{self.file.name} has {record.dtype} of shape {record.shape}"
        if record is None or why:
            return replace(value, source=partial(_refuse, f"weight {name!r}: {why}"))
        return with_numbers(replace(value, source=partial(_read, self.file, name, record)))


def _refuse(why: str) -> Array:
    raise ModelError(why)


def _read(file: Path, name: str, record: Record) -> Array:
    half = record.dtype == "bfloat16"
    kind = np.dtype("uint16" if half else record.dtype)
    count = math.prod(record.shape)
    raw = section(file, record.start, count * kind.itemsize, f"weight {name!r}")
    flat = np.frombuffer(raw, kind.newbyteorder("<")).astype(kind)
    if half:  # the upper half of a float32, as which its numbers are read
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(record.shape)


def with_numbers(value: Value) -> Value:
    """A constant with its numbers, if they are few; unchanged if they cannot be read."""
    shape = value.shape or ()
    count = math.prod(size for size in shape if isinstance(size, int))
    floats = (value.dtype or "").startswith(("float", "bfloat", "complex"))
    if value.dtype is None or count > (MAX_REALS if floats else MAX_CONTENT):
        return value
    try:
        return value.with_numbers(value.data())
    except (ModelError, TypeError, ValueError, OverflowError):
        return value  # the error is raised when the numbers are read


def literal(name: str, shape: tuple[int, ...], dtype: str, numbers: Callable[[], Any]) -> Value:
    """A constant whose numbers are in the program itself.

    Args:
        name, shape, dtype: of the constant.
        numbers: makes them: one for the whole tensor, or one for each element.
    """

    def source() -> Array:
        try:
            with np.errstate(all="ignore"):
                flat = np.asarray(numbers()).astype(dtype)
            # One number for all elements needs no memory for each.
            return np.broadcast_to(flat, shape) if flat.ndim == 0 else flat.reshape(shape)
        except (ValueError, TypeError, OverflowError) as error:
            raise ModelError(f"the constant {name!r} of shape {shape}: {error}") from None

    return with_numbers(Value(name, shape, True, declared=shape, dtype=dtype, source=source))


def _records(file: Path, names: Sequence[str]) -> dict[str, Record]:
    """The place of each tensor; only the descriptions are read."""
    try:
        size = file.stat().st_size
        with file.open("rb") as data:
            records = {name: _record(data, size) for name in names}
            if data.tell() != size:
                raise Malformed(f"it has {size - data.tell()} bytes more than the model's tensors")
            return records
    except OSError as error:
        raise ModelError(error.strerror or str(error)) from None


def _record(data: IO[bytes], size: int) -> Record:
    version, levels = struct.unpack("<IQ", _exactly(data, 12))
    if version or levels > _MOST_LEVELS:
        raise Malformed(f"a tensor of version {version} with {levels} levels of detail")
    for _ in range(levels):
        (length,) = struct.unpack("<Q", _exactly(data, 8))
        _skip(data, length, size)
    version, length = struct.unpack("<Ii", _exactly(data, 8))
    if version or not 0 <= length <= _MOST_DESC:
        raise Malformed(f"a tensor of version {version} with a description of {length} bytes")
    desc = Message(memoryview(_exactly(data, length)))
    shape, kind = desc.wholes(2), DTYPES.get(desc.whole(1))
    if kind is None or len(shape) > MAX_RANK or any(extent < 0 for extent in shape):
        raise Malformed(f"a tensor of element type {desc.whole(1)} and shape {shape[:8]}")
    start = data.tell()
    width = 2 if kind == "bfloat16" else np.dtype(kind).itemsize
    _skip(data, math.prod(shape) * width, size)
    return Record(start, shape, kind)


def _exactly(data: IO[bytes], count: int) -> bytes:
    raw = data.read(count)
    if len(raw) < count:
        raise Malformed("it ends before the last tensor")
    return raw


def _skip(data: IO[bytes], count: int, size: int) -> None:
    if count > size - data.tell():
        raise Malformed("it ends before the last tensor")
    data.seek(count, 1)


__all__ = ["Weights", "literal", "with_numbers"]
