"""The constants of an .mnn file. Their numbers are read on demand.

A constant is a blob of the file, or a list inside an op's parameter (the weights of a convolution,
the slopes of a PReLU). Large models keep both in a second file, `model.mnn.weight`, at offsets in
the model. No other file is opened, whatever path a model names.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....errors import ModelError
from ....sizes import MAX_RANK
from ...ir.files import section
from ...ir.graph import Array, Value
from ..flatbuffer import Malformed, StoredConstant, Table, Vector
from ..onnx.tensors import MAX_CONTENT
from .schema import DTYPES

#: A blob's lists of numbers: field, type.
_LISTS = (
    (7, "float32"),
    (5, "int32"),
    (6, "int64"),
    (3, "uint8"),
    (4, "int8"),
)
#: Types whose numbers are in the list of another: truth values are int32.
_EXTERNAL = 9


@dataclass(frozen=True, slots=True)
class Source(StoredConstant):
    """The location of a constant's numbers.

    Attributes:
        numbers: the numbers inside the file, or None.
        offset: their offset in the weight file, or None.
        why: why they are not available, or "".
    """

    numbers: Vector | None = None
    offset: int | None = None
    why: str = ""

    def __call__(self) -> Array:
        """The numbers.

        Raises:
            ModelError: they are missing, or their count does not match the shape.
        """
        if self.why:
            raise self.error(self.why)
        flat = self._external() if self.numbers is None else self.numbers.read()
        wanted = np.dtype(self.dtype)
        if self.numbers is not None and self.numbers.dtype == "uint8" and wanted.itemsize > 1:
            if self.numbers.count % wanted.itemsize:
                raise self.error(f"{self.numbers.count} bytes are no whole numbers")
            flat = flat.view(wanted.newbyteorder("<"))
        if flat.size != math.prod(self.shape):
            raise self.error(f"the file has {flat.size} numbers")
        return flat.astype(wanted).reshape(self.shape)

    def _external(self) -> Array:
        if self.offset is None:
            raise self.error("the file has no numbers")
        beside = weights_beside(self.file)
        size = math.prod(self.shape) * np.dtype(self.dtype).itemsize
        raw = section(beside, self.offset, size, f"constant {self.name!r} of shape {self.shape}")
        return np.frombuffer(raw, np.dtype(self.dtype).newbyteorder("<"))


def weights_beside(file: Path) -> Path:
    """The weight file of a large model."""
    return file.with_name(file.name + ".weight")


def blob(file: Path, name: str, table: Table) -> Value:
    """The constant of a blob.

    Raises:
        Malformed: it has an invalid shape, or its numbers are missing.
    """
    shape = sizes(table.numbers(0, "int32"), name)
    dtype = DTYPES.get(table.number(2, "int32", 1))
    if dtype is None:
        return Value(name, shape, constant=True)
    lists = [vector for field, kind in _LISTS if (vector := table.vector(field, kind)) is not None]
    filled = [vector for vector in lists if vector.count]
    external = table.numbers(_EXTERNAL, "int64")
    return constant(file, name, shape, dtype, filled[0] if filled else None, external[:1])


def constant(
    file: Path,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    numbers: Vector | None,
    external: tuple[int, ...] = (),
    why: str = "",
) -> Value:
    """A constant; a small one with its numbers."""
    offset = external[0] if external and numbers is None else None
    if offset is not None and offset < 0:
        raise Malformed(f"the numbers of {name!r} begin at {offset} of the file beside it")
    missing = None
    if offset is not None and not os.path.isfile(weights_beside(file)):
        missing = weights_beside(file).name
    count = math.prod(shape)
    if numbers is None and offset is None and not why and count:
        why = "the file has no numbers"
    source = Source(file, name, shape, dtype, numbers, offset, why)
    value = Value(name, shape, True, missing=missing, dtype=dtype, source=source)
    if numbers is None or count > MAX_CONTENT or numbers.count > 8 * MAX_CONTENT or why:
        return value
    try:
        return value.with_numbers(source())
    except ModelError:
        return value  # the error is raised when the numbers are read


def sizes(numbers: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The shape of a constant."""
    if len(numbers) > MAX_RANK:
        raise Malformed(f"the constant {name!r} has {len(numbers)} axes")
    if any(number < 0 for number in numbers):
        raise Malformed(f"the constant {name!r} has the sizes {numbers}")
    return numbers
