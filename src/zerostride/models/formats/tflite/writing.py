"""Writes a changed .tflite file: new tables are put before the file's own bytes.

An offset of FlatBuffers points forward, so new tables may refer to every old table, list and buffer
where it is. The old bytes follow the new ones unchanged; parts that no table refers to any more
stay where they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ..flatbuffer import Table
from ..schema_fields import Field

#: Buffers are aligned to 16 bytes by the schema; some writers align them to 64.
ALIGNMENT = 64
#: The mark of the file format.
MARK = b"TFL3"
#: Files end here: offsets are 32-bit numbers.
MAX_BYTES = 2**31 - 1
#: The field of a buffer that is an offset from the file's begin.
_BUFFER_OFFSET = 1


class TfliteWriter:
    """A file to which new parts are added."""

    def __init__(self, file: Path, data: bytes = b"") -> None:
        """Keeps the file's bytes.

        Raises:
            ModelError: the package flatbuffers is not installed.
        """
        try:
            import flatbuffers
        except ImportError:
            raise ModelError(
                "writing .tflite files needs the flatbuffers package: pip install flatbuffers"
            ) from None
        self.file = file
        self._size = len(data) + -len(data) % ALIGNMENT
        self._builder: Any = flatbuffers.Builder(0)
        self._builder.Bytes = bytearray(data) + bytes(self._size - len(data))
        self._builder.ForceDefaults(True)
        self._builder.minalign = ALIGNMENT

    def old(self, position: int) -> int:
        """A part of the file, by its position."""
        return self._size - position

    def text(self, words: str) -> int:
        """A string."""
        offset: int = self._builder.CreateString(words)
        return offset

    def numbers(self, numbers: Sequence[int]) -> int:
        """A list of int32."""
        builder = self._builder
        builder.StartVector(4, len(numbers), 4)
        for number in reversed(numbers):
            builder.PrependInt32(number)
        offset: int = builder.EndVector()
        return offset

    def data(self, content: bytes) -> int:
        """A list of bytes, aligned as the numbers of a constant."""
        builder = self._builder
        builder.StartVector(1, len(content), 16)
        builder.head -= len(content)
        builder.Bytes[builder.head : builder.head + len(content)] = content
        offset: int = builder.EndVector()
        return offset

    def tables(self, tables: Sequence[int]) -> int:
        """A list of tables."""
        builder = self._builder
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        offset: int = builder.EndVector()
        return offset

    def table(
        self, declared: Sequence[Field], values: Mapping[str, int], old: Table | None = None
    ) -> int:
        """A table with these values; the rest as in an old table.

        Raises:
            ModelError: the old table has fields of a newer schema.
        """
        if old is not None and old.count > len(declared):
            raise ModelError(
                f"{self.file}: it is of a newer schema than is written here: a table of "
                f"{old.count} fields; {len(declared)} are known"
            )
        every = {**({} if old is None else self._values(declared, old)), **values}
        self._builder.StartObject(max((field.number + 1 for field in declared), default=0))
        for field in sorted(declared, key=_size, reverse=True):
            if field.name not in every:
                continue
            if field.kind == "offset":
                self._builder.PrependUOffsetTRelative(every[field.name])
            else:
                prepend = getattr(self._builder, f"Prepend{field.kind.capitalize()}")
                number = every[field.name]
                prepend(bool(number) if field.kind == "bool" else number)
            self._builder.Slot(field.number)
        offset: int = self._builder.EndObject()
        return offset

    def _values(self, declared: Sequence[Field], old: Table) -> dict[str, int]:
        """The fields that an old table has; offsets as parts of the file."""
        values = {}
        for field in declared:
            if old.place(field.number) is None:
                continue
            if field.kind == "offset":
                target = old.target(field.number)
                assert target is not None
                values[field.name] = self.old(target)
            else:
                kind = "uint8" if field.kind == "bool" else field.kind
                values[field.name] = old.number(field.number, kind, field.default)
        return values

    def finish(self, root: int, buffers: Sequence[Table]) -> bytes:
        """The file's bytes.

        Args:
            root: the model's table.
            buffers: the old buffers; an offset from the file's begin moves with the old bytes.

        Raises:
            ModelError: the file would be of 2 GiB or more.
        """
        self._builder.Finish(root, MARK)
        written = bytearray(self._builder.Output())
        if len(written) > MAX_BYTES:
            raise ModelError(
                f"{self.file}: the model would be of {len(written)} bytes; {TOO_LARGE}"
            )
        begin = len(written) - self._size
        for buffer in buffers:
            place = buffer.place(_BUFFER_OFFSET)
            if place is not None and buffer.number(_BUFFER_OFFSET, "uint64") > 1:
                start = buffer.number(_BUFFER_OFFSET, "uint64") + begin
                struct.pack_into("<Q", written, begin + place, start)
        return bytes(written)


#: Why a large model is not written.
TOO_LARGE = "models of 2 GiB and more are not written"
_SIZES = {"offset": 4, "uint32": 4, "int32": 4, "uint64": 8}


def _size(field: Field) -> int:
    return _SIZES.get(field.kind, 1)
