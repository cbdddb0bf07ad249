"""Reads a FlatBuffers file, and trusts nothing in it.

The format (flatbuffers.dev, 'FlatBuffers internals'): a file is little-endian and begins with the
offset of its root table. A table begins with the distance back to its vtable, which has the sizes
of vtable and table and then, for each field in the schema's order, where the field is in the table,
0 for one that is left out. Strings, vectors and tables are reached by an offset from where it
stands. Every position is checked against the file's end before it is read, and what has been read
is counted: tables may share their parts, so that a small file could otherwise hold endless lists.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...ir.graph import Array

#: What may be read of a file, in bytes, is so many times its size, and some more for tiny files.
#: Writers share vtables and now and then a string; a file in use is read about once.
MAX_READ = 8
SPARE = 1 << 20

_FORMATS = {"int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i"}
_FORMATS |= {"uint32": "<I", "int64": "<q", "float32": "<f"}
_SCALARS = {name: struct.Struct(words) for name, words in _FORMATS.items()}


class Malformed(ValueError):  # noqa: N818 - what the file is
    """The bytes are no FlatBuffers of the schema; says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of numbers in the file that nobody has read yet.

    Attributes:
        data: the file.
        start: where the first number is.
        count: how many there are; the file holds them all.
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


class File:
    """The bytes of a file, with what may still be read of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = MAX_READ * len(data) + SPARE

    def root(self) -> Table:
        """The table that the file begins with."""
        return Table(self, self._follow(0))

    def scalar(self, kind: str, position: int) -> Any:
        """A number at a position."""
        form = _SCALARS[kind]
        self.check(position, form.size)
        return form.unpack_from(self.data, position)[0]

    def check(self, position: int, size: int) -> None:
        """Whether so many bytes are there, and may be read."""
        if position < 0 or position + size > len(self.data):
            raise Malformed(f"{size} bytes at {position} are beyond its end")
        self.left -= size
        if self.left < 0:
            raise Malformed("its tables share so many parts that it would unfold without end")

    def _follow(self, position: int) -> int:
        """Where the offset at a position leads."""
        offset: int = self.scalar("uint32", position)
        return position + offset

    def vector(self, position: int, size: int) -> tuple[int, int]:
        """Start and length of the vector that a field at this position leads to."""
        at = self._follow(position)
        count: int = self.scalar("uint32", at)
        if at + 4 + count * size > len(self.data):
            raise Malformed(f"a list of {count} at {at} is beyond its end")
        return at + 4, count

    def text(self, position: int) -> str:
        """The string that a field at this position leads to."""
        start, count = self.vector(position, 1)
        self.check(start, count)
        return self.data[start : start + count].decode("utf-8", "backslashreplace")

    def table(self, position: int) -> Table:
        """The table that a field at this position leads to."""
        return Table(self, self._follow(position))


#: The kinds of a field: a scalar's, or one of these.
Kind: TypeAlias = str


class Table:
    """A table of the file; its fields are asked by their number in the schema."""

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

    def _place(self, number: int) -> int | None:
        offset = self._fields[number] if number < len(self._fields) else 0
        if offset >= self._size and offset:
            raise Malformed(f"field {number} of the table at {self._position} is outside of it")
        return self._position + offset if offset else None

    def number(self, field: int, kind: Kind, default: Any = 0) -> Any:
        """A scalar."""
        place = self._place(field)
        return default if place is None else self._file.scalar(kind, place)

    def text(self, field: int) -> str | None:
        """A string, None where it is left out."""
        place = self._place(field)
        return None if place is None else self._file.text(place)

    def table(self, field: int) -> Table | None:
        """A table, None where it is left out."""
        place = self._place(field)
        return None if place is None else self._file.table(place)

    def vector(self, field: int, kind: Kind) -> Vector | None:
        """A list of scalars, unread; None where it is left out."""
        place = self._place(field)
        if place is None:
            return None
        start, count = self._file.vector(place, _SCALARS[kind].size)
        return Vector(self._file.data, start, count, kind)

    def numbers(self, field: int, kind: Kind) -> tuple[Any, ...]:
        """A list of scalars, read; () where it is left out."""
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
        place = self._place(field)
        if place is None:
            return range(0)
        start, count = self._file.vector(place, 4)
        return range(start, start + 4 * count, 4)
