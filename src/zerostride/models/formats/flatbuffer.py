"""Reads an untrusted FlatBuffers file.

The format (flatbuffers.dev, 'FlatBuffers internals'): a file is little-endian and begins with the
offset of its root table. A table begins with the distance back to its vtable. The vtable has the
sizes of vtable and table, then the position of each field in the table, in the schema's order; 0
for a field that is left out. The field of a string, a vector or a table holds the distance from the
field to it. Every position is checked against the file's end before it is read. The bytes that are
read are counted and bounded: tables may share parts, so a small file can hold very long lists.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...errors import ModelError
from ..ir.graph import Array

#: Most bytes read, as a multiple of the file's size (plus some for tiny files). Writers share
#: vtables and some strings; a real file is read about once.
MAX_READ = 8
SPARE = 1 << 20

_FORMATS = {"int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i"}
_FORMATS |= {"uint32": "<I", "int64": "<q", "uint64": "<Q", "float32": "<f"}
_SCALARS = {name: struct.Struct(words) for name, words in _FORMATS.items()}


class Malformed(ValueError):  # noqa: N818 - what the file is
    """The bytes are not FlatBuffers of the schema; the message says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of numbers in the file, not read yet.

    Attributes:
        data: the file.
        start: the position of the first number.
        count: the number of elements; the file holds them all.
        dtype: NumPy's name of their type.
    """

    data: bytes
    start: int
    count: int
    dtype: str

    def read(self) -> Array:
        """The numbers, a view of the file's bytes."""
        kind = np.dtype(self.dtype).newbyteorder("<")
        return np.frombuffer(self.data, kind, self.count, self.start)


@dataclass(frozen=True, slots=True)
class StoredConstant:
    """A constant whose numbers are in a file.

    Attributes:
        file: the model file.
        name: the constant's name.
        shape, dtype: its shape and element type.
    """

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str

    def error(self, words: str) -> ModelError:
        """An error that names the constant."""
        return ModelError(f"{self.file}: constant {self.name!r} of shape {self.shape}: {words}")


class File:
    """The bytes of a file, and the number of bytes that may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = MAX_READ * len(data) + SPARE

    def root(self) -> Table:
        """The root table."""
        return Table(self, self._follow(0))

    def scalar(self, kind: str, position: int) -> Any:
        """A number at a position."""
        form = _SCALARS[kind]
        self.check(position, form.size)
        return form.unpack_from(self.data, position)[0]

    def check(self, position: int, size: int) -> None:
        """Checks that the bytes exist and may be read."""
        if position < 0 or position + size > len(self.data):
            raise Malformed(f"{size} bytes at {position} are beyond its end")
        self.left -= size
        if self.left < 0:
            raise Malformed("its tables share so many parts that it would unfold without end")

    def _follow(self, position: int) -> int:
        """The target of the offset at a position."""
        offset: int = self.scalar("uint32", position)
        return position + offset

    def vector(self, position: int, size: int) -> tuple[int, int]:
        """Start and length of the vector of a field at a position."""
        at = self._follow(position)
        count: int = self.scalar("uint32", at)
        if at + 4 + count * size > len(self.data):
            raise Malformed(f"a list of {count} at {at} is beyond its end")
        return at + 4, count

    def text(self, position: int) -> str:
        """The string of a field at a position."""
        start, count = self.vector(position, 1)
        self.check(start, count)
        return self.data[start : start + count].decode("utf-8", "backslashreplace")

    def table(self, position: int) -> Table:
        """The table of a field at a position."""
        return Table(self, self._follow(position))


#: The type of a scalar field.
Kind: TypeAlias = str


class Table:
    """A table of the file; fields are read by their number in the schema."""

    __slots__ = ("_fields", "_file", "_position", "_size")

    def __init__(self, file: File, position: int) -> None:
        back: int = file.scalar("int32", position)
        vtable = position - back
        length: int = file.scalar("uint16", vtable)
        size: int = file.scalar("uint16", vtable + 2)
        if length < 4 or length % 2:
            raise Malformed(f"the table at {position} has a vtable of {length} bytes")
        file.check(vtable, length)
        self._file = file
        self._position = position
        self._fields = struct.unpack_from(f"<{(length - 4) // 2}H", file.data, vtable + 4)
        self._size = size

    @property
    def position(self) -> int:
        """The position of the table."""
        return self._position

    @property
    def count(self) -> int:
        """The number of fields that the file's writer knew."""
        return len(self._fields)

    def place(self, number: int) -> int | None:
        """The position of a field's own bytes, a number or an offset; None if it is left out."""
        offset = self._fields[number] if number < len(self._fields) else 0
        if offset >= self._size and offset:
            raise Malformed(f"field {number} of the table at {self._position} is outside of it")
        return self._position + offset if offset else None

    def number(self, field: int, kind: Kind, default: Any = 0) -> Any:
        """A scalar."""
        place = self.place(field)
        return default if place is None else self._file.scalar(kind, place)

    def target(self, field: int) -> int | None:
        """The position of a string, a list or a table; None if it is left out."""
        place = self.place(field)
        return None if place is None else place + self._file.scalar("uint32", place)

    def text(self, field: int) -> str | None:
        """A string; None if it is left out."""
        place = self.place(field)
        return None if place is None else self._file.text(place)

    def table(self, field: int) -> Table | None:
        """A table; None if it is left out."""
        place = self.place(field)
        return None if place is None else self._file.table(place)

    def vector(self, field: int, kind: Kind) -> Vector | None:
        """A list of scalars, unread; None if it is left out."""
        place = self.place(field)
        if place is None:
            return None
        start, count = self._file.vector(place, _SCALARS[kind].size)
        return Vector(self._file.data, start, count, kind)

    def numbers(self, field: int, kind: Kind) -> tuple[Any, ...]:
        """A list of scalars; () if it is left out."""
        vector = self.vector(field, kind)
        if vector is None:
            return ()
        self._file.check(vector.start, vector.count * _SCALARS[kind].size)
        return tuple(vector.read().tolist())

    def texts(self, field: int) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(map(self._file.text, self._places(field)))

    def tables(self, field: int) -> tuple[Table, ...]:
        """A list of tables."""
        return tuple(map(self._file.table, self._places(field)))

    def _places(self, field: int) -> range:
        place = self.place(field)
        if place is None:
            return range(0)
        start, count = self._file.vector(place, 4)
        return range(start, start + 4 * count, 4)
