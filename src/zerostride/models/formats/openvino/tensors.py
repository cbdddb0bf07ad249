"""Element types of an IR, and the constants in its .bin.

A constant gives the position of its bytes, which is checked against the .bin when the file is read.
Small constants (shapes, axes, scales) are read at once, others on demand.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np

from ....errors import ModelError, printable
from ....sizes import MAX_ELEMENTS
from ...ir.files import section
from ...ir.graph import Array, Value
from .markup import Layer, integer, refuse

#: Constants up to this many elements are read at once: shapes, axes, repeats, scales.
MAX_CONTENT = 64


@dataclass(frozen=True, slots=True)
class ElementType:
    """A row: the name of NumPy's or ml_dtypes' dtype, or None, and bits per element."""

    dtype: str | None
    bits: int

    @property
    def plain(self) -> bool:
        """Whether NumPy itself has it."""
        return self.dtype in _PLAIN


_WIDTHS = (8, 16, 32, 64)
_WHOLE = {f"{kind}{bits}" for kind in ("int", "uint") for bits in _WIDTHS}
_PLAIN = frozenset({"bool", "float16", "float32", "float64", *_WHOLE})
#: OpenVINO, element_type.cpp: names of element types; types without a dtype have None.
TYPES: Mapping[str, ElementType] = MappingProxyType(
    {
        "boolean": ElementType("bool", 8),
        "f16": ElementType("float16", 16),
        "f32": ElementType("float32", 32),
        "f64": ElementType("float64", 64),
        "bf16": ElementType("bfloat16", 16),
        "f8e4m3": ElementType("float8_e4m3fn", 8),
        "f8e5m2": ElementType("float8_e5m2", 8),
        "f8e8m0": ElementType("float8_e8m0fnu", 8),
        "f4e2m1": ElementType("float4_e2m1fn", 4),
        "nf4": ElementType(None, 4),
        "i4": ElementType("int4", 4),
        "u4": ElementType("uint4", 4),
        **{
            f"{kind[0]}{bits}": ElementType(f"{kind}{bits}", bits)
            for kind in ("int", "uint")
            for bits in _WIDTHS
        },
        **{f"u{bits}": ElementType(None, bits) for bits in (1, 2, 3, 6)},
        "string": ElementType(None, 0),
        "dynamic": ElementType(None, 0),
        "undefined": ElementType(None, 0),
    }
)
#: Ports use older names of types: FP32, I64, BOOL.
_PORT_NAMES = MappingProxyType(
    {
        "BOOL": "boolean",
        "FP16": "f16",
        "FP32": "f32",
        "FP64": "f64",
        "BIN": "u1",
        "STRING": "string",
    }
)


def element_type(text: str) -> ElementType | None:
    """An element type by its name in a layer or a port.

    >>> element_type("FP32").dtype, element_type("i64").dtype, element_type("u4").plain
    ('float32', 'int64', False)
    """
    return TYPES.get(_PORT_NAMES.get(text.upper(), text.lower()))


def port_name(kind: str) -> str:
    """An element type as ports write it.

    >>> port_name("f32"), port_name("i64")
    ('FP32', 'I64')
    """
    return next((name for name, meant in _PORT_NAMES.items() if meant == kind), kind.upper())


def one_number(dtype: str, value: float) -> tuple[str, bytes] | None:
    """The element type of a dtype as layers name it, and the bytes of one number.

    Returns:
        None if NumPy lacks the type, or the type cannot represent the number.

    >>> one_number("float16", 1.5), one_number("uint8", -1.0), one_number("bfloat16", 0.0)
    (('f16', b'\\x00>'), None, None)
    """
    name = next((name for name, row in TYPES.items() if row.dtype == dtype and row.plain), None)
    if name is None:
        return None
    kind = np.dtype(dtype)
    with np.errstate(all="ignore"):
        number = np.array(value, "<f8").astype(kind.newbyteorder("<"))
    return (name, number.tobytes()) if float(number) == value else None


class Weights:
    """The .bin of an IR, open while the file is read. Use as a context manager.

    Attributes:
        path: its path, whether it exists or not.
        size: its bytes; None without a file.
    """

    def __init__(self, file: Path, path: Path) -> None:
        self.file = file
        self.path = path
        self.size: int | None = None
        self._open: BinaryIO | None = None

    def __enter__(self) -> Weights:
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):
                # Reading a pipe or a device may never end.
                refuse(self.file, f"the weights {self.path.name} are not a regular file")
            self._open = self.path.open("rb")
            self.size = status.st_size
        except FileNotFoundError:
            pass
        except OSError as error:
            refuse(self.file, f"the weights {self.path.name}: {error.strerror or error}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def constant(self, name: str, layer: Layer, shape: tuple[int, ...]) -> Value:
        """The tensor of a Const layer; its shape has been read."""
        text = layer.data.get("element_type", "")
        kind = element_type(text)
        if kind is None:
            refuse(self.file, f"{layer.shown}: {printable(text[:40])!r} is no element type")
        count = math.prod(shape)
        if count > MAX_ELEMENTS:
            refuse(self.file, f"{layer.shown}: {count} elements are more than 2^63-1")
        value = Value(name, shape, constant=True, dtype=kind.dtype, declared=shape)
        if not count and kind.plain:  # no bytes are needed
            source = partial(np.zeros, shape, kind.dtype)
            return replace(value, content=() if kind.dtype in _WHOLE else None, source=source)
        if "offset" not in layer.data or self._open is None or self.size is None:
            return replace(value, missing=self.path.name)
        offset = integer(self.file, layer.data.get("offset"), f"{layer.shown}: its offset")
        size = integer(self.file, layer.data.get("size"), f"{layer.shown}: its size")
        needed = (count * kind.bits + 7) // 8
        if offset < 0 or size < needed:
            problem = f"{size} bytes from {offset} on do not hold {count} elements of {text}"
            refuse(self.file, f"{layer.shown}: {problem}")
        if offset + size > self.size:
            problem = f"its {size} bytes from {offset} on end after the {self.size} of the .bin"
            refuse(self.file, f"{layer.shown}: {problem}")
        where = f"{self.file}: {layer.shown}"
        if not kind.plain or kind.dtype is None:
            return replace(value, source=partial(_refused, where, text))
        source = partial(load, self.path, offset, shape, kind.dtype, where)
        if count > MAX_CONTENT:
            return replace(value, source=source)
        self._open.seek(offset)
        data = self._open.read(needed)
        if len(data) < needed:
            refuse(self.file, f"{layer.shown}: the .bin became shorter while it was read")
        return replace(value, source=source).with_numbers(_numbers(data, kind.dtype))


def _refused(where: str, text: str) -> Array:
    raise ModelError(f"{where}: NumPy has no numbers of type {printable(text)}; they are not read")


def load(path: Path, offset: int, shape: tuple[int, ...], dtype: str, where: str) -> Array:
    """The numbers of a constant.

    Raises:
        ModelError: the .bin was removed or truncated after the file was read.
    """
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    return _numbers(section(path, offset, needed, where), dtype).reshape(shape)


def _numbers(data: bytes, dtype: str) -> Array:
    if dtype == "bool":  # any byte except 0 is true; NumPy would keep the byte
        truths: Array = np.frombuffer(data, np.uint8) != 0
        return truths
    return np.frombuffer(data, dtype)
