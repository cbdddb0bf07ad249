"""Reads an untrusted file in the wire format of Protocol Buffers.

The format (protobuf.dev, 'Encoding'): a message is a list of fields. A field begins with a varint,
its number times 8 plus its wire type: 0 a varint, 1 eight bytes, 2 a length and as many bytes (a
text, a message, or packed numbers), 5 four bytes. Groups (3, 4) are refused. A number that repeats
is a list; the last value of a field that is not a list counts. Every length is checked against the
end of its message, so messages cannot share bytes: a file is read about once.
"""

from __future__ import annotations

import struct
from array import array

#: Wire types.
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
#: Bits of a number; a varint of more bytes is refused.
_BITS, _SIGN = 64, 1 << 63
#: Most fields of a file: a network of 10,000 ops with the stacks of their calls has 2 million. Each
#: takes up to some hundred bytes of memory.
MAX_FIELDS = 4_000_000


class Malformed(ValueError):  # noqa: N818 - what the file is
    """The bytes are not a message; the text says what is wrong and where."""


class Budget:
    """The number of fields that may still be read of a file."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_FIELDS) -> None:
        self.left = left


class Message:
    """A message. Its fields are found once; what they hold is read on request."""

    __slots__ = ("_budget", "_data", "_fields", "_types")

    def __init__(self, data: memoryview, budget: Budget | None = None) -> None:
        self._data = data
        self._budget = Budget() if budget is None else budget
        #: By number: a varint's value, or start and end of other fields.
        self._fields: dict[int, array[int]] = {}
        self._types: dict[int, int] = {}
        position, end = 0, len(data)
        while position < end:
            self._budget.left -= 1
            if self._budget.left < 0:
                raise Malformed(f"more than {MAX_FIELDS:,} fields")
            key, position = _varint(data, position)
            number, kind = key >> 3, key & 7
            if self._types.setdefault(number, kind) != kind:
                raise Malformed(f"field {number} has two wire types")
            if kind == VARINT:
                value, position = _varint(data, position)
                self._fields.setdefault(number, array("Q")).append(value)
                continue
            if kind not in (EIGHT, FOUR, BYTES):
                raise Malformed(f"field {number} has the wire type {kind}")
            size = 8 if kind == EIGHT else 4
            if kind == BYTES:
                size, position = _varint(data, position)
            if size > end - position:
                raise Malformed(f"field {number} of {size} bytes is beyond its message")
            self._fields.setdefault(number, array("Q")).extend((position, position + size))
            position += size

    def _bytes(self, number: int, *kinds: int) -> list[memoryview]:
        """The bytes of a field, which has one of these wire types."""
        spans = self._fields.get(number)
        if spans is None:
            return []
        if self._types[number] not in kinds:
            raise Malformed(f"field {number} has the wire type {self._types[number]}")
        return [self._data[a:b] for a, b in zip(spans[::2], spans[1::2], strict=True)]

    def messages(self, number: int) -> list[Message]:
        """A list of messages."""
        return [Message(value, self._budget) for value in self._bytes(number, BYTES)]

    def message(self, number: int) -> Message | None:
        """A message; None if it is left out."""
        values = self._bytes(number, BYTES)
        return Message(values[-1], self._budget) if values else None

    def texts(self, number: int) -> list[str]:
        """A list of texts."""
        return [
            bytes(value).decode("utf-8", "backslashreplace") for value in self._bytes(number, BYTES)
        ]

    def text(self, number: int, default: str = "") -> str:
        """A text."""
        texts = self.texts(number)
        return texts[-1] if texts else default

    def has(self, number: int) -> bool:
        """Whether a field is present."""
        return number in self._fields

    def whole(self, number: int, default: int = 0) -> int:
        """A signed whole number, an enumeration or a truth value."""
        numbers = self.wholes(number)
        return numbers[-1] if numbers else default

    def wholes(self, number: int) -> tuple[int, ...]:
        """A list of signed whole numbers, packed or not."""
        if self._types.get(number) == VARINT:
            numbers = list(self._fields[number])
        else:
            numbers = []
            for value in self._bytes(number, BYTES):
                position = 0
                while position < len(value):
                    item, position = _varint(value, position)
                    numbers.append(item)
        return tuple(item - (1 << _BITS) if item & _SIGN else item for item in numbers)

    def reals(self, number: int, width: int = 4) -> tuple[float, ...]:
        """A list of floats (of 4 bytes) or doubles (of 8), packed or not."""
        form = struct.Struct("<f" if width == 4 else "<d")
        numbers: list[float] = []
        for value in self._bytes(number, BYTES, FOUR if width == 4 else EIGHT):
            if len(value) % width:
                raise Malformed(f"field {number} has {len(value)} bytes of numbers")
            numbers += (item for (item,) in form.iter_unpack(value))
        return tuple(numbers)

    def real(self, number: int, width: int = 4, default: float = 0.0) -> float:
        """A float or a double."""
        numbers = self.reals(number, width)
        return numbers[-1] if numbers else default


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = shift = 0
    while True:
        if position >= len(data) or shift >= _BITS:
            raise Malformed(f"the number at byte {position} has no end")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & ((1 << _BITS) - 1), position
        shift += 7


__all__ = ["Budget", "Malformed", "Message"]
